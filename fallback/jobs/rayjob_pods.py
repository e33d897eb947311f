"""Whose the pods of Ray clusters and submitters are."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holdfast.fallback.jobs.snapshot import JobKey
from holdfast.fallback.jobs.values import mapping, metadata_of, name_of, namespace_of, owner_of, text, uid_of

if TYPE_CHECKING:
    from holdfast.fallback.jobs.snapshot import Snapshot
    from holdfast.scheduling.json import Json

_KIND: Final = "RayJob"
_CLUSTER: Final = "ray.io/cluster"
_SUBMITTER: Final = "batch.kubernetes.io/job-name"
# KubeRay names a RayJob's cluster after it, with five characters of Kubernetes' own for random names. The pods bear
# no other trace of their RayJob; and the cluster, which has its owner's name, goes before its last pods do.
_CLUSTER_NAME: Final = re.compile(r"(?P<rayjob>.+)-[bcdfghjklmnpqrstvwxz2456789]{5}")


def rayjob_of_pod(pod: Json) -> JobKey | None:
    """Return which RayJob a pod may be of, by its cluster's name or its Job's; None for a pod of neither."""
    labels = mapping(metadata_of(pod).get("labels"))
    found = _CLUSTER_NAME.fullmatch(text(labels.get(_CLUSTER)))
    name = found["rayjob"] if found else text(labels.get(_SUBMITTER))
    return JobKey(_KIND, namespace_of(pod), name) if name else None


def rayjob_of_child(child: Json) -> JobKey | None:
    """Return which RayJob owns a RayCluster or a Job.

    A RayCluster of nobody's that bears such a name is said to be that RayJob's too, or its pods would be taken for
    the RayJob's without anybody knowing better.
    """
    owner = owner_of(child)
    if owner.get("kind") == _KIND:
        return JobKey(_KIND, namespace_of(child), text(owner.get("name")))
    found = (
        _CLUSTER_NAME.fullmatch(name_of(child)) if child.get("kind") == "RayCluster" and not owner else None
    )
    return JobKey(_KIND, namespace_of(child), found["rayjob"]) if found else None


def own_pods(seen: Snapshot) -> tuple[Json, ...]:
    """Return the pods that are the RayJob's indeed.

    A pod whose owner is still there and is not the RayJob's is none of it. One whose owner has gone already is taken
    for its own: it is better to wait for a stranger's pod than to run two gangs on one checkpoint.
    """
    submits_by_job = text(mapping(seen.job.get("spec")).get("submissionMode")) in {"", "K8sJobMode"}
    strangers = {
        (text(child.get("kind")), name_of(child))
        for child in seen.children
        if owner_of(child).get("uid") != uid_of(seen.job)
    }
    return tuple(pod for pod in seen.pods if _is_own(pod, strangers, submits_by_job=submits_by_job))


def _is_own(pod: Json, strangers: set[tuple[str, str]], *, submits_by_job: bool) -> bool:
    labels = mapping(metadata_of(pod).get("labels"))
    cluster = text(labels.get(_CLUSTER))
    if cluster:
        return ("RayCluster", cluster) not in strangers
    return submits_by_job and ("Job", text(labels.get(_SUBMITTER))) not in strangers
