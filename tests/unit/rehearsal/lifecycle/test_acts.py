"""What a rehearsal came to is seen at a glance."""

import pytest

from holdfast.rehearsal.lifecycle.run import Programme
from holdfast.simulator.errors import RehearsalError


def test_each_act_is_announced_and_told_at_the_end() -> None:
    announced: list[str] = []
    programme = Programme(announce=announced.append)
    with programme.act("up") as seen:
        seen.append("3 created")
        seen.append("nothing is left")
    assert announced == ["up"], "whoever watches does not know what is going on"
    (act,) = programme.acts
    assert act.row[:2] == ("up", "3 created; nothing is left"), "what was seen is not told"
    assert "3 created" in programme.table(), "the table leaves an act out"


def test_an_act_that_fails_is_told_as_one_and_the_failure_goes_on() -> None:
    programme = Programme(announce=lambda _: None)
    with pytest.raises(RehearsalError), programme.act("a second up"):
        raise RehearsalError("a second up changed something")
    assert programme.acts[0].row[:2] == ("a second up", "FAILED"), "the table looks as if all went well"
