"""A small deterministic simulation of jobs on pools, driven by the controller's own `decide`."""
