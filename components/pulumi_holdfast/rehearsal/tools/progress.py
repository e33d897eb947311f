"""Shows a long build: a line for each start and end, a heartbeat while it compiles, and a summary at the end."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from pulumi_holdfast.rehearsal.tools.catalog import Tool
from pulumi_holdfast.rehearsal.tools.locate import Survey

#: Short enough to show that a long compilation does not hang, long enough not to fill a log.
_HEARTBEAT_SECONDS = 15.0


@dataclass(frozen=True, kw_only=True)
class Work:
    """One piece in progress: its start (monotonic seconds) and its compiled packages."""

    since: float
    packages: int = 0


def clock(seconds: float) -> str:
    """Format seconds as minutes and seconds: `2:05`."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02d}"


class Progress:
    """Collects the progress of the chains from several threads; `say` receives lines and a heartbeat."""

    def __init__(
        self, say: Callable[[str], None], total: int, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._say = say
        self._total = total
        self._now = now
        self._lock = threading.Lock()
        self._began = self._beaten = now()
        self._working: dict[str, Work] = {}
        self._seconds: dict[str, float] = {}

    @property
    def seconds(self) -> dict[str, float]:
        """The seconds each finished piece took."""
        return dict(self._seconds)

    def started(self, name: str) -> None:
        """Record the start of a piece."""
        with self._lock:
            self._working[name] = Work(since=self._now())
        self._say(f"tools: {name}: started")

    def line(self, name: str, text: str) -> None:
        """Record a line of a `go` command; a line without spaces is a package that compiles."""
        with self._lock:
            work = self._working[name]
            is_package = bool(text) and " " not in text
            self._working[name] = replace(work, packages=work.packages + is_package)

    def finished(self, name: str) -> None:
        """Record the end of a piece."""
        with self._lock:
            self._seconds[name] = self._now() - self._working.pop(name).since
            done = len(self._seconds)
        self._say(f"tools: {name}: done in {clock(self._seconds[name])}  ({done} of {self._total})")

    def tick(self) -> None:
        """Print the heartbeat if it is due. Called about once per second."""
        now = self._now()
        if now - self._beaten < _HEARTBEAT_SECONDS:
            return
        self._beaten = now
        with self._lock:
            working = dict(self._working)
        what = ", ".join(f"{name} {clock(now - work.since)}{_count(work)}" for name, work in working.items())
        self._say(f"tools: {clock(now - self._began)} so far: {what}")


def _count(work: Work) -> str:
    return f" ({work.packages} packages)" if work.packages else ""


def one_line(survey: Survey) -> str:
    """Return the summary of a run without missing pieces."""
    states = Counter(state.value for state in (*survey.tools.values(), *survey.charts.values()))
    counts = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    return f"tools: nothing to make ({counts})"


def summary(survey: Survey, seconds: Mapping[str, float]) -> list[str]:
    """Return the lines of a run's summary: each piece, its origin and its build time."""
    lines: list[str] = []
    for piece, state in (*survey.tools.items(), *survey.charts.items()):
        made = seconds.get(piece.title)
        origin = state.value if made is None else "built" if isinstance(piece, Tool) else "copied"
        took = "" if made is None else f" in {made:.0f} s"
        lines.append(f"{piece.title}: {origin}{took}")
    return lines
