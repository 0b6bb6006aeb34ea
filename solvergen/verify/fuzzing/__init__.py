"""Whole random specs, and what their equations mean, worked out apart from the compiler."""
