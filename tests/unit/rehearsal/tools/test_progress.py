"""A long build shows its progress without filling a log."""

from pulumi_holdfast.rehearsal.tools.progress import Progress


class Clock:
    """A manual clock of monotonic seconds."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def test_start_and_end_of_a_piece_are_one_line_each() -> None:
    now, shown = Clock(), list[str]()
    progress = Progress(shown.append, total=2, now=now)
    progress.started("helm")
    now.seconds += 125
    progress.finished("helm")
    assert shown == ["tools: helm: started", "tools: helm: done in 2:05  (1 of 2)"]
    assert progress.seconds == {"helm": 125.0}


def test_log_gets_a_heartbeat_every_15_seconds() -> None:
    now, shown = Clock(), list[str]()
    progress = Progress(shown.append, total=2, now=now)
    progress.started("helm")
    progress.line("helm", "k8s.io/api/core/v1")
    progress.line("helm", "go: downloading x v1")
    for _ in range(31):
        now.seconds += 1
        progress.tick()
    beats = [line for line in shown if "so far" in line]
    assert beats == [
        "tools: 0:15 so far: helm 0:15 (1 packages)",
        "tools: 0:30 so far: helm 0:30 (1 packages)",
    ]
