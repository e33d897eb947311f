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
    warnings,
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
    assert verdict.policy == "training-ladder-ends-on-demand"
    assert verdict.stops
    assert verdict.urn == urn("ladder")
    assert verdict.message == "the ladder ends on spot"
    (verdict,) = verdicts([a_violation(enforcementLevel="advisory")])
    assert not verdict.stops, "advice would stop the run"
    assert len(verdicts([a_violation(), a_violation()])) == 1


def test_changing_steps_are_listed_once_in_order() -> None:
    def step(kind: str, name: str, operation: str) -> EngineEvent:
        metadata = {"op": operation, "urn": urn(name), "type": "aws:ec2/vpc:Vpc"}
        return event(**{kind: {"metadata": metadata}})

    begun, done = "resourcePreEvent", "resOutputsEvent"
    update = [step(begun, "b", "update"), step(done, "b", "update")]
    # What a refresh finds is known only when it is done.
    refresh = [step(begun, "c", "refresh"), step(done, "c", "delete")]
    found = [one.summary for one in steps([step(begun, "a", "same"), *update, *refresh])]
    assert found == ["update b (aws:ec2/vpc:Vpc)", "delete c (aws:ec2/vpc:Vpc)"]


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


def test_warnings_of_the_program_are_listed_without_those_of_one_resource() -> None:
    stack = urn("holdfast-dev", "pulumi:pulumi:Stack")
    heard = [an_error("not checked: quotas", of=stack, severity="warning")] * 2
    heard += [an_error("kept by policy", of=urn("crds"), severity="warning"), an_error("denied", of=stack)]
    assert warnings(heard) == ("not checked: quotas",)


def test_the_last_outputs_are_shown_with_placeholders() -> None:
    outputs = stack_outputs([stack_outputs_event({"login": {"password": _SECRET, "users": [_SECRET]}})])
    assert outputs == {"login": {"password": "[secret]", "users": ["[secret]"]}}
    assert readable("04da6b54-80e4-46f7-96ec-b56ff0331ba9") == "[unknown]"
    events = [stack_outputs_event({"a": 1}), stack_outputs_event({"a": 2})]
    assert stack_outputs(events) == {"a": 2}


def test_changes_and_packs_come_from_the_summary() -> None:
    recorder = EngineEventRecorder()
    packs = {"holdfast|local|/somewhere/policies": "0.1.0"}
    changes = {"create": 2, "same": 3}
    recorder(event(summaryEvent={"resourceChanges": changes, "durationSeconds": 1, "PolicyPacks": packs}))
    outcome = recorder.outcome(command="up", stack="dev", seconds=1.0, stdout="")
    assert outcome.changes == changes
    assert outcome.changed == 2
    assert outcome.packs == {"holdfast": "0.1.0"}


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
