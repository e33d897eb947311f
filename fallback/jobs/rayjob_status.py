"""The states of a RayJob, and which of them honour a suspension: see docs/adr/0017-rayjob-moves.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.fallback.jobs.values import count, mapping, moment, text
from holdfast.fallback.state_machine.observation import Outcome

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.scheduling.json import Json

RUNNING: Final = "Running"
SUSPENDED: Final = "Suspended"
# In every other state the operator looks at `spec.suspend` later or never.
_HONOURS_SUSPENSION: Final = frozenset({"Initializing", RUNNING})
_COMPLETE: Final = "Complete"
# A RayJob that was once found invalid is never looked at again, even when it is put right.
_FAILED: Final = frozenset({"Failed", "ValidationFailed"})


def deployment_status(job: Json) -> str:
    """Return the operator's own state of a RayJob, empty for one that it has not begun."""
    return text(mapping(job.get("status")).get("jobDeploymentStatus"))


def honours_suspension(job: Json) -> bool:
    """Whether a suspension would be carried out now."""
    return deployment_status(job) in _HONOURS_SUSPENSION


def outcome_of(job: Json) -> Outcome | None:
    """Return how a RayJob ended; None while it may go on, which one that is retried does."""
    status = deployment_status(job)
    if status == _COMPLETE:
        return Outcome.COMPLETED
    return Outcome.FAILED if status in _FAILED else None


def ended_at(job: Json) -> datetime | None:
    """Return when a RayJob ended."""
    return moment(mapping(job.get("status")).get("endTime"))


def failed_attempts(job: Json) -> int:
    """Return the operator's counter of the times it has failed."""
    return count(mapping(job.get("status")).get("failed"))


def never_suspendable(job: Json) -> str | None:
    """Return why a suspension would break a RayJob, and the fix; None where it would not.

    KubeRay takes a suspended RayJob of these kinds for invalid, and never looks at it again.
    """
    spec = mapping(job.get("spec"))
    if mapping(spec.get("clusterSelector")):
        return (
            "it runs on a RayCluster of somebody else's (clusterSelector), which no move of the job can move: "
            "create the RayJob anew with a rayClusterSpec of its own"
        )
    if spec.get("shutdownAfterJobFinishes") is not True:
        return (
            "KubeRay suspends no RayJob whose shutdownAfterJobFinishes is not true: set it, which may be done at any "
            "time, with deletionStrategy.deletionRules left out"
        )
    if text(spec.get("submissionMode")) == "InteractiveMode":
        return (
            "it waits for a job to be submitted by hand (InteractiveMode), which a move would lose: create the RayJob "
            "anew with another submissionMode"
        )
    return None
