"""Reservations: capacity on a better tier for a running job.

Placeholder pods of the gang's shape make the better tier's pool provision nodes, and a taint reserves these for one job.
Without the taint another pod takes the node 0.07 s after the placeholder is deleted (measured), or preempts it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count, islice
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.controller.jobs.observation import Reservation
from pulumi_holdfast.controller.jobs.pod_shapes import placeholder_scheduling, with_pod_affinity
from pulumi_holdfast.controller.jobs.pods_and_nodes import NodeState, has_ended, is_terminating, state_of_node
from pulumi_holdfast.controller.kube.objects import labels_of, metadata_of, name_of, objects, text
from pulumi_holdfast.ladder.json import Json, mapping
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
    from pulumi_holdfast.controller.jobs.pod_shapes import PodShape
    from pulumi_holdfast.ladder.taints import Taint


# Karpenter and the autoscalers of GKE and AKS may move pods to empty a node; placeholders must not be moved.
_STAYS: Final = {
    "karpenter.sh/do-not-disrupt": "true",
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
}
_UNPRIVILEGED_UID: Final = 65534
#: The next step follows once these exist: a gang may say that it has a billion pods.
MOST_AT_ONCE: Final = 100


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
        create=tuple(islice(placeholders(request, there), MOST_AT_ONCE)),
        delete=tuple(sorted(name for name, pod in there.items() if has_ended(pod))),
    )


def placeholders(request: PlaceholderRequest, there: Collection[str] = ()) -> Iterator[Json]:
    """Yield every placeholder of a gang but those that are `there`.

    Names are the job's uid and a number, so creating them twice is harmless.
    """
    numbers = count()
    for kind, shape in enumerate(request.shapes):
        names = (f"hold-{request.uid}-{next(numbers)}" for _ in range(shape.count))
        # Once, not for each pod: it takes time in the square of the shape's tolerations.
        spec = _pod_spec(request, shape)
        for name in (each for each in names if each not in there):
            yield {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": name,
                    "namespace": RESERVATION_NAMESPACE,
                    "labels": {RESERVED_FOR: request.uid, POOL: request.pool, SHAPE: str(kind)},
                    "annotations": {**_STAYS, RESERVED_BY: request.job},
                },
                "spec": spec,
            }


def reservation_toleration(uid: str) -> Json:
    """Return the toleration that lets only this job's pods onto the nodes reserved for it."""
    return {"key": RESERVED_FOR, "operator": "Equal", "value": uid, "effect": "NoSchedule"}


def _pod_spec(request: PlaceholderRequest, shape: PodShape) -> Json:
    return {
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


_EFFECT: Final = "NoSchedule"


def reserved_for(node: Json) -> str | None:
    """Return the uid of the job that a node is reserved for."""
    return next(
        (text(taint.get("value")) for taint in _taints(node) if taint.get("key") == RESERVED_FOR), None
    )


def reserve_patch(node: Json, uid: str) -> Json | None:
    """Return the merge patch that reserves a node for a job; None for a node that is reserved already, for any job.

    A merge patch replaces the list of taints as a whole, so it contains the resource version it was made from.
    """
    if reserved_for(node) is not None:
        return None
    taint: Json = {"key": RESERVED_FOR, "value": uid, "effect": _EFFECT}
    return _patch(node, [*_taints(node), taint], uid)


def release_patch(node: Json) -> Json | None:
    """Return the merge patch that removes a node's reservation; None without one."""
    is_labelled = RESERVED_FOR in labels_of(node)
    if reserved_for(node) is None and not is_labelled:
        return None
    return _patch(node, [taint for taint in _taints(node) if taint.get("key") != RESERVED_FOR], None)


def _patch(node: Json, taints: Sequence[Json], label: str | None) -> Json:
    return {
        "metadata": {
            "resourceVersion": text(metadata_of(node).get("resourceVersion")),
            "labels": {RESERVED_FOR: label},
        },
        "spec": {"taints": taints},
    }


def _taints(node: Json) -> tuple[Json, ...]:
    return objects(mapping(node.get("spec")).get("taints"))


@dataclass(frozen=True, kw_only=True)
class Orphans:
    """Names of placeholders to delete and of nodes to release, whose job does not exist any more."""

    placeholders: tuple[str, ...]
    nodes: tuple[str, ...]


def reservation_of(
    uid: str, placeholders: Iterable[Json], nodes: Mapping[str, Json], claims: Mapping[str, Json] | None
) -> Reservation | None:
    """Return a job's reservation: `placeholders` are all placeholders or its own, `nodes` all or its own.

    `claims`: NodeClaims by their node's name, None if the cluster has none.
    """
    own = [pod for pod in placeholders if _job_uid_of(pod) == uid]
    tainted = sorted(name for name, node in nodes.items() if reserved_for(node) == uid)
    if not own and not tainted:
        return None
    standing = [pod for pod in own if not is_terminating(pod) and not has_ended(pod)]
    places = [place for pod in standing if (place := _node_of(pod)) and _is_live(place, nodes, claims)]
    return Reservation(
        pool=_pool(own, [nodes[name] for name in tainted]),
        pods=len(standing),
        placed=len(places),
        tainted=sum(place in tainted for place in places),
        nodes=tuple(sorted({*places, *tainted})),
    )


def orphans(placeholders: Iterable[Json], nodes: Iterable[Json], is_known: Callable[[str], bool]) -> Orphans:
    """Return the reservations of jobs that no longer exist, such as one that was deleted during its failback."""
    return Orphans(
        placeholders=tuple(sorted(name_of(pod) for pod in placeholders if not is_known(_job_uid_of(pod)))),
        nodes=tuple(sorted(name_of(node) for node in nodes if _is_orphan(node, is_known))),
    )


def _is_orphan(node: Json, is_known: Callable[[str], bool]) -> bool:
    holder = reserved_for(node)
    return holder is not None and not is_known(holder)


def _is_live(node: str, nodes: Mapping[str, Json], claims: Mapping[str, Json] | None) -> bool:
    return state_of_node(node, nodes, claims) is NodeState.LIVE


def _pool(pods: list[Json], nodes: list[Json]) -> str:
    labelled = next(iter([*pods, *nodes]), mapping(None))
    return text(labels_of(labelled).get(POOL))


def _job_uid_of(pod: Json) -> str:
    return text(labels_of(pod).get(RESERVED_FOR))


def _node_of(pod: Json) -> str:
    return text(mapping(pod.get("spec")).get("nodeName"))
