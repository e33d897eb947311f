"""Stacks on this machine: configuration, and the composition root in `stack.py`."""
