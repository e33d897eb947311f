"""The engine's lines as they are shown."""

import threading

from pulumi.automation.events import EngineEvent

from pulumi_holdfast.rehearsal.engine.display import Display, ProgressReporter, progress_line
from tests.support.builders.engine_records import event, urn


def _shown(*lines: str) -> list[str]:
    shown: list[str] = []
    display = Display(shown.append)
    for line in lines:
        display(line)
    return shown


def test_lines_are_shown_without_tracebacks_and_advice() -> None:
    assert _shown(" + vpc create", "", "Resources:") == [" + vpc create", "", "Resources:"]
    shown = _shown(
        "    error: boo",
        "    Traceback (most recent call last):",
        '      File "x"',
        "    ValueError",
        "",
        "Resources:",
    )
    assert shown == ["    error: boo", "", "Resources:"]
    shown = _shown("Duration: 1s", "If you want to remove the stack completely, run `pulumi stack rm dev`.")
    assert shown == ["Duration: 1s"], "the command would not find this stack"


def _step(kind: str, name: str, *, custom: bool = True) -> EngineEvent:
    state = {"urn": urn(name), "type": "aws:ec2/vpc:Vpc", "custom": custom}
    return event(
        **{kind: {"metadata": {"op": "create", "urn": urn(name), "type": state["type"], "new": state}}}
    )


def _begins(name: str, *, custom: bool = True) -> EngineEvent:
    return _step("resourcePreEvent", name, custom=custom)


def _ends(name: str) -> EngineEvent:
    return _step("resOutputsEvent", name)


class _Screen:
    """Keeps what is shown, and tells when the first line is there."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.first = threading.Event()

    def __call__(self, line: str) -> None:
        self.lines.append(line)
        self.first.set()


def test_a_progress_line_names_operations_and_durations() -> None:
    line = progress_line({urn("new"): 28.0, urn("old"): 10.0}, now=30.0)
    assert line == "    waiting for old (20 s), new (2 s)"
    assert progress_line({}, now=30.0) is None


def test_lines_and_progress_are_shown_at_once() -> None:
    screen = _Screen()
    with ProgressReporter(screen, quiet_seconds=0.001) as waiting:
        waiting.event(_begins("operator"))
        assert screen.first.wait(30)
    assert screen.lines[0].startswith("    waiting for operator (")
    screen = _Screen()
    with ProgressReporter(screen) as waiting:
        waiting.line(" + vpc created")
        assert screen.lines == [" + vpc created"]


def test_finished_operations_and_components_are_not_reported() -> None:
    screen = _Screen()
    with ProgressReporter(screen, quiet_seconds=0.001) as waiting:
        for one in (_begins("component", custom=False), _begins("vpc"), _ends("vpc"), _begins("operator")):
            waiting.event(one)
        assert screen.first.wait(30)
        screen.lines.clear()
        screen.first.clear()
        assert screen.first.wait(30)
    assert all("vpc" not in line and "component" not in line for line in screen.lines)
