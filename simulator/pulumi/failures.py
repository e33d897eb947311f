"""The ways a run of the engine ends early."""

import signal

from pulumi.automation import CommandResult

from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.pulumi.results import Outcome


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


def last_words(stderr: str) -> str:
    """Return what the engine said of its failure, without the word it begins with."""
    said = [line.removeprefix("error: ") for line in stderr.splitlines() if line.strip()]
    return "\n".join(said) or "the engine gave no reason"


def _cause(outcome: Outcome, stderr: str) -> str:
    if outcome.problems:
        return "\n".join(outcome.problems)
    stopping = [verdict.policy for verdict in outcome.verdicts if verdict.stops]
    if stopping:
        return f"mandatory policies are violated: {', '.join(dict.fromkeys(stopping))}"
    return last_words(stderr)
