"""The intermediate representation: frozen typed nodes, and what holds at each level."""
