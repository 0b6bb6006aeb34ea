"""Nets that the Solver can train."""
