"""Measures what the engine's commands cost on the local stack, beside an empty program."""
