"""A run that failed is told by one message."""

import signal

from pulumi.automation import CommandResult

from holdfast.simulator.pulumi import EngineFailure, EngineKilled
from holdfast.simulator.pulumi.events import failure, last_words
from tests.support.builders.engine_records import a_verdict, an_outcome


def _ended(code: int = 255, stderr: str = "") -> CommandResult:
    return CommandResult(stdout="", stderr=stderr, code=code)


def test_the_engines_errors_are_the_message() -> None:
    told = str(failure(an_outcome(problems=("vpc: denied", "bucket: denied")), _ended()))
    assert told == "up of local failed: vpc: denied\nbucket: denied", "not what went wrong"


def test_without_an_error_the_violated_policies_are_the_message() -> None:
    told = str(failure(an_outcome(verdicts=(a_verdict(), a_verdict(urn="other"))), _ended()))
    assert told == "up of local failed: mandatory policies are violated: training-ladder-ends-on-demand", (
        "a policy is named once"
    )


def test_advice_is_not_given_as_the_reason() -> None:
    told = str(failure(an_outcome(verdicts=(a_verdict(level="advisory"),)), _ended(stderr="error: no space")))
    assert told == "up of local failed: no space", "advice does not stop a run"


def test_what_the_engine_said_last_is_the_message_where_it_had_no_events() -> None:
    assert last_words("\nerror: could not load plugin\n\n") == "could not load plugin", (
        "the word error is ours"
    )
    assert last_words(" \n") == "the engine gave no reason", "an empty message helps nobody"


def test_a_killed_engine_is_told_apart_and_says_what_to_do() -> None:
    told = failure(an_outcome(problems=("half a line",)), _ended(code=-signal.SIGKILL))
    assert isinstance(told, EngineKilled), "whoever killed it must be able to tell"
    assert "run it again" in str(told), "the user does not know how to go on"


def test_a_failure_carries_what_was_done_until_then() -> None:
    outcome = an_outcome(changes={"create": 2})
    told = failure(outcome, _ended())
    assert isinstance(told, EngineFailure), "another kind of failure"
    assert told.outcome is outcome, "the verdicts could not be shown"
