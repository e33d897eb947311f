"""Stacks on Azure: configuration, preflight checks, and the composition root in `stack.py`."""
