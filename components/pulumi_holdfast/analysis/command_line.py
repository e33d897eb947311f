"""Prints the answer of a command of `holdfast economics` or `holdfast replay`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable


def print_answer(answer: Callable[[Namespace], str], parsed: Namespace) -> int:
    """Print an answer and return 0; print an error and return 1 if there is none for these arguments."""
    try:
        print(answer(parsed))
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0
