"""Stacks on Google Cloud: configuration, preflight checks, and the composition root in `stack.py`."""
