"""Pulumi components by concept; importing one cloud's module imports no other cloud's SDK."""
