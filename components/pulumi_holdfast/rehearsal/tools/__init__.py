"""Finds the programs that the simulator runs on PATH, or builds them from pinned Go modules."""
