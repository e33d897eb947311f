"""Stacks on AWS: configuration, preflight checks, and the composition root in `stack.py`."""
