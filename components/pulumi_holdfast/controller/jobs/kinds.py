"""`JobKind`: the interface of a kind of job that follows a ladder, the two kinds that implement it, and how their objects are read.

Objects are read from an API server, not from a cache, for decisions that need more than cached objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final, Protocol

from pulumi_holdfast.controller.jobs.jobset import JobSetKind
from pulumi_holdfast.controller.jobs.pods_and_nodes import JobKey
from pulumi_holdfast.controller.jobs.rayjob import RayJobKind
from pulumi_holdfast.controller.jobs.trimmed_objects import CHILD_FIELDS, trim, trim_current_pod
from pulumi_holdfast.controller.kube.client import JOB, JOBSET, POD, RAYCLUSTER, RAYJOB, Client, Kind
from pulumi_holdfast.controller.kube.objects import uid_of
from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.ladder.labels import COPY_OF

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from pulumi_holdfast.controller.jobs.actions import Recreate, Resume, Suspend
    from pulumi_holdfast.controller.jobs.observation import JobOutcome, Observation
    from pulumi_holdfast.controller.jobs.pod_history import PodHistory
    from pulumi_holdfast.controller.jobs.pods_and_nodes import Recreation, Snapshot


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


KIND_OF: Final = {each.name: each for each in (JOBSET, RAYJOB)}


def pod_selectors(key: JobKey) -> tuple[str, ...]:
    """Return the label selectors that find every pod of a job, and possibly pods of others."""
    if key.kind == JOBSET.name:
        return (f"jobset.sigs.k8s.io/jobset-name={key.name}",)
    return ("ray.io/cluster", f"batch.kubernetes.io/job-name={key.name}")


async def current_job(client: Client, key: JobKey) -> Json | None:
    """Return the object with the job's name; None if there is none."""
    return await client.find(KIND_OF[key.kind], key.namespace, key.name)


async def current_children(client: Client, key: JobKey) -> list[Json]:
    """Return the children that create a job's pods. Read them before the pods, since they may create pods in between."""
    # A RayCluster has no label of its RayJob.
    labels = pod_selectors(key)[0] if key.kind == JOBSET.name else ""
    return [child for child in await _children(client, key, labels) if job_of_child(child) == key]


async def current_pods(client: Client, key: JobKey) -> list[Json]:
    """Return a job's pods."""
    pods = await _pods(client, key, pod_selectors(key))
    return [pod for pod in pods if job_of_pod(pod) == key]


async def current_parts_of_copies(
    client: Client, key: JobKey, uid: str, *, is_there: bool
) -> tuple[list[Json], list[Json]]:
    """Return the children and pods of all copies of the job with this uid. `is_there`: there is one, with all its pods.

    A RayJob's submitter has its name alone. Without its RayJob it has no head to submit to.
    """
    label = f"{COPY_OF}={uid}"
    children = await _children(client, key, label)
    return children, await _pods(client, key, (label, *(pod_selectors(key)[1:] if is_there else ())))


async def _children(client: Client, key: JobKey, labels: str) -> list[Json]:
    """Return the children with these labels; a RayJob's submitter is not one of them, because it does no work of the job."""
    kind: Kind = JOB if key.kind == JOBSET.name else RAYCLUSTER
    found = client.each(kind, namespace=key.namespace, labels=labels)
    return [
        {"apiVersion": kind.api_version, "kind": kind.name, **mapping(trim(child, CHILD_FIELDS))}
        async for child in found
    ]


async def _pods(client: Client, key: JobKey, selectors: tuple[str, ...]) -> list[Json]:
    """Return the pods that any of the selectors finds, each once."""
    found: dict[str, Json] = {}
    for selector in selectors:
        async for pod in client.each(POD, namespace=key.namespace, labels=selector):
            found[uid_of(pod)] = trim_current_pod(pod)
    return list(found.values())
