"""Measures a move down the ladder beside JobSet's own restart, for one job and for many at once."""
