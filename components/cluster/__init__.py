"""Clusters: one module for each cloud, and the small contract that they share."""
