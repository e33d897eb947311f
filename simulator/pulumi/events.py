"""Reads the engine's events into a result."""

import re
from collections.abc import Iterable, Mapping
from typing import cast

from pulumi.automation.events import EngineEvent, StepEventMetadata

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.pulumi.results import UNCHANGING, Outcome, Step, Verdict

# How the engine marks, inside an event's properties, a secret it has hidden and a value it does not know yet.
_SECRET_KEY = "4dabf18193072939515e22adb298388d"  # noqa: S105 - a marker, the same in every engine
_UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
_COLOUR = re.compile(r"<\{%.*?%\}>|\x1b\[[0-9;]*m")
_TRACEBACK = re.compile(r"\s*Traceback \(most recent call last\):.*", re.DOTALL)
_WRAPPER = re.compile(r"^(an unhandled error occurred: )?(python inline source runtime error: )?")
# What the engine adds to every failure.
_NO_CAUSES = frozenset({"preview failed", "update failed"})
_STACK_TYPE = "pulumi:pulumi:Stack"


class EventRecorder:
    """Collects what a run's result is made of, on the thread that streams the events."""

    def __init__(self) -> None:
        self._events: list[EngineEvent] = []

    def __call__(self, event: EngineEvent) -> None:
        """Keep an event, unless it is one of the hundreds of debugging lines."""
        diagnostic = event.diagnostic_event
        if diagnostic is None or diagnostic.severity != "debug":
            self._events.append(event)

    def outcome(self, *, command: str, stack: str, seconds: float, stdout: str) -> Outcome:
        """Return the result of the run so far."""
        summaries = [event.summary_event for event in self._events if event.summary_event]
        summary = summaries[-1] if summaries else None
        return Outcome(
            command=command,
            stack=stack,
            changes={str(op): count for op, count in summary.resource_changes.items()} if summary else {},
            packs=_packs(summary.policy_packs) if summary else {},
            verdicts=verdicts(self._events),
            outputs=stack_outputs(self._events),
            problems=problems(self._events),
            seconds=seconds,
            stdout=stdout,
            steps=steps(self._events),
        )


def verdicts(events: Iterable[EngineEvent]) -> tuple[Verdict, ...]:
    """Return the policies' violations, each once and in their order."""
    found = (event.policy_event for event in events)
    return tuple(
        dict.fromkeys(
            Verdict(
                policy=policy.policy_name,
                level="mandatory" if policy.enforcement_level == "mandatory" else "advisory",
                urn=policy.resource_urn or "",
                message=plain(policy.message),
            )
            for policy in found
            if policy is not None
        )
    )


def problems(events: Iterable[EngineEvent]) -> tuple[str, ...]:
    """Return the messages of errors, each once, as one reads them: no colours, no traceback."""
    found = (event.diagnostic_event for event in events)
    messages = (
        _of_resource(diagnostic.urn, without_traceback(plain(diagnostic.message)))
        for diagnostic in found
        if diagnostic is not None and diagnostic.severity == "error"
    )
    return tuple(dict.fromkeys(message for message in messages if message and message not in _NO_CAUSES))


def steps(events: Iterable[EngineEvent]) -> tuple[Step, ...]:
    """Return the steps that change a resource, each once, in the order in which they were begun or, of a refresh, done."""
    found: dict[Step, None] = {}
    for event in events:
        begun, done = event.resource_pre_event, event.res_outputs_event
        for told in (begun, done):
            # What a refresh found is known only when it is done.
            if told is not None and told.metadata.op not in UNCHANGING:
                found[Step(operation=told.metadata.op.value, urn=told.metadata.urn)] = None
    return tuple(found)


def stack_outputs(events: Iterable[EngineEvent]) -> Json:
    """Return the stack's outputs as last announced; secrets and unknown values as words."""
    outputs: Json = {}
    for event in events:
        done = event.res_outputs_event
        if done is not None and done.metadata.type == _STACK_TYPE:
            outputs = _announced(done.metadata)
    return {name: readable(value) for name, value in outputs.items()}


def readable(value: JsonValue) -> JsonValue:
    """Return a property with the engine's markers replaced by words."""
    if value == _UNKNOWN:
        return "[unknown]"
    if isinstance(value, Mapping):
        if _SECRET_KEY in value:
            return "[secret]"
        return {key: readable(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [readable(inner) for inner in value]
    return value


def plain(text: str) -> str:
    """Return a message without the engine's colours and outer space."""
    return _COLOUR.sub("", text).strip()


def without_traceback(message: str) -> str:
    """Return the message of a failed program without its traceback."""
    return _WRAPPER.sub("", _TRACEBACK.sub("", message))


def _packs(named: Mapping[str, str]) -> dict[str, str]:
    # A pack from a folder is named `holdfast|local|<folder>`.
    return {name.partition("|")[0]: version for name, version in named.items()}


def _announced(metadata: StepEventMetadata) -> Json:
    outputs = metadata.new.outputs if metadata.new else None
    return cast("Json", outputs or {})


def _of_resource(urn: str | None, message: str) -> str:
    if not urn or f"::{_STACK_TYPE}::" in urn or not message:
        return message
    return f"{urn.rsplit('::', 1)[-1]}: {message}"
