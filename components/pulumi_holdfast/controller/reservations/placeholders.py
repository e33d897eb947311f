"""Placeholder pods: bare pods of the gang's shape, which make a better tier's pool provision the nodes that it needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.controller.api.objects import name_of
from pulumi_holdfast.controller.jobs.pods_and_nodes import has_ended
from pulumi_holdfast.controller.reservations.placement import placeholder_scheduling, with_pod_affinity
from pulumi_holdfast.ladder.labels import (
    EFA_RESOURCE,
    POOL,
    RESERVATION_NAMESPACE,
    RESERVATION_PRIORITY_CLASS,
    RESERVED_BY,
    RESERVED_FOR,
    SHAPE,
    ZONE,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pulumi_holdfast.controller.reservations.pod_shapes import PodShape
    from pulumi_holdfast.ladder.json import Json
    from pulumi_holdfast.ladder.taints import Taint

# Karpenter and the autoscalers of GKE and AKS may move pods to empty a node; placeholders must not be moved.
_STAYS: Final = {
    "karpenter.sh/do-not-disrupt": "true",
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
}
_UNPRIVILEGED_UID: Final = 65534


@dataclass(frozen=True, kw_only=True)
class PlaceholderRequest:
    """The gang that needs capacity, and its pool.

    `job` names it for users who read a placeholder: `JobSet vision/train`. `taints` are those of the pool's nodes, from the
    tier's facts. `image` does nothing (`registry.k8s.io/pause`).
    """

    uid: str
    job: str
    pool: str
    shapes: tuple[PodShape, ...]
    taints: tuple[Taint, ...]
    image: str


@dataclass(frozen=True, kw_only=True)
class PlaceholderChanges:
    """The pods to create, and the names of ended pods to delete because they block those names."""

    create: tuple[Json, ...]
    delete: tuple[str, ...]


def placeholder_changes(request: PlaceholderRequest, existing: Iterable[Json]) -> PlaceholderChanges:
    """Return the changes from the job's existing placeholders to the requested ones."""
    there = {name_of(pod): pod for pod in existing}
    return PlaceholderChanges(
        create=tuple(pod for pod in placeholders(request) if name_of(pod) not in there),
        delete=tuple(sorted(name for name, pod in there.items() if has_ended(pod))),
    )


def placeholders(request: PlaceholderRequest) -> tuple[Json, ...]:
    """Return every placeholder of a gang. Names are the job's uid and a number, so creating them twice is harmless."""
    kinds = [kind for kind, shape in enumerate(request.shapes) for _ in range(shape.count)]
    return tuple(_placeholder(request, kind, number) for number, kind in enumerate(kinds))


def reservation_toleration(uid: str) -> Json:
    """Return the toleration that lets only this job's pods onto the nodes reserved for it."""
    return {"key": RESERVED_FOR, "operator": "Equal", "value": uid, "effect": "NoSchedule"}


def _placeholder(request: PlaceholderRequest, kind: int, number: int) -> Json:
    shape = request.shapes[kind]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"hold-{request.uid}-{number}",
            "namespace": RESERVATION_NAMESPACE,
            "labels": {RESERVED_FOR: request.uid, POOL: request.pool, SHAPE: str(kind)},
            "annotations": {**_STAYS, RESERVED_BY: request.job},
        },
        "spec": {
            "nodeSelector": {**shape.placement.selector, POOL: request.pool},
            "tolerations": _tolerations(request, shape),
            **_scheduling(request, shape),
            "priorityClassName": RESERVATION_PRIORITY_CLASS,
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": _UNPRIVILEGED_UID,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": "placeholder",
                    "image": request.image,
                    # Extended resources such as GPUs require equal limits and requests; the others allow them.
                    "resources": {"requests": dict(shape.requests), "limits": dict(shape.requests)},
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "readOnlyRootFilesystem": True,
                        "capabilities": {"drop": ["ALL"]},
                    },
                }
            ],
        },
    }


def _scheduling(request: PlaceholderRequest, shape: PodShape) -> Json:
    """The job's own placement.

    Admission keeps pods with fabric adapters in one zone: they could not use capacity in several zones.
    """
    gang = [each.placement for each in request.shapes]
    own = placeholder_scheduling(shape.placement, gang, request.uid)
    if EFA_RESOURCE not in shape.requests:
        return own
    selector: Json = {"matchLabels": {RESERVED_FOR: request.uid}}
    return with_pod_affinity(own, {"topologyKey": ZONE, "labelSelector": selector})


def _tolerations(request: PlaceholderRequest, shape: PodShape) -> Sequence[Json]:
    """The gang's own, those of the target pool, and the reservation's: the taint is added while some placeholders are unbound."""
    wanted = [
        *shape.tolerations,
        *(taint.as_toleration() for taint in request.taints),
        reservation_toleration(request.uid),
    ]
    return [each for place, each in enumerate(wanted) if each not in wanted[:place]]
