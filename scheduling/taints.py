"""Taints: which pods each kind of pool keeps away, and the tolerations that let them in."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from holdfast.scheduling.json import Json
from holdfast.scheduling.labels import (
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
    """A node taint; the pods that do not tolerate it stay away."""

    key: str
    value: str
    effect: str = "NoSchedule"

    def as_taint(self) -> Json:
        """The taint as a node or a NodePool spells it."""
        return {"key": self.key, "value": self.value, "effect": self.effect}

    def as_toleration(self) -> Json:
        """The one toleration that matches exactly this taint."""
        return {"key": self.key, "operator": "Equal", "value": self.value, "effect": self.effect}


# Without it a pod that asks for nothing would land on the cheapest machine, which is a spot one.
SPOT: Final = Taint(key=CAPACITY_TYPE, value=CapacityType.SPOT.value)

# The same on GKE, which does not taint the spot nodes of a pool that was made by hand.
GKE_SPOT_TAINT: Final = Taint(key=GKE_SPOT, value=GKE_SPOT_VALUE)

# AKS's own on the spot nodes of its scale sets, which have it beside the first one. Node auto-provisioning adds none.
AKS_SPOT: Final = Taint(key=AKS_SCALE_SET_PRIORITY, value=AKS_SPOT_VALUE)

# On GPU pools of both capacity types: a helper pod must neither buy a GPU machine nor fill one that has room.
GPU: Final = Taint(key=GPU_RESOURCE, value="present")

# On the nodes of operators. The key is the convention charts tolerate.
SYSTEM: Final = Taint(key="CriticalAddonsOnly", value="true")


def pool_taints(*, capacity: CapacityType, has_gpus: bool) -> tuple[Taint, ...]:
    """The taints of a Karpenter pool's nodes."""
    spot = (SPOT,) if capacity is CapacityType.SPOT else ()
    gpu = (GPU,) if has_gpus else ()
    return (*spot, *gpu)


def aks_pool_taints(*, capacity: CapacityType, has_gpus: bool) -> tuple[Taint, ...]:
    """The taints that a scale set of AKS declares: those of a Karpenter pool, and AKS's own for spot.

    AKS adds its own to a spot pool that does not declare it, and such a pool is another than the program says.
    """
    spot = (SPOT, AKS_SPOT) if capacity is CapacityType.SPOT else ()
    gpu = (GPU,) if has_gpus else ()
    return (*spot, *gpu)


def gke_pool_taints(*, capacity: CapacityType, compute_class: str | None) -> tuple[Taint, ...]:
    """The taints that a GKE node pool declares.

    Those of GPUs are not among them: GKE adds them by itself, and refuses to be given them as well. A pool of a
    ComputeClass has that class's taint alone, which its pods are made to tolerate and no other.
    """
    if compute_class is not None:
        return (Taint(key=COMPUTE_CLASS, value=compute_class),)
    return (GKE_SPOT_TAINT,) if capacity is CapacityType.SPOT else ()


@dataclass(frozen=True, kw_only=True)
class Toleration:
    """What a pod puts up with. An empty `key` is any key, an empty `effect` any effect; `value` is None for `Exists`."""

    key: str = ""
    value: str | None = None
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        """Whether the scheduler lets a pod with it onto a node with the taint."""
        return (
            self.key in {"", taint.key}
            and self.effect in {"", taint.effect}
            and self.value in {None, taint.value}
        )

    @classmethod
    def of(cls, taint: Taint) -> "Toleration":
        """The one toleration that matches exactly this taint."""
        return cls(key=taint.key, value=taint.value, effect=taint.effect)


#: Only these keep a pod away; `PreferNoSchedule` is a wish.
REPELLING = frozenset({"NoSchedule", "NoExecute"})


def untolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> tuple[Taint, ...]:
    """The taints that keep away a pod with these tolerations."""
    known = tuple(tolerations)
    return tuple(
        taint
        for taint in taints
        if taint.effect in REPELLING and not any(each.tolerates(taint) for each in known)
    )
