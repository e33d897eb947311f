"""The engine's lines as they are shown."""

from pulumi_holdfast.rehearsal.engine.display import Display, progress_line
from tests.support.builders.engine_records import urn


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


def test_a_progress_line_names_operations_and_durations() -> None:
    line = progress_line({urn("new"): 28.0, urn("old"): 10.0}, now=30.0)
    assert line == "    waiting for old (20 s), new (2 s)"
    assert progress_line({}, now=30.0) is None
