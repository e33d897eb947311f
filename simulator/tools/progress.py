"""Shows a long build: lines and a heartbeat in a log, a live table on a terminal, and a summary at the end."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table

from holdfast.simulator.tools.catalog import Tool
from holdfast.simulator.tools.locate import Survey

#: Short enough to show that a long compilation does not hang, long enough not to fill a log.
_HEARTBEAT_SECONDS = 15.0


@dataclass(frozen=True, kw_only=True)
class Work:
    """One piece in progress: its start (monotonic seconds), its compiled packages and its last line."""

    since: float
    packages: int = 0
    doing: str = ""


def clock(seconds: float) -> str:
    """Format seconds as minutes and seconds: `2:05`."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02d}"


class Progress:
    """Collects the progress of the chains from several threads, and prints lines and a heartbeat."""

    def __init__(self, console: Console, total: int, now: Callable[[], float] = time.monotonic) -> None:
        self._console = console
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
        self._say(f"{name}: started")

    def line(self, name: str, text: str) -> None:
        """Record a line of a `go` command; a line without spaces is a package that compiles."""
        with self._lock:
            work = self._working[name]
            is_package = bool(text) and " " not in text
            self._working[name] = Work(
                since=work.since, packages=work.packages + is_package, doing=text.removeprefix("go: ")
            )

    def finished(self, name: str) -> None:
        """Record the end of a piece."""
        with self._lock:
            self._seconds[name] = self._now() - self._working.pop(name).since
            done = len(self._seconds)
        self._say(f"{name}: done in {clock(self._seconds[name])}  ({done} of {self._total})")

    def tick(self) -> None:
        """Print the heartbeat if it is due. Called about once per second."""
        now = self._now()
        if now - self._beaten < _HEARTBEAT_SECONDS:
            return
        self._beaten = now
        with self._lock:
            working = dict(self._working)
        what = ", ".join(f"{name} {clock(now - work.since)}{_count(work)}" for name, work in working.items())
        self._say(f"{clock(now - self._began)} so far: {what}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Do nothing: printed lines stay."""

    def _say(self, text: str) -> None:
        self._console.print(f"tools: {text}", highlight=False, markup=False, soft_wrap=True)


class LiveProgress(Progress):
    """Prints a line for each finished piece and a live table of pieces in progress, on a terminal."""

    def __init__(self, console: Console, total: int, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__(console, total, now)
        self._spinners: dict[str, Spinner] = {}
        self._live = Live(get_renderable=self._table, console=console, transient=True, refresh_per_second=8)

    def started(self, name: str) -> None:
        """Record the start of a piece, which adds a row to the table."""
        with self._lock:
            self._spinners[name] = Spinner("dots")
            self._working[name] = Work(since=self._now())

    def tick(self) -> None:
        """Do nothing: the table refreshes itself."""

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def _table(self) -> Table:
        with self._lock:
            working, done = dict(self._working), len(self._seconds)
        now = self._now()
        table = Table(
            box=None, pad_edge=False, caption=f"{done} of {self._total} in {clock(now - self._began)}"
        )
        for heading in ("", "making", "time", "now"):
            table.add_column(heading, no_wrap=True, overflow="ellipsis")
        for name, work in working.items():
            table.add_row(self._spinners[name], name, clock(now - work.since), f"{work.doing}{_count(work)}")
        return table


def _count(work: Work) -> str:
    return f" ({work.packages} packages)" if work.packages else ""


def progress_on(console: Console, total: int) -> Progress:
    """Return the progress display for a terminal or a log."""
    return LiveProgress(console, total) if console.is_terminal else Progress(console, total)


def one_line(survey: Survey) -> str:
    """Return the summary of a run without missing pieces."""
    states = Counter(state.value for state in (*survey.tools.values(), *survey.charts.values()))
    counts = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    return f"tools: nothing to make ({counts})"


def table(survey: Survey, seconds: Mapping[str, float]) -> Table:
    """Return the summary table of a run: each piece, its origin and its build time."""
    shown = Table(box=None, pad_edge=False)
    shown.add_column("tool")
    shown.add_column("is")
    shown.add_column("seconds", justify="right")
    for piece, state in (*survey.tools.items(), *survey.charts.items()):
        made = seconds.get(piece.title)
        now = state.value if made is None else "built" if isinstance(piece, Tool) else "copied"
        shown.add_row(piece.title, now, "" if made is None else f"{made:.0f}")
    return shown
