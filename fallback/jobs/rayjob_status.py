"""The states of a RayJob, and which of them honour a suspension: see docs/adr/0017-rayjob-moves.md."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from holdfast.fallback.api.objects import count, mapping, moment, text, uid_of
from holdfast.fallback.jobs.pod_history import RETENTION, FailedAttempt, part_of
from holdfast.fallback.jobs.pods_and_nodes import (
    NodeState,
    has_ended,
    is_ready,
    is_terminating,
    node_of,
    state_of_node,
)
from holdfast.fallback.state_machine.events import EventReason, standing_event
from holdfast.fallback.state_machine.observation import Cause, Loss, Outcome, Part

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.fallback.jobs.pod_history import RayHistory
    from holdfast.fallback.jobs.snapshot import Snapshot
    from holdfast.fallback.state_machine.events import JobEvent
    from holdfast.scheduling.json import Json


RUNNING: Final = "Running"
SUSPENDED: Final = "Suspended"
# In every other state the operator looks at `spec.suspend` later or never.
_HONORS_SUSPENSION: Final = frozenset({"Initializing", RUNNING})
_COMPLETE: Final = "Complete"
# A RayJob that was once found invalid is never looked at again, even when it is put right.
_FAILED: Final = frozenset({"Failed", "ValidationFailed"})


def deployment_status(job: Json) -> str:
    """Return the operator's own state of a RayJob, empty for one that it has not begun."""
    return text(mapping(job.get("status")).get("jobDeploymentStatus"))


def honors_suspension(job: Json) -> bool:
    """Whether a suspension would be carried out now."""
    return deployment_status(job) in _HONORS_SUSPENSION


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


def not_suspendable_reason(job: Json) -> str | None:
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


# It did not begin to run in time: for want of nodes or of an image, which other clocks measure. No failure of its own.
_NOT_STARTED: Final = "PreRunningDeadlineExceeded"
_LONGEST: Final = 300


def with_new_failures(memory: RayHistory, snapshot: Snapshot) -> RayHistory:
    """Return the memory with the failures taken in that have been counted since the last look.

    Those from before the first look are nobody's any more: the job's state says up to where they are accounted for.
    """
    failed = failed_attempts(snapshot.job)
    if memory.failed is None or failed < memory.failed:
        # A counter that has gone back is another job's, of the same name.
        return replace(memory, failed=failed, attempts=())
    status = mapping(snapshot.job.get("status"))
    new = tuple(
        FailedAttempt(
            number=number,
            at=snapshot.now,
            reason=text(status.get("reason")) or "unknown",
            message=text(status.get("message"))[:_LONGEST],
        )
        for number in range(memory.failed + 1, failed + 1)
    )
    kept = tuple(each for each in memory.attempts if snapshot.now - each.at <= RETENTION)
    return replace(memory, failed=failed, attempts=(*kept, *new))


def failed_attempts_as_losses(memory: RayHistory, job: Json, pool: str | None) -> tuple[Loss, ...]:
    """Return what has failed without any pod being lost: the driver itself, which runs on the head."""
    return tuple(
        Loss(
            pod=f"{uid_of(job)}/{each.number}",
            at=each.at,
            cause=Cause.APPLICATION,
            part=Part.HEAD,
            pool=pool,
        )
        for each in memory.attempts
        if each.reason != _NOT_STARTED
    )


def attempt_failed_events(memory: RayHistory) -> tuple[JobEvent, ...]:
    """Say what the last attempt failed of."""
    if not memory.attempts:
        return ()
    last = memory.attempts[-1]
    said = f": {last.message}" if last.message else ""
    return (
        standing_event(
            EventReason.ATTEMPT_FAILED, f"Attempt {last.number} of the RayJob failed ({last.reason}){said}"
        ),
    )


def head_unready_since(memory: RayHistory, snapshot: Snapshot) -> datetime | None:
    """Return since when we see that a running job's head is not there, not ready, or on a node that is lost.

    Only while the job runs: before that its head is starting, and a slow start is nobody's loss. A head that answers
    again ends it: its operator then submits the job anew by itself.
    """
    if deployment_status(snapshot.job) != RUNNING or any(
        _head_answers(pod, snapshot) for pod in snapshot.pods
    ):
        return None
    return memory.head_unready_since or snapshot.now


def _head_answers(pod: Json, snapshot: Snapshot) -> bool:
    if part_of(pod) is not Part.HEAD or has_ended(pod) or is_terminating(pod) or not is_ready(pod):
        return False
    # A head's node that is lost leaves it "ready" for as long as the node controller waits.
    return state_of_node(node_of(pod), snapshot.nodes, snapshot.claims) in {
        NodeState.LIVE,
        NodeState.DRAINING,
    }
