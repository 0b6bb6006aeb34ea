"""Nets of other libraries, for the Solver. Each module imports its library, and nothing else here does."""
