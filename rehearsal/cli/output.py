"""Where commands print."""

import os
import sys


def say(line: str = "") -> None:
    """Print a line at once, also where the output is a pipe."""
    print(line, flush=True)


def color() -> str:
    """Return whether the engine shall colour its lines: `always` on a terminal that wants it, else `never`."""
    return "always" if sys.stdout.isatty() and not os.environ.get("NO_COLOR") else "never"
