"""What the engine's events are read as."""

import signal

from pulumi.automation import CommandResult
from pulumi.automation.events import EngineEvent

from pulumi_holdfast.rehearsal.engine import EngineFailure, EngineKilled
from pulumi_holdfast.rehearsal.engine.events import (
    EngineEventRecorder,
    failure,
    problems,
    readable,
    stack_outputs,
    stderr_message,
    steps,
    verdicts,
)
from tests.support.builders.engine_records import (
    a_verdict,
    a_violation,
    an_error,
    an_outcome,
    event,
    stack_outputs_event,
    urn,
)

_SECRET = {"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "ciphertext": "[secret]"}


def test_a_violation_is_one_verdict_with_policy_level_resource_and_message() -> None:
    (verdict,) = verdicts([a_violation(message="<{%fg 1%}>the ladder ends on spot<{%reset%}>\n")])
    assert verdict.policy == "training-ladder-ends-on-demand", "the policy is not named"
    assert verdict.stops, "a mandatory violation stops the run"
    assert verdict.urn == urn("ladder"), "the resource is not named"
    assert verdict.message == "the ladder ends on spot", "the engine's colour marks are shown to the user"
    (verdict,) = verdicts([a_violation(enforcementLevel="advisory")])
    assert not verdict.stops, "advice would stop the run"
    assert len(verdicts([a_violation(), a_violation()])) == 1, "the engine repeats policy events"


def test_changing_steps_are_listed_once_in_order() -> None:
    def step(kind: str, name: str, operation: str) -> EngineEvent:
        metadata = {"op": operation, "urn": urn(name), "type": "aws:ec2/vpc:Vpc"}
        return event(**{kind: {"metadata": metadata}})

    begun, done = "resourcePreEvent", "resOutputsEvent"
    update = [step(begun, "b", "update"), step(done, "b", "update")]
    # What a refresh finds is known only when it is done.
    refresh = [step(begun, "c", "refresh"), step(done, "c", "delete")]
    found = [one.summary for one in steps([step(begun, "a", "same"), *update, *refresh])]
    assert found == ["update b (aws:ec2/vpc:Vpc)", "delete c (aws:ec2/vpc:Vpc)"], "other changes are listed"


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
    assert told == (message,), "the user reads one message"
    assert problems([an_error("preview failed"), an_error("denied")]) == ("denied",), "it names no cause"
    assert problems([an_error("AccessDenied", of=urn("vpc"))]) == ("vpc: AccessDenied",), "which one failed?"
    of_stack = an_error("f is refused", of=urn("holdfast-dev", "pulumi:pulumi:Stack"))
    assert problems([of_stack]) == ("f is refused",), "the stack's own name tells nothing"


def test_the_last_outputs_are_shown_with_placeholders() -> None:
    outputs = stack_outputs([stack_outputs_event({"login": {"password": _SECRET, "users": [_SECRET]}})])
    assert outputs == {"login": {"password": "[secret]", "users": ["[secret]"]}}, "no ciphertext"
    assert readable("04da6b54-80e4-46f7-96ec-b56ff0331ba9") == "[unknown]", "the engine's marker is shown"
    events = [stack_outputs_event({"a": 1}), stack_outputs_event({"a": 2})]
    assert stack_outputs(events) == {"a": 2}, "outputs of the plan were taken for those of the run"


def test_changes_and_packs_come_from_the_summary() -> None:
    recorder = EngineEventRecorder()
    packs = {"holdfast|local|/somewhere/policies": "0.1.0"}
    changes = {"create": 2, "same": 3}
    recorder(event(summaryEvent={"resourceChanges": changes, "durationSeconds": 1, "PolicyPacks": packs}))
    outcome = recorder.outcome(command="up", stack="dev", seconds=1.0, stdout="")
    assert outcome.changes == changes, "counts are by the engine's operations"
    assert outcome.changed == 2, "what stays the same is no change"
    assert outcome.packs == {"holdfast": "0.1.0"}, "a pack is named, not where it lies"


def _ended(code: int = 255, stderr: str = "") -> CommandResult:
    return CommandResult(stdout="", stderr=stderr, code=code)


def test_the_message_is_the_errors_the_policies_or_the_error_output() -> None:
    told = str(failure(an_outcome(problems=("vpc: denied", "bucket: denied")), _ended()))
    assert told == "up of local failed: vpc: denied\nbucket: denied", "not what went wrong"
    told = str(failure(an_outcome(verdicts=(a_verdict(), a_verdict(urn="other"))), _ended()))
    assert told == "up of local failed: mandatory policies are violated: training-ladder-ends-on-demand", (
        "a policy is named once"
    )
    told = str(failure(an_outcome(verdicts=(a_verdict(level="advisory"),)), _ended(stderr="error: no space")))
    assert told == "up of local failed: no space", "advice does not stop a run"
    assert stderr_message("\nerror: could not load plugin\n\n") == "could not load plugin", "without a prefix"
    assert stderr_message(" \n") == "the engine gave no reason", "an empty message has no cause"


def test_a_failure_contains_the_outcome_and_a_kill_has_a_fix() -> None:
    told = failure(an_outcome(problems=("half a line",)), _ended(code=-signal.SIGKILL))
    assert isinstance(told, EngineKilled), "the caller distinguishes a kill from a failure"
    assert "run it again" in str(told), "the user does not know how to go on"
    outcome = an_outcome(changes={"create": 2})
    told = failure(outcome, _ended())
    assert isinstance(told, EngineFailure), "another kind of failure"
    assert told.outcome is outcome, "the verdicts could not be shown"
