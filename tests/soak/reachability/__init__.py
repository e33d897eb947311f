"""Drawn jobs and NodePools on the real scheduler and Karpenter, far more than the tests in `tests/cluster` draw."""
