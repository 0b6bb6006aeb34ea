"""From scheduled programs to text: printers of expressions, frozen contexts, strict templates."""
