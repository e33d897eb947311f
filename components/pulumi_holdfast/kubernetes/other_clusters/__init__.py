"""Tiers of a ladder in another cluster: what one stack exports and another reads."""
