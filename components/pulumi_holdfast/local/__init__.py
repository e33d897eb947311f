"""A training cluster on this machine."""
