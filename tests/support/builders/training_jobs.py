"""Pods as the admission tests create them, and what admission must make of them, told without CEL."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.components.admission.rules import karpenter_rules
from holdfast.scheduling.labels import GPU_RESOURCE, CapacityType
from holdfast.scheduling.pools import Pool

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.scheduling.json import Json

POOLS = (
    Pool(name="cpu", capacity=CapacityType.ON_DEMAND, has_gpus=False, max_nodes=4, is_default=True),
    Pool(name="cpu-spot", capacity=CapacityType.SPOT, has_gpus=False, max_nodes=4),
    Pool(name="a100", capacity=CapacityType.ON_DEMAND, has_gpus=True, max_nodes=4),
    Pool(name="a100-spot", capacity=CapacityType.SPOT, has_gpus=True, max_nodes=4),
)
RULES = karpenter_rules(POOLS)
SPOT_RULE, GPU_RULE = RULES


def container(gpus: str | None = None, name: str = "train") -> Json:
    """A container, with as many GPUs as given."""
    return {
        "name": name,
        "image": "train:1",
        **({"resources": {"limits": {GPU_RESOURCE: gpus}}} if gpus else {}),
    }


def pod(
    *,
    namespace: str,
    name: str = "worker",
    annotations: Mapping[str, str] | None = None,
    containers: Sequence[Json] | None = None,
    spec: Json | None = None,
) -> Json:
    """A pod that asks for nothing, with what is given put over it."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "annotations": dict(annotations or {})},
        "spec": {"containers": list(containers or [container()]), **(spec or {})},
    }


def required_affinity(*terms: Sequence[Json]) -> Json:
    """A required node affinity: any of the terms, each a list of expressions."""
    selector: Json = {"nodeSelectorTerms": [{"matchExpressions": list(term)} for term in terms]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": selector}}


def preferred_affinity(*expressions: Json) -> Json:
    """A node affinity that weighs in, and binds to nothing."""
    preference: Json = {"weight": 1, "preference": {"matchExpressions": list(expressions)}}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [preference]}}


def expression(key: str, operator: str, *values: str) -> Json:
    """One expression of a node affinity term."""
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}
