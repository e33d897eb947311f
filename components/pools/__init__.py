"""Pools: nodes of one capacity type."""
