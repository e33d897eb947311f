"""The front of this package: which kinds of jobs follow a ladder, and what can be asked of each."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, Protocol

from holdfast.fallback.jobs.jobset import JobSetKind
from holdfast.fallback.jobs.rayjob import RayJobKind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.fallback.jobs.pod_history import PodHistory
    from holdfast.fallback.jobs.snapshot import JobKey, Recreation, Snapshot
    from holdfast.fallback.state_machine.actions import Recreate, Resume, Suspend
    from holdfast.fallback.state_machine.observation import Observation
    from holdfast.scheduling.json import Json


class JobKind(Protocol):
    """One kind of job, by its `api_version` and `kind`.

    Every function is pure and takes objects as the API server has them. What is the same for all kinds is in
    `fallback.jobs.writes` (the record, the request to checkpoint) and `fallback.jobs.memory` (`note`).
    """

    api_version: ClassVar[str]
    kind: ClassVar[str]

    def job_of_pod(self, pod: Json) -> JobKey | None:
        """Return which job of this kind a pod says it belongs to; there may be no such job."""
        ...

    def job_of_child(self, child: Json) -> JobKey | None:
        """Return which job of this kind owns a Job or RayCluster; there may be no such job any more."""
        ...

    def observe(self, snapshot: Snapshot, memory: PodHistory) -> tuple[Observation, PodHistory]:
        """Return what the ladder decides by, and what is to be remembered until the next look.

        Whoever asks adds what no single job's objects tell: `clock_jump`, `contending_gang`, `last_yield_at`, `pools` and `reservation`.
        """
        ...

    def suspension(self, job: Json, action: Suspend, state: str) -> Json:
        """Return the merge patch of one update that suspends; `state` is the annotation's text."""
        ...

    def resumption(self, job: Json, action: Resume, state: str) -> Json:
        """Return the merge patch of one update that resumes; `state` is the annotation's text."""
        ...

    def outdated_children(self, snapshot: Snapshot) -> tuple[Json, ...]:
        """Return the suspended child Jobs to delete: made from another template than the job has now."""
        ...

    def recreation(self, job: Json, action: Recreate, state: str) -> Recreation | None:
        """Return how a failed job is made anew; None for a kind that never is."""
        ...


_ALL: Final[tuple[JobKind, ...]] = (JobSetKind(), RayJobKind())
KINDS: Final[Mapping[str, JobKind]] = {each.kind: each for each in _ALL}
"""By the name of the kind."""


def job_of_pod(pod: Json) -> JobKey | None:
    """Return which job a pod says it belongs to, of whatever kind; None for a pod of none."""
    return next((key for kind in KINDS.values() if (key := kind.job_of_pod(pod))), None)


def job_of_child(child: Json) -> JobKey | None:
    """Return which job owns a Job or RayCluster, of whatever kind; None where none does."""
    return next((key for kind in KINDS.values() if (key := kind.job_of_child(child))), None)
