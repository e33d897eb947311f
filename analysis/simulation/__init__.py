"""A small deterministic model of jobs on pools, walked by the same `decide` as the controller's."""
