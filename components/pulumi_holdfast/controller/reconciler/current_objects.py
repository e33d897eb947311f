"""Reads a job, its children and its pods from an API server, for decisions that need more than cached objects."""

from typing import Final

from pulumi_holdfast.controller.api.client import JOB, JOBSET, POD, RAYCLUSTER, RAYJOB, Client, Kind
from pulumi_holdfast.controller.api.objects import uid_of
from pulumi_holdfast.controller.jobs.kinds import job_of_child, job_of_pod
from pulumi_holdfast.controller.jobs.snapshot import JobKey
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import COPY_OF

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
    found = await client.current(kind, namespace=key.namespace, labels=labels)
    return [{"apiVersion": kind.api_version, "kind": kind.name, **child} for child in found]


async def _pods(client: Client, key: JobKey, selectors: tuple[str, ...]) -> list[Json]:
    """Return the pods that any of the selectors finds, each once."""
    lists = [await client.current(POD, namespace=key.namespace, labels=selector) for selector in selectors]
    return list({uid_of(pod): pod for found in lists for pod in found}.values())
