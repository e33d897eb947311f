"""Reads the engine's events into a result."""

import re
import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from pulumi.automation import CommandResult
from pulumi.automation.events import EngineEvent, StepEventMetadata

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.errors import RehearsalError

# The engine's names of operations that leave a resource as it was.
UNCHANGING = frozenset({"same", "read", "refresh"})


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A violation which a policy found.

    `level` is `mandatory` (it stops the run) or `advisory`; `urn` names the resource, and is empty where
    the policy judges the stack as a whole.
    """

    policy: str
    level: str
    urn: str
    message: str

    @property
    def stops(self) -> bool:
        """Whether the run may not go on."""
        return self.level == "mandatory"


@dataclass(frozen=True, kw_only=True)
class Step:
    """What the engine did, or in a preview would do, to one resource: its own operation name (`update`, ...)."""

    operation: str
    urn: str

    @property
    def summary(self) -> str:
        """The step in words: `update karpenter (kubernetes:helm.sh/v3:Release)`."""
        token = self.urn.split("::")[2].rsplit("$", 1)[-1]
        return f"{self.operation} {self.urn.rsplit('::', 1)[-1]} ({token})"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one command did.

    `changes` counts resources by the engine's own operation names (`create`, `same`, ...); `packs` names the
    policy packs that judged the run, with their versions; `outputs` are the stack's, secrets and values still
    unknown replaced by words; `problems` are the engine's error messages, one for each cause.
    """

    command: str
    stack: str
    changes: Mapping[str, int]
    packs: Mapping[str, str]
    verdicts: tuple[Verdict, ...]
    outputs: Json
    problems: tuple[str, ...]
    seconds: float
    stdout: str
    steps: tuple[Step, ...] = ()

    @property
    def changed(self) -> int:
        """How many resources were, or in a preview would be, changed."""
        return sum(count for operation, count in self.changes.items() if operation not in UNCHANGING)

    @property
    def stopped_by_policy(self) -> bool:
        """Whether a mandatory policy stopped the run."""
        return any(verdict.stops for verdict in self.verdicts)


class EngineFailure(RehearsalError):  # noqa: N818 - what it carries is an outcome, and the message reads as one
    """The engine stopped: the program, a provider or a mandatory policy refused.

    `outcome` is what was done until then.
    """

    def __init__(self, outcome: Outcome, message: str) -> None:
        super().__init__(message)
        self.outcome = outcome


class EngineKilled(EngineFailure):
    """The engine's process was killed; the next run takes up what it left."""


def failure(outcome: Outcome, last: CommandResult | None) -> EngineFailure:
    """Return the failure of a command, with one message for its cause."""
    title = f"{outcome.command} of {outcome.stack}"
    if last is not None and last.code == -signal.SIGKILL:
        return EngineKilled(outcome, f"{title} was killed; run it again: it goes on from where it was")
    return EngineFailure(outcome, f"{title} failed: {_cause(outcome, last.stderr if last else '')}")


def stderr_message(stderr: str) -> str:
    """Return what the engine said of its failure, without the word it begins with."""
    said = [line.removeprefix("error: ") for line in stderr.splitlines() if line.strip()]
    return "\n".join(said) or "the engine gave no reason"


def _cause(outcome: Outcome, stderr: str) -> str:
    if outcome.problems:
        return "\n".join(outcome.problems)
    stopping = [verdict.policy for verdict in outcome.verdicts if verdict.stops]
    if stopping:
        return f"mandatory policies are violated: {', '.join(dict.fromkeys(stopping))}"
    return stderr_message(stderr)


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
        for summary in (begun, done):
            # What a refresh found is known only when it is done.
            if summary is not None and summary.metadata.op not in UNCHANGING:
                found[Step(operation=summary.metadata.op.value, urn=summary.metadata.urn)] = None
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
