"""The configuration of a stack on Azure, and its validation."""
