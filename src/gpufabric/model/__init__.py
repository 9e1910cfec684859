"""The spec (Requirement), the Fabric's tables, and their files."""
