"""Checkpoints: where training keeps what it has reached, so that the next attempt starts from there."""
