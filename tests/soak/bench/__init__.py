"""Benchmarks: the engine's commands, the cost of the policy pack, and moves of jobs down a ladder."""
