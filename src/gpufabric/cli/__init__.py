"""Commands: load, decide, show."""
