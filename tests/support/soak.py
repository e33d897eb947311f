"""Sizes of what tests draw: `make test` takes a short sample, `make soak` a long one of the same code."""

import os
from typing import Final

VARIABLE: Final = "HOLDFAST_SOAK"


def sized(short: int, *, soak: int) -> int:
    """Return `short`, or `soak` when `make soak` runs."""
    return soak if os.environ.get(VARIABLE) else short
