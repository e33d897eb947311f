"""A command line that prints one answer."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace
    from collections.abc import Callable, Mapping


def answered(
    parser: ArgumentParser, answers: Mapping[str, Callable[[Namespace], str]], arguments: list[str] | None
) -> int:
    """Print the answer to the command that is asked for; returns 0, or 1 and a sentence where there is none."""
    asked = parser.parse_args(arguments)
    try:
        print(answers[asked.command](asked))
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0
