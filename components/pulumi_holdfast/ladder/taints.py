"""The taints of each kind of pool, and tolerations as the scheduler matches them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import (
    AKS_SCALE_SET_PRIORITY,
    AKS_SPOT_VALUE,
    CAPACITY_TYPE,
    COMPUTE_CLASS,
    GKE_SPOT,
    GKE_SPOT_VALUE,
    GPU_RESOURCE,
    CapacityType,
)


@dataclass(frozen=True, kw_only=True)
class Taint:
    """A node taint; it repels pods that do not tolerate it."""

    key: str
    value: str
    effect: str = "NoSchedule"

    def as_taint(self) -> Json:
        """The taint as a node or a NodePool spells it."""
        return {"key": self.key, "value": self.value, "effect": self.effect}

    def as_toleration(self) -> Json:
        """The one toleration that matches exactly this taint."""
        return {"key": self.key, "operator": "Equal", "value": self.value, "effect": self.effect}


# Without it a pod without a node selector would run on the cheapest machine, which is a spot one.
SPOT: Final = Taint(key=CAPACITY_TYPE, value=CapacityType.SPOT.value)

# On reserved pools of every cloud: machines that are paid for are kept for the jobs that select them.
RESERVED: Final = Taint(key=CAPACITY_TYPE, value=CapacityType.RESERVED.value)

# That of spot on GKE, which does not taint the spot nodes of node pools that users create.
GKE_SPOT_TAINT: Final = Taint(key=GKE_SPOT, value=GKE_SPOT_VALUE)

# AKS adds it to the spot nodes of its scale sets, beside the first one. Node auto-provisioning adds none.
AKS_SPOT: Final = Taint(key=AKS_SCALE_SET_PRIORITY, value=AKS_SPOT_VALUE)

# AKS starts the nodes of node auto-provisioning with it, and Cilium's agent removes it when it is ready.
CILIUM_AGENT_NOT_READY: Final = Taint(key="node.cilium.io/agent-not-ready", value="true", effect="NoExecute")

# The block storage driver of EKS removes it when it is ready: a pod that came before could get no volume. No other agent of
# EKS removes a taint, that of Pod Identity included.
EBS_CSI_NOT_READY: Final = Taint(key="ebs.csi.aws.com/agent-not-ready", value="true", effect="NoExecute")

# On GPU pools of both capacity types: a helper pod must neither buy a GPU machine nor occupy one.
GPU: Final = Taint(key=GPU_RESOURCE, value="present")

# On the nodes of operators. By convention charts tolerate this key.
SYSTEM: Final = Taint(key="CriticalAddonsOnly", value="true")


_OF_CAPACITY: Final[Mapping[CapacityType, tuple[Taint, ...]]] = {
    CapacityType.SPOT: (SPOT,),
    CapacityType.RESERVED: (RESERVED,),
    CapacityType.ON_DEMAND: (),
}


def pool_taints(*, capacity: CapacityType, has_gpus: bool) -> tuple[Taint, ...]:
    """The taints of a Karpenter pool's nodes."""
    gpu = (GPU,) if has_gpus else ()
    return (*_OF_CAPACITY[capacity], *gpu)


def aks_pool_taints(*, capacity: CapacityType, has_gpus: bool) -> tuple[Taint, ...]:
    """The taints that a scale set of AKS declares: those of a Karpenter pool, and AKS' own for spot.

    AKS adds its own to a spot pool that does not declare it, which Pulumi would then show as a difference.
    """
    spot = (AKS_SPOT,) if capacity is CapacityType.SPOT else ()
    gpu = (GPU,) if has_gpus else ()
    return (*_OF_CAPACITY[capacity], *spot, *gpu)


def gke_pool_taints(*, capacity: CapacityType, compute_class: str | None) -> tuple[Taint, ...]:
    """The taints that a GKE node pool declares.

    GKE adds the taint for GPUs itself, and rejects pools that declare it. A pool of a ComputeClass has only the taint of
    its class, because GKE adds only this toleration to pods that select the class.
    """
    if compute_class is not None:
        return (Taint(key=COMPUTE_CLASS, value=compute_class),)
    return (GKE_SPOT_TAINT,) if capacity is CapacityType.SPOT else _OF_CAPACITY[capacity]


@dataclass(frozen=True, kw_only=True)
class Toleration:
    """A toleration of a pod. An empty `key` matches any key, an empty `effect` any effect; `value` is None for `Exists`."""

    key: str = ""
    value: str | None = None
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """Whether a pod with this toleration can be scheduled on a node with the taint."""
        return (
            self.key in {"", taint.key}
            and self.effect in {"", taint.effect}
            and self.value in {None, taint.value}
        )

    @classmethod
    def of(cls, taint: Taint) -> "Toleration":
        """The one toleration that matches exactly this taint."""
        return cls(key=taint.key, value=taint.value, effect=taint.effect)


#: The effects that repel pods; `PreferNoSchedule` is a preference.
REPELLING = frozenset({"NoSchedule", "NoExecute"})


def untolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> tuple[Taint, ...]:
    """The taints that repel a pod with these tolerations."""
    known = tuple(tolerations)
    return tuple(
        taint
        for taint in taints
        if taint.effect in REPELLING and not any(each.tolerates(taint) for each in known)
    )
