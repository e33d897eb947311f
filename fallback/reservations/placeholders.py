"""Placeholder pods: bare pods of the gang's shape, which make a better tier's pool buy the nodes that the gang needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holdfast.fallback.api.objects import mapping, metadata_of, name_of, text
from holdfast.scheduling.labels import HELD_FOR, POOL, RESERVATION_NAMESPACE, RESERVATION_PRIORITY_CLASS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holdfast.fallback.reservations.pod_shapes import PodShape
    from holdfast.scheduling.json import Json
    from holdfast.scheduling.taints import Taint

# Karpenter and the autoscalers of GKE and AKS may move pods to empty a node: these stand for pods that must not be.
_STAYS: Final = {
    "karpenter.sh/do-not-disrupt": "true",
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
}
_HELD_BY: Final = "holdfast.dev/held-by"
_NOBODY: Final = 65534


@dataclass(frozen=True, kw_only=True)
class PlaceholderRequest:
    """Whose gang is to have room, and where.

    `job` names it for whoever looks at a placeholder: `JobSet vision/train`. `taints` are those of the pool's nodes, as
    the tier's facts say. `image` does nothing (`registry.k8s.io/pause`).
    """

    uid: str
    job: str
    pool: str
    shapes: tuple[PodShape, ...]
    taints: tuple[Taint, ...]
    image: str


@dataclass(frozen=True, kw_only=True)
class PlaceholderChanges:
    """What is to be created, and which pods are to be deleted since they have ended and stand in the way by name."""

    create: tuple[Json, ...]
    delete: tuple[str, ...]


def placeholder_changes(request: PlaceholderRequest, existing: Iterable[Json]) -> PlaceholderChanges:
    """What makes the placeholders that exist for the job those that are wanted."""
    there = {name_of(pod): pod for pod in existing}
    return PlaceholderChanges(
        create=tuple(pod for pod in placeholders(request) if name_of(pod) not in there),
        delete=tuple(sorted(name for name, pod in there.items() if has_ended(pod))),
    )


def placeholders(request: PlaceholderRequest) -> tuple[Json, ...]:
    """Every placeholder of a gang. Names follow from the job and a number, so that making them twice makes them once."""
    shapes = [shape for shape in request.shapes for _ in range(shape.count)]
    return tuple(_placeholder(request, shape, number) for number, shape in enumerate(shapes))


def has_ended(pod: Json) -> bool:
    """Whether a placeholder has failed or was evicted, and holds nothing any more."""
    return text(mapping(pod.get("status")).get("phase")) in {"Failed", "Succeeded"}


def is_going(pod: Json) -> bool:
    """Whether a placeholder is being deleted."""
    return bool(metadata_of(pod).get("deletionTimestamp"))


def reservation_toleration(uid: str) -> Json:
    """What lets the pods of this job, and no others, onto the nodes held for it."""
    return {"key": HELD_FOR, "operator": "Equal", "value": uid, "effect": "NoSchedule"}


def _placeholder(request: PlaceholderRequest, shape: PodShape, number: int) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"hold-{request.uid}-{number}",
            "namespace": RESERVATION_NAMESPACE,
            "labels": {HELD_FOR: request.uid, POOL: request.pool},
            "annotations": {**_STAYS, _HELD_BY: request.job},
        },
        "spec": {
            "nodeSelector": {POOL: request.pool},
            "tolerations": _tolerations(request, shape),
            "priorityClassName": RESERVATION_PRIORITY_CLASS,
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 0,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": _NOBODY,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [
                {
                    "name": "placeholder",
                    "image": request.image,
                    # Extended resources such as GPUs must be limited to what is requested; the others may be.
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


def _tolerations(request: PlaceholderRequest, shape: PodShape) -> Sequence[Json]:
    """The gang's own, those of the pool it is to go to, and that of the hold: it comes while some are still unbound."""
    wanted = [
        *shape.tolerations,
        *(taint.as_toleration() for taint in request.taints),
        reservation_toleration(request.uid),
    ]
    return [each for place, each in enumerate(wanted) if each not in wanted[:place]]
