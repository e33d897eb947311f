"""Shows the engine's own lines as they come."""

from collections.abc import Callable
from dataclasses import dataclass

OnLine = Callable[[str], None]

# After a destroy the engine advises a command, which would not find this backend.
_OF_A_STACK_KEPT_ELSEWHERE = (
    "The resources in the stack have been deleted, but the history and configuration",
    "If you want to remove the stack completely, run",
)
_TRACEBACK = "Traceback (most recent call last):"


def quiet(line: str) -> None:
    """Show nothing."""


@dataclass(frozen=True, kw_only=True)
class Audience:
    """Who watches: `show` takes the engine's own lines, in `color` (`always`, `never`)."""

    show: OnLine = quiet
    color: str = "never"


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
        if not self._inside_traceback and not line.startswith(_OF_A_STACK_KEPT_ELSEWHERE):
            self._show(line)
