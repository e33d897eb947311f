"""What the commands print, and how."""

import logging
import os
import sys
import warnings
from collections.abc import Sequence


def say(line: str = "") -> None:
    """Print a line at once, also to a pipe."""
    print(line, flush=True)


def silence_libraries() -> None:
    """Suppress the tracebacks that the Automation API and gRPC print when an engine is interrupted.

    The event stream breaks off, and the program fails at its next log line to the engine. The command itself reports
    how it ended.
    """
    warnings.filterwarnings("ignore", message="Error in event stream")
    logging.getLogger("grpc").setLevel(logging.CRITICAL)


def color() -> str:
    """Return the engine's color mode: `always` on a terminal without NO_COLOR, otherwise `never`."""
    return "always" if sys.stdout.isatty() and not os.environ.get("NO_COLOR") else "never"


def render_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a text table: each column is as wide as its widest cell."""
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]
    lines = [heads, ["-" * width for width in widths], *rows]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
