"""Converts the engine's events to the result of a run, and its failures to one message."""

import re
import signal
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import cast

from pulumi.automation import CommandResult
from pulumi.automation.events import EngineEvent, StepEventMetadata

from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.rehearsal.errors import RehearsalError

# The engine's names of operations that leave a resource as it was.
UNCHANGING = frozenset({"same", "read", "refresh"})


@dataclass(frozen=True, kw_only=True)
class PolicyVerdict:
    """A policy violation.

    `level` is `mandatory` (it stops the run) or `advisory`; `urn` is the resource, empty for a policy on the
    whole stack.
    """

    policy: str
    level: str
    urn: str
    message: str

    @property
    def stops(self) -> bool:
        """Whether the violation stops the run."""
        return self.level == "mandatory"


@dataclass(frozen=True, kw_only=True)
class EngineStep:
    """An operation of the engine on one resource, planned in a preview: `update`, ..."""

    operation: str
    urn: str

    @property
    def summary(self) -> str:
        """The step in words: `update karpenter (kubernetes:helm.sh/v3:Release)`."""
        token = self.urn.split("::")[2].rsplit("$", 1)[-1]
        return f"{self.operation} {self.urn.rsplit('::', 1)[-1]} ({token})"


@dataclass(frozen=True, kw_only=True)
class CommandOutcome:
    """The result of one command.

    `changes` counts resources by operation (`create`, `same`, ...); `packs` are the versions of the policy
    packs that checked the run, by name; `outputs` are the stack's, with placeholders for secrets and unknown
    values; `problems` are the engine's error messages, one for each cause, and `warnings` those of the program.
    """

    command: str
    stack: str
    changes: Mapping[str, int]
    packs: Mapping[str, str]
    verdicts: tuple[PolicyVerdict, ...]
    outputs: Json
    problems: tuple[str, ...]
    seconds: float
    stdout: str
    steps: tuple[EngineStep, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def changed(self) -> int:
        """How many resources the run changed, or a preview would change."""
        return sum(count for operation, count in self.changes.items() if operation not in UNCHANGING)

    @property
    def judgement(self) -> str:
        """What the policies found: `no violations, 1 advisory message`. A message may say that all is proved."""
        stopping = sum(verdict.stops for verdict in self.verdicts)
        advice = len(self.verdicts) - stopping
        found = (("violation", stopping), ("advisory message", advice))
        return ", ".join(f"{count or 'no'} {name}{'' if count == 1 else 's'}" for name, count in found)


class EngineFailure(RehearsalError):  # noqa: N818 - what it carries is an outcome, and the message reads as one
    """The engine stopped because of the program, a provider, or a mandatory policy.

    `outcome` is the result up to the failure.
    """

    def __init__(self, outcome: CommandOutcome, message: str) -> None:
        super().__init__(message)
        self.outcome = outcome


class EngineKilled(EngineFailure):
    """The engine's process was killed; the next run recovers its pending operations."""


def failure(outcome: CommandOutcome, last: CommandResult | None) -> EngineFailure:
    """Return the failure of a command, with one message for the cause."""
    title = f"{outcome.command} of {outcome.stack}"
    if last is not None and last.code == -signal.SIGKILL:
        return EngineKilled(outcome, f"{title} was killed; run it again to continue")
    return EngineFailure(outcome, f"{title} failed: {_cause(outcome, last.stderr if last else '')}")


def stderr_message(stderr: str) -> str:
    """Return the engine's error output without the prefix `error: `."""
    said = [line.removeprefix("error: ") for line in stderr.splitlines() if line.strip()]
    return "\n".join(said) or "the engine gave no reason"


def _cause(outcome: CommandOutcome, stderr: str) -> str:
    if outcome.problems:
        return "\n".join(outcome.problems)
    stopping = [verdict.policy for verdict in outcome.verdicts if verdict.stops]
    if stopping:
        return f"mandatory policies are violated: {', '.join(dict.fromkeys(stopping))}"
    return stderr_message(stderr)


# The engine's markers for hidden secrets and unknown values in the properties of an event.
_SECRET_KEY = "4dabf18193072939515e22adb298388d"  # noqa: S105 - a marker, the same in every engine
_UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
_COLOUR = re.compile(r"<\{%.*?%\}>|\x1b\[[0-9;]*m")
_TRACEBACK = re.compile(r"\s*Traceback \(most recent call last\):.*", re.DOTALL)
_WRAPPER = re.compile(r"^(an unhandled error occurred: )?(python inline source runtime error: )?")
# What the engine adds to every failure.
_NO_CAUSES = frozenset({"preview failed", "update failed"})
_STACK_TYPE = "pulumi:pulumi:Stack"


class EngineEventRecorder:
    """Collects the events of a run, on the thread that streams them."""

    def __init__(self) -> None:
        self._events: list[EngineEvent] = []

    def __call__(self, event: EngineEvent) -> None:
        """Record an event, except the hundreds of debug messages."""
        diagnostic = event.diagnostic_event
        if diagnostic is None or diagnostic.severity != "debug":
            self._events.append(event)

    def outcome(self, *, command: str, stack: str, seconds: float, stdout: str) -> CommandOutcome:
        """Return the result of the run so far."""
        summaries = [event.summary_event for event in self._events if event.summary_event]
        summary = summaries[-1] if summaries else None
        return CommandOutcome(
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
            warnings=warnings(self._events),
        )


def verdicts(events: Iterable[EngineEvent]) -> tuple[PolicyVerdict, ...]:
    """Return the policy violations, each once, in order."""
    found = (event.policy_event for event in events)
    return tuple(
        dict.fromkeys(
            PolicyVerdict(
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
    """Return the error messages, each once, without colors and tracebacks."""
    found = (event.diagnostic_event for event in events)
    messages = (
        _of_resource(diagnostic.urn, without_traceback(plain(diagnostic.message)))
        for diagnostic in found
        if diagnostic is not None and diagnostic.severity == "error"
    )
    return tuple(dict.fromkeys(message for message in messages if message and message not in _NO_CAUSES))


def warnings(events: Iterable[EngineEvent]) -> tuple[str, ...]:
    """Return the warnings of the program, each once, without those of a provider on one resource."""
    found = (event.diagnostic_event for event in events)
    return tuple(
        dict.fromkeys(
            plain(diagnostic.message)
            for diagnostic in found
            if diagnostic is not None
            and diagnostic.severity == "warning"
            and (not diagnostic.urn or f"::{_STACK_TYPE}::" in diagnostic.urn)
        )
    )


def steps(events: Iterable[EngineEvent]) -> tuple[EngineStep, ...]:
    """Return the steps that change a resource, each once, in the order of their start (in a refresh: of their end)."""
    found: dict[EngineStep, None] = {}
    for event in events:
        begun, done = event.resource_pre_event, event.res_outputs_event
        for summary in (begun, done):
            # The result of a refresh is known only at its end.
            if summary is not None and summary.metadata.op not in UNCHANGING:
                found[EngineStep(operation=summary.metadata.op.value, urn=summary.metadata.urn)] = None
    return tuple(found)


def stack_outputs(events: Iterable[EngineEvent]) -> Json:
    """Return the stack's last outputs, with placeholders for secrets and unknown values."""
    outputs: Json = {}
    for event in events:
        done = event.res_outputs_event
        if done is not None and done.metadata.type == _STACK_TYPE:
            outputs = _announced(done.metadata)
    return {name: readable(value) for name, value in outputs.items()}


def readable(value: JsonValue) -> JsonValue:
    """Return a property with placeholders for the engine's markers."""
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
    """Return a message without colors and surrounding whitespace."""
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
