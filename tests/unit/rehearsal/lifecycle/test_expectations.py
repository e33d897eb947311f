"""An act that shows what it should not is refused, with what it showed."""

import pytest

from holdfast.rehearsal.lifecycle.checks import refuse_changes, refuse_leftovers, some
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.pulumi.results import Step
from tests.support.rehearsals import an_outcome, urn


def test_a_run_that_had_nothing_to_do_and_did_something_is_refused_with_what() -> None:
    step = Step(operation="update", urn=urn("network"))
    with pytest.raises(RehearsalError, match=r"^a second up changed update network \(aws:ec2/vpc:Vpc\)$"):
        refuse_changes("a second up", an_outcome(changes={"update": 1, "same": 9}, steps=(step,)))


def test_a_run_that_did_nothing_is_taken() -> None:
    refuse_changes("a second up", an_outcome(changes={"same": 9}))
    assert an_outcome(changes={"same": 9}).changed == 0, "what is the same is no change"


def test_what_is_left_is_named() -> None:
    with pytest.raises(RehearsalError, match="has left Node i-1"):
        refuse_leftovers(["Node i-1"])
    refuse_leftovers([])


def test_of_many_things_the_first_are_named() -> None:
    assert some([str(n) for n in range(7)]) == "0, 1, 2, 3, 4 and 2 more", "hundreds of lines tell less"
    assert some(["a"]) == "a", "one is named alone"
