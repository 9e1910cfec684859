"""Errors, ids, units, text and files: what every other folder may use."""
