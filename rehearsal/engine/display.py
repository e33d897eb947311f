"""Shows the engine's own lines as they come."""

from collections.abc import Callable

OnLine = Callable[[str], None]

_TRACEBACK = "Traceback (most recent call last):"


class Display:
    """Passes on the engine's lines, the traceback of a failed program left out: its message stays."""

    def __init__(self, show: OnLine) -> None:
        self._show = show
        self._inside_traceback = False

    def __call__(self, line: str) -> None:
        """Take one line."""
        if _TRACEBACK in line:
            self._inside_traceback = True
        elif not line.strip():
            self._inside_traceback = False
        if not self._inside_traceback:
            self._show(line)


def quiet(line: str) -> None:
    """Show nothing."""
