"""Candidates side by side: complete plans of a spec, and how they compare."""
