"""Measured speed and memory: one module a subject, each with ``entries()``."""
