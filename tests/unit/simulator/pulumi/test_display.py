"""The engine's lines as they are shown."""

from holdfast.simulator.pulumi.display import Display


def _shown(*lines: str) -> list[str]:
    shown: list[str] = []
    display = Display(shown.append)
    for line in lines:
        display(line)
    return shown


def test_lines_are_passed_on_in_their_order() -> None:
    assert _shown(" + vpc create", "", "Resources:") == [" + vpc create", "", "Resources:"], "a line was lost"


def test_a_traceback_is_left_out_and_what_follows_is_shown() -> None:
    shown = _shown(
        "    error: boo",
        "    Traceback (most recent call last):",
        '      File "x"',
        "    ValueError",
        "",
        "Resources:",
    )
    assert shown == ["    error: boo", "", "Resources:"], "no traceback reaches a user"


def test_advice_for_a_backend_kept_elsewhere_is_left_out() -> None:
    shown = _shown("Duration: 1s", "If you want to remove the stack completely, run `pulumi stack rm dev`.")
    assert shown == ["Duration: 1s"], "the command would not find this stack"
