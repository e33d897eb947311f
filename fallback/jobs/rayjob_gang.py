"""The worker groups of a RayJob, and how many pods they want."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holdfast.fallback.jobs.selection import followers
from holdfast.fallback.jobs.values import count, mapping, metadata_of, objects, text

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json

GROUP: Final = "ray.io/group"
_UNBOUNDED: Final = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class WorkerGroup:
    """One of a RayJob's worker groups. `follows`: its pods are the tier's to place. `scales`: Ray sets its size."""

    name: str
    spec: Json
    follows: bool
    scales: bool

    @property
    def pod_spec(self) -> Json:
        """What its pods are made from."""
        return mapping(mapping(self.spec.get("template")).get("spec"))

    @property
    def pods(self) -> int:
        """How many pods it cannot do without: where Ray scales it, the fewest that it may have."""
        if self.spec.get("suspend") is True:
            return 0
        least = count(self.spec.get("minReplicas"))
        most = count(self.spec.get("maxReplicas"), _UNBOUNDED)
        wanted = least if self.scales else count(self.spec.get("replicas"))
        # In this order, as KubeRay does it: a minimum above the maximum wins.
        replicas = least if wanted < least else min(wanted, most)
        return replicas * max(1, count(self.spec.get("numOfHosts"), 1))


def worker_groups(rayjob: Json) -> tuple[WorkerGroup, ...]:
    """Return a RayJob's worker groups in their order. Its head is no part of them: it does not follow the ladder."""
    cluster = cluster_spec(rayjob)
    specs = objects(cluster.get("workerGroupSpecs"))
    follow = followers([mapping(spec.get("template")) for spec in specs])
    scales = cluster.get("enableInTreeAutoscaling") is True
    return tuple(
        WorkerGroup(name=text(spec.get("groupName")), spec=spec, follows=flag, scales=scales)
        for spec, flag in zip(specs, follow, strict=True)
    )


def cluster_spec(rayjob: Json) -> Json:
    """Return what a RayJob's clusters are made from."""
    return mapping(mapping(rayjob.get("spec")).get("rayClusterSpec"))


def head_pod_spec(rayjob: Json) -> Json:
    """Return what a RayJob's head is made from."""
    head = mapping(cluster_spec(rayjob).get("headGroupSpec"))
    return mapping(mapping(head.get("template")).get("spec"))


def group_of(pod: Json) -> str:
    """Return the worker group that a pod is of; a head's is `headgroup`."""
    return text(mapping(metadata_of(pod).get("labels")).get(GROUP))
