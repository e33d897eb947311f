"""Programs as other teams write them: their resources, and the verdict that a careful reading gives."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pulumi_holdfast.ladder.labels import POOL
from pulumi_holdfast.program.resources import StackResource, Value
from rules.verdicts import Word
from tests.support.builders.stack_resources import FALLBACK_POLICY_TYPE, NODE_POOL_TYPE, namespace, resource

END, LEAVES = "training-ladder-ends-on-demand", "training-ladder-leaves-spot"
REACH, SAME = "training-reaches-on-demand", "same-accelerator-on-demand"
QUOTA, SCALING = "training-namespaces-have-quotas", "aks-single-autoscaling-mode"

SPOT_TIER: Value = {"pool": "spot", "maxFailures": 5, "procurementTimeout": "15m"}
ON_DEMAND_TIER: Value = {"pool": "on-demand"}
#: Jobs that fit on every GPU machine of these programs.
SMALL: Value = {"name": "small", "pods": 1, "cpu": "2", "memory": "8Gi", "gpus": 1}
GROUPS = {"EC2NodeClass": "karpenter.k8s.aws", "AKSNodeClass": "karpenter.azure.com", "NodeClass": "eks.amazonaws.com"}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Stranger:
    """A program, what a careful reader says about it, the word for it (None: nothing is judged), and what stops it."""

    name: str
    reading: str
    word: Word | None
    resources: Sequence[StackResource]
    stops: frozenset[str] = frozenset()

    def __str__(self) -> str:
        """The name of the test."""
        return self.name


def one_of(key: str, *values: str) -> Value:
    """A requirement of a NodePool."""
    return {"key": key, "operator": "In", "values": list(values)}


def node_pool(
    name: str,
    *requirements: Value,
    kinds: Sequence[str] = (),
    labels: Value = None,
    taints: Sequence[Value] = (),
    limits: Value = None,
    node_class: str = "EC2NodeClass",
) -> StackResource:
    """A NodePool with its name as the pool label, unless other labels are given."""
    capacity = [one_of("karpenter.sh/capacity-type", *kinds)] if kinds else []
    spec: Value = {
        "requirements": [*capacity, *requirements],
        "taints": list(taints),
        "nodeClassRef": {"group": GROUPS[node_class], "kind": node_class, "name": "default"},
    }
    marked: Value = {POOL: name} if labels is None else labels
    template: Value = {"metadata": {"labels": marked}, "spec": spec}
    return resource(
        NODE_POOL_TYPE, name, {"metadata": {"name": name}, "spec": {"template": template, "limits": limits}}
    )


def node_class(kind: str, name: str) -> StackResource:
    """A node class of Karpenter."""
    return resource(f"kubernetes:{GROUPS[kind]}/v1:{kind}", name, {"metadata": {"name": name}})


def ladder(*tiers: Value, shapes: Sequence[Value] = (SMALL,)) -> StackResource:
    """The ladder of the namespace `vision`."""
    metadata: Value = {"name": "ladder", "namespace": "vision"}
    listed = list(tiers or (SPOT_TIER, ON_DEMAND_TIER))
    return resource(
        FALLBACK_POLICY_TYPE,
        "vision-ladder",
        {"metadata": metadata, "spec": {"tiers": listed, "shapes": list(shapes)}},
    )


def training(*tiers: Value, shapes: Sequence[Value] = (SMALL,)) -> list[StackResource]:
    """The namespace with its ladder."""
    return [namespace(), ladder(*tiers, shapes=shapes)]


def of_provider(provider: StackResource, *made: StackResource) -> list[StackResource]:
    """The resources as this provider makes them."""
    return [replace(each, provider=provider.urn) for each in made]
