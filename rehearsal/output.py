"""Where commands print."""

import logging
import os
import sys
import warnings
from collections.abc import Sequence


def say(line: str = "") -> None:
    """Print a line at once, also where the output is a pipe."""
    print(line, flush=True)


def hush_libraries() -> None:
    """Keep to themselves what the Automation API and gRPC tell of an engine that was ended in the middle.

    The stream of events is broken off then, and the program fails at a log line the engine would take. Both are
    told with a traceback, and neither is news: the command says how it ended.
    """
    warnings.filterwarnings("ignore", message="Error in event stream")
    logging.getLogger("grpc").setLevel(logging.CRITICAL)


def color() -> str:
    """Return whether the engine shall colour its lines: `always` on a terminal that wants it, else `never`."""
    return "always" if sys.stdout.isatty() and not os.environ.get("NO_COLOR") else "never"


def render_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lines with each column as wide as its widest cell, under their heads."""
    widths = [max(len(row[column]) for row in (heads, *rows)) for column in range(len(heads))]
    lines = [heads, ["-" * width for width in widths], *rows]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )
