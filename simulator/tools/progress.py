"""What a long build shows: lines and a heartbeat in a log, a live table on a terminal."""

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

#: Long enough not to fill a log, short enough that nobody takes a compiling minute for a hang.
_HEARTBEAT_SECONDS = 15.0


@dataclass(frozen=True, kw_only=True)
class Work:
    """One piece being made: since when (monotonic seconds), packages compiled so far, the newest line."""

    since: float
    packages: int = 0
    doing: str = ""


def clock(seconds: float) -> str:
    """Seconds as minutes and seconds: `2:05`."""
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02d}"


class Progress:
    """Collects what the chains do, from several threads. This one shows lines and a heartbeat."""

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
        """A piece is being made from now on."""
        with self._lock:
            self._working[name] = Work(since=self._now())
        self._say(f"{name}: started")

    def line(self, name: str, text: str) -> None:
        """A `go` command said something: a line without a space is a package it has begun to compile."""
        with self._lock:
            work = self._working[name]
            is_package = bool(text) and " " not in text
            self._working[name] = Work(
                since=work.since, packages=work.packages + is_package, doing=text.removeprefix("go: ")
            )

    def finished(self, name: str) -> None:
        """A piece stands in its place."""
        with self._lock:
            self._seconds[name] = self._now() - self._working.pop(name).since
            done = len(self._seconds)
        self._say(f"{name}: done in {clock(self._seconds[name])}  ({done} of {self._total})")

    def tick(self) -> None:
        """Called about once a second while something is being made."""
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
        """Nothing to end: lines stay."""

    def _say(self, text: str) -> None:
        self._console.print(f"tools: {text}", highlight=False, markup=False, soft_wrap=True)


class LiveProgress(Progress):
    """The same on a terminal: finished pieces as lines, those being made as a table that moves."""

    def __init__(self, console: Console, total: int, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__(console, total, now)
        self._spinners: dict[str, Spinner] = {}
        self._live = Live(get_renderable=self._table, console=console, transient=True, refresh_per_second=8)

    def started(self, name: str) -> None:
        """A piece is being made from now on: a row of the table says so, no line."""
        with self._lock:
            self._spinners[name] = Spinner("dots")
            self._working[name] = Work(since=self._now())

    def tick(self) -> None:
        """Nothing: the table moves by itself."""

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
    """Return the progress that fits where the output goes."""
    return LiveProgress(console, total) if console.is_terminal else Progress(console, total)


def one_line(survey: Survey) -> str:
    """Return the line for a run that had nothing to make."""
    states = Counter(state.value for state in (*survey.tools.values(), *survey.charts.values()))
    told = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    return f"tools: nothing to make ({told})"


def table(survey: Survey, seconds: Mapping[str, float]) -> Table:
    """Return the table for a run that made something: each piece, where it is from, what it took."""
    shown = Table(box=None, pad_edge=False)
    shown.add_column("tool")
    shown.add_column("is")
    shown.add_column("seconds", justify="right")
    for piece, state in (*survey.tools.items(), *survey.charts.items()):
        made = seconds.get(piece.title)
        now = state.value if made is None else "built" if isinstance(piece, Tool) else "copied"
        shown.add_row(piece.title, now, "" if made is None else f"{made:.0f}")
    return shown
