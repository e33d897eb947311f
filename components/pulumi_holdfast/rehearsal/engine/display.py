"""Shows the engine's output, and reports what it waits for while it is silent."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType

from pulumi.automation.events import EngineEvent, StepEventMetadata

OnLine = Callable[[str], None]

# After a destroy the engine suggests a command that would not find this backend.
_OF_A_STACK_KEPT_ELSEWHERE = (
    "The resources in the stack have been deleted, but the history and configuration",
    "If you want to remove the stack completely, run",
)
_TRACEBACK = "Traceback (most recent call last):"


def quiet(line: str) -> None:
    """Show nothing."""


@dataclass(frozen=True, kw_only=True)
class Audience:
    """Receives the engine's output: `show` gets its lines, in `color` (`always`, `never`)."""

    show: OnLine = quiet
    color: str = "never"


class Display:
    """Passes on the engine's lines, without the traceback of a failed program."""

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


# A Helm release of an operator takes 5 to 20 s.
QUIET_SECONDS = 10.0


def progress_line(begun: Mapping[str, float], now: float) -> str | None:
    """Return a line with the running operations, by URN and start time, the longest first; None for none."""
    if not begun:
        return None
    oldest_first = sorted(begun, key=lambda urn: begun[urn])
    names = ", ".join(f"{urn.rsplit('::', 1)[-1]} ({now - begun[urn]:.0f} s)" for urn in oldest_first)
    return f"    waiting for {names}"


class ProgressReporter:
    """Follows the engine's events of one command, and shows a progress line after each silent period."""

    def __init__(self, show: OnLine, *, quiet_seconds: float = QUIET_SECONDS) -> None:
        self._show = show
        self._quiet_seconds = quiet_seconds
        self._begun: dict[str, float] = {}
        self._lock = threading.Lock()
        self._spoken = threading.Event()
        self._over = False
        self._thread = threading.Thread(target=self._watch, daemon=True, name="engine waiting")

    def line(self, line: str) -> None:
        """Show a line of the engine."""
        self._spoken.set()
        self._show(line)

    def event(self, event: EngineEvent) -> None:
        """Follow an event."""
        begins, ends, fails = event.resource_pre_event, event.res_outputs_event, event.res_op_failed_event
        with self._lock:
            if begins and _is_made_by_a_provider(begins.metadata):
                self._begun[begins.metadata.urn] = time.monotonic()
            for end in (ends, fails):
                if end:
                    self._begun.pop(end.metadata.urn, None)

    def __enter__(self) -> "ProgressReporter":
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over = True
        self._spoken.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over:
            if self._spoken.wait(self._quiet_seconds):
                self._spoken.clear()
                continue
            with self._lock:
                line = progress_line(self._begun, time.monotonic())
            if line:
                self._show(line)


def _is_made_by_a_provider(metadata: StepEventMetadata) -> bool:
    """Whether a provider runs the operation; a component only waits for its children."""
    state = metadata.new or metadata.old
    return state is not None and bool(state.custom)
