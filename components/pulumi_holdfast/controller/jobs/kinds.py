"""`JobKind`: the interface of a kind of job that follows a ladder, and the two kinds that implement it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, Protocol

from pulumi_holdfast.controller.jobs.jobset import JobSetKind
from pulumi_holdfast.controller.jobs.rayjob import RayJobKind

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from pulumi_holdfast.controller.jobs.pod_history import PodHistory
    from pulumi_holdfast.controller.jobs.snapshot import JobKey, Recreation, Snapshot
    from pulumi_holdfast.controller.state_machine.actions import Recreate, Resume, Suspend
    from pulumi_holdfast.controller.state_machine.observation import JobOutcome, Observation
    from pulumi_holdfast.ladder.json import Json


class JobKind(Protocol):
    """One kind of job, by its `api_version` and `kind`.

    Every function is pure and takes objects as the API server returns them. What is the same for all kinds is in
    `fallback.jobs.patches` (state, checkpoint request) and `fallback.jobs.pod_history` (`with_pod`).
    """

    api_version: ClassVar[str]
    kind: ClassVar[str]

    def job_of_pod(self, pod: Json) -> JobKey | None:
        """Return the job of this kind that a pod's labels name; the job may not exist."""
        ...

    def job_of_child(self, child: Json) -> JobKey | None:
        """Return the job of this kind that owns a Job or RayCluster; the job may not exist any more."""
        ...

    def observe(self, snapshot: Snapshot, history: PodHistory) -> tuple[Observation, PodHistory]:
        """Return the observation, and the pod history to keep until the next reconciliation.

        The caller adds what does not depend on the job alone: `clock_jump`, `contending_gang`, `last_yield_at`, `pools` and
        `reservation`.
        """
        ...

    def suspension(self, job: Json, action: Suspend, state: str) -> Json:
        """Return the merge patch of one update that suspends; `state` is the annotation's text."""
        ...

    def resumption(self, job: Json, action: Resume, state: str) -> Json:
        """Return the merge patch of one update that resumes; `state` is the annotation's text."""
        ...

    def outdated_children(self, snapshot: Snapshot) -> tuple[Json, ...]:
        """Return the suspended child Jobs to delete: their template differs from the job's current one."""
        ...

    def recreation(self, job: Json, action: Recreate, state: str) -> Recreation | None:
        """Return how to recreate a failed job; None for a kind that cannot be."""
        ...

    def copied_spec(self, job: Json, pool: str, labels: Mapping[str, str]) -> Json:
        """Return the spec of a job's copy for a pool of another cluster: its children and pods have `labels`.

        It has no field that makes its operator delete it, because its outcome would be lost.
        """
        ...

    def fails_for_good(self, copy: Json) -> bool:
        """Whether a copy that has failed is its job's failure; otherwise the job continues in its own cluster."""
        ...

    def ended_status(self, job: Json, outcome: JobOutcome, message: str, at: datetime) -> Json:
        """Return the status fields that end a suspended job; its operator keeps them."""
        ...


_ALL: Final[tuple[JobKind, ...]] = (JobSetKind(), RayJobKind())
KINDS: Final[Mapping[str, JobKind]] = {each.kind: each for each in _ALL}
"""The job kinds by their name."""


def job_of_pod(pod: Json) -> JobKey | None:
    """Return the job that a pod belongs to, of any kind; None for other pods."""
    for kind in _ALL:
        key = kind.job_of_pod(pod)
        if key is not None:
            return key
    return None


def job_of_child(child: Json) -> JobKey | None:
    """Return the job that owns a Job or RayCluster, of any kind; None for others."""
    for kind in _ALL:
        key = kind.job_of_child(child)
        if key is not None:
            return key
    return None
