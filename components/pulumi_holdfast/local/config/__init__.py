"""The configuration of a stack on this machine, and its validation."""
