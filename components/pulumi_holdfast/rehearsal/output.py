"""What the commands print, and how."""

import logging
import os
import re
import sys
import threading
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final

_COLOR: Final = re.compile(r"\x1b\[[0-9;]*m")


def say(line: str = "") -> None:
    """Print a line at once, also to a pipe, and log it."""
    print(line, flush=True)
    if _log is not None:
        _log.write(line)


def detail(line: str = "") -> None:
    """Log a line of the engine or of a scenario; print it with `--verbose`, and where nothing is logged."""
    if _log is None or _log.verbose:
        print(line, flush=True)
    if _log is not None:
        _log.write(line)


class _Log:
    """A file that is made with its first line: a command that is refused leaves none."""

    def __init__(self, file: Path, *, verbose: bool) -> None:
        self.file = file
        self.verbose = verbose
        self._lock = threading.Lock()
        self._open: IO[str] | None = None

    def write(self, line: str) -> None:
        with self._lock:
            if self._open is None:
                self.file.parent.mkdir(parents=True, exist_ok=True)
                self._open = self.file.open("w", encoding="utf-8", buffering=1)
            self._open.write(_COLOR.sub("", line) + "\n")

    def failed(self, error: Exception) -> None:
        """Log an error that the command itself prints, if it had done something."""
        if self._open is not None:
            self.write(f"error: {error}")

    def close(self) -> bool:
        """Close the file, and return whether there is one."""
        with self._lock:
            if self._open is None:
                return False
            self._open.close()
            self._open = None
            return True


_log: _Log | None = None


@contextmanager
def logged(file: Path, *, verbose: bool = False) -> Generator[None]:
    """Log what a command prints in `file`, with all details, and print where it is at the end."""
    global _log
    log = _log = _Log(file, verbose=verbose)
    try:
        yield
    except Exception as error:
        log.failed(error)
        raise
    finally:
        _log = None
        if log.close():
            print(f"Log: {os.path.relpath(file)}", flush=True)


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
