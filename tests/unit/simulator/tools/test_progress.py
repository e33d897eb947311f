"""A long build shows its progress without filling a log."""

import io

from rich.console import Console

from holdfast.simulator.tools.progress import LiveProgress, Progress, clock, progress_on


class Clock:
    """A manual clock of monotonic seconds."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def shown_by(console: Console) -> str:
    assert isinstance(console.file, io.StringIO), "the tests write into memory"
    return console.file.getvalue()


def test_start_and_end_of_a_piece_are_one_line_each() -> None:
    now, console = Clock(), Console(file=io.StringIO(), width=20)
    progress = Progress(console, total=2, now=now)
    progress.started("helm")
    now.seconds += 125
    progress.finished("helm")
    assert shown_by(console) == "tools: helm: started\ntools: helm: done in 2:05  (1 of 2)\n", "whole lines"
    assert progress.seconds == {"helm": 125.0}, "the summary shows the same seconds"


def test_log_gets_a_heartbeat_every_15_seconds() -> None:
    now, console = Clock(), Console(file=io.StringIO())
    progress = Progress(console, total=2, now=now)
    progress.started("helm")
    progress.line("helm", "k8s.io/api/core/v1")
    progress.line("helm", "go: downloading x v1")
    for _ in range(31):
        now.seconds += 1
        progress.tick()
    beats = [line for line in shown_by(console).splitlines() if "so far" in line]
    assert beats == [
        "tools: 0:15 so far: helm 0:15 (1 packages)",
        "tools: 0:30 so far: helm 0:30 (1 packages)",
    ], "a download is no compiled package"


def test_terminal_shows_a_live_table() -> None:
    now, console = Clock(), Console(file=io.StringIO(), force_terminal=True, width=100)
    progress = LiveProgress(console, total=1, now=now)
    with progress:
        progress.started("helm")
        progress.line("helm", "k8s.io/api/core/v1")
        now.seconds += 61
    assert "k8s.io/api/core/v1 (1 packages)" in shown_by(console), "the table shows the current package"
    assert "1:01" in shown_by(console), "the table shows the elapsed time"
    assert isinstance(progress_on(Console(file=io.StringIO(), force_terminal=True), 1), LiveProgress), (
        "a terminal gets a table"
    )
    assert not isinstance(progress_on(Console(file=io.StringIO()), 1), LiveProgress), "a log gets lines"
    assert clock(3725.9) == "62:05", "builds take minutes"
