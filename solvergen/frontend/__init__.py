"""From equation text to typed IR, every finding reported at once; and from IR to SymPy and back."""
