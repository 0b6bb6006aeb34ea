"""Specs: from a YAML file to a frozen model, with every complaint about the file at once."""
