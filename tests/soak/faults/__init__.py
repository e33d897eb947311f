"""Fault runs: many jobs on a ladder while faults, drawn from a seed, hit nodes, the controller and the API server."""
