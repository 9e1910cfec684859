"""Output of tools, as facts: what a text says, where it is damaged, nothing judged."""
