"""Kills the engine after a resource and proves that the next run converges."""
