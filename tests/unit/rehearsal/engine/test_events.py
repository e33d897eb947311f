"""What the engine's events are read as."""

import signal

from pulumi.automation import CommandResult

from pulumi_holdfast.rehearsal.engine import EngineFailure, EngineKilled
from pulumi_holdfast.rehearsal.engine.events import failure, problems, stderr_message
from tests.support.builders.engine_records import a_verdict, an_error, an_outcome, urn


def test_problems_name_the_resource_and_the_cause_once() -> None:
    message = "the pool is unknown"
    told = problems(
        [
            an_error(
                f"python inline source runtime error: {message}\nTraceback (most recent call last):\n  File"
            ),
            an_error(f"an unhandled error occurred: python inline source runtime error: {message}"),
        ]
    )
    assert told == (message,)
    assert problems([an_error("preview failed"), an_error("denied")]) == ("denied",)
    assert problems([an_error("AccessDenied", of=urn("vpc"))]) == ("vpc: AccessDenied",)
    of_stack = an_error("f is refused", of=urn("holdfast-dev", "pulumi:pulumi:Stack"))
    assert problems([of_stack]) == ("f is refused",)


def _ended(code: int = 255, stderr: str = "") -> CommandResult:
    return CommandResult(stdout="", stderr=stderr, code=code)


def test_the_message_is_the_errors_the_policies_or_the_error_output() -> None:
    told = str(failure(an_outcome(problems=("vpc: denied", "bucket: denied")), _ended()))
    assert told == "up of local failed: vpc: denied\nbucket: denied"
    told = str(failure(an_outcome(verdicts=(a_verdict(), a_verdict(urn="other"))), _ended()))
    assert told == "up of local failed: mandatory policies are violated: training-ladder-ends-on-demand"
    told = str(failure(an_outcome(verdicts=(a_verdict(level="advisory"),)), _ended(stderr="error: no space")))
    assert told == "up of local failed: no space"
    assert stderr_message("\nerror: could not load plugin\n\n") == "could not load plugin"
    assert stderr_message(" \n") == "the engine gave no reason"


def test_a_failure_contains_the_outcome_and_a_kill_has_a_fix() -> None:
    told = failure(an_outcome(problems=("half a line",)), _ended(code=-signal.SIGKILL))
    assert isinstance(told, EngineKilled)
    assert "run it again" in str(told)
    outcome = an_outcome(changes={"create": 2})
    told = failure(outcome, _ended())
    assert isinstance(told, EngineFailure)
    assert told.outcome is outcome, "the verdicts could not be shown"
