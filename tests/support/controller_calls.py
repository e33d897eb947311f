"""Every call to the API server that the fallback controller makes, and where."""

from dataclasses import dataclass
from enum import Enum


class Place(Enum):
    """Where a call is made."""

    EVERYWHERE = "in the whole cluster"
    TRAINING = "in training namespaces"
    OWN = "in its own namespace"
    RESERVING = "in the namespace of placeholders"


@dataclass(frozen=True, kw_only=True)
class Call:
    """One verb on one kind of object."""

    place: Place
    group: str
    resource: str
    verb: str


def calls(place: Place, group: str, resource: str, *verbs: str) -> tuple[Call, ...]:
    """These verbs on one kind of object."""
    return tuple(Call(place=place, group=group, resource=resource, verb=verb) for verb in verbs)


_WATCHED = (
    ("", "namespaces"),
    ("", "nodes"),
    ("", "pods"),
    ("batch", "jobs"),
    ("holdfast.dev", "fallbackpolicies"),
    ("jobset.x-k8s.io", "jobsets"),
    ("karpenter.sh", "nodeclaims"),
    ("karpenter.sh", "nodepools"),
    ("kueue.x-k8s.io", "workloads"),
    ("ray.io", "rayclusters"),
    ("ray.io", "rayjobs"),
)

CALLS: tuple[Call, ...] = (
    *(call for watched in _WATCHED for call in calls(Place.EVERYWHERE, *watched, "list", "watch")),
    # To taint a node that is held, its taints are read again and replaced as a whole.
    *calls(Place.EVERYWHERE, "", "nodes", "get", "patch"),
    *calls(Place.TRAINING, "", "events", "create", "get", "patch"),
    *calls(Place.TRAINING, "", "pods", "create", "delete", "patch"),
    *calls(Place.TRAINING, "", "pods/status", "patch"),
    *calls(Place.TRAINING, "batch", "jobs", "create", "delete"),
    *calls(Place.TRAINING, "holdfast.dev", "fallbackpolicies/status", "patch"),
    *calls(Place.TRAINING, "jobset.x-k8s.io", "jobsets", "patch"),
    *calls(Place.TRAINING, "ray.io", "rayjobs", "create", "patch"),
    *calls(Place.OWN, "coordination.k8s.io", "leases", "create", "get", "update"),
    *calls(Place.RESERVING, "", "pods", "create", "delete"),
)
