"""Reads what a RuntimeClass adds to pods: the API server merges its selector, tolerations and overhead into each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.ladder.reachability.shape import MOVED_LABELS
from pulumi_holdfast.program.clusters import clusters_of, is_same_cluster
from pulumi_holdfast.program.fields import unread
from pulumi_holdfast.program.resources import StackResource, Value, at, is_object, items_at, named, text_at

_CLASS: Final = "kubernetes:node.k8s.io/v1:RuntimeClass"
#: GKE makes this class on clusters with sandboxed pools.
_SANDBOX: Final = "gvisor"
_OF_SANDBOX: Final[Mapping[str, Value]] = {
    "nodeSelector": {"sandbox.gke.io/runtime": _SANDBOX},
    "tolerations": [
        {"key": "sandbox.gke.io/runtime", "operator": "Equal", "value": _SANDBOX, "effect": "NoSchedule"}
    ],
}


@dataclass(frozen=True, kw_only=True)
class ClassedPod:
    """A pod specification with what its RuntimeClass adds; `open` is why that is not judged."""

    spec: Value
    open: tuple[str, ...] = ()


def with_runtime_class(spec: Value, job: StackResource, resources: Sequence[StackResource]) -> ClassedPod:
    """Return the specification of a job's pods as the API server admits them."""
    name = text_at(spec, "runtimeClassName")
    if not name or not is_object(spec):
        return ClassedPod(spec=spec)
    made = [each for each in named(resources, _CLASS, name) if is_same_cluster(each, job, resources) is True]
    if not made and name == _SANDBOX and clusters_of(job, "gcp", resources):
        return ClassedPod(spec=_with_scheduling(spec, _OF_SANDBOX))
    if not made:
        shown = "?" if name is UNKNOWN else name
        reason = f"whether its RuntimeClass {shown} exists, and adds selectors, is not known: this program does not make it"
        return ClassedPod(spec=spec, open=(reason,))
    props = made[0].props
    selector = at(props, "scheduling", "nodeSelector")
    merged = _with_scheduling(spec, at(props, "scheduling"))
    merged["overhead"] = at(props, "overhead", "podFixed") or at(spec, "overhead")
    moved = sorted({*MOVED_LABELS} & {*(selector if is_object(selector) else ())})
    keeps = f"its RuntimeClass {name} selects {', '.join(moved)}, which no move of the job changes"
    return ClassedPod(spec=merged, open=(*((keeps,) if moved else ()), *unread(made[0])))


def _with_scheduling(spec: Mapping[str, Value], scheduling: Value) -> dict[str, Value]:
    """Return a pod specification with the selector and the tolerations of a class."""
    tolerations, own = items_at(scheduling, "tolerations"), items_at(spec, "tolerations")
    return {
        **spec,
        "nodeSelector": _merged(at(spec, "nodeSelector"), at(scheduling, "nodeSelector")),
        "tolerations": UNKNOWN if tolerations is UNKNOWN or own is UNKNOWN else [*own, *tolerations],
    }


def _merged(own: Value, added: Value) -> Value:
    if UNKNOWN in (own, added):
        return UNKNOWN
    both: Mapping[str, Value] = {**(own if is_object(own) else {}), **(added if is_object(added) else {})}
    return both
