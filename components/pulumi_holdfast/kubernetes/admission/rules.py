"""The admission rules for pods in training namespaces, and the rules of each kind of cluster.

A rule is plain data; `pod_admission` turns it into a MutatingAdmissionPolicy.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from pulumi_holdfast.ladder import taints
from pulumi_holdfast.ladder.labels import (
    AKS_PRIORITY,
    AKS_SCALE_SET_PRIORITY,
    AKS_SPOT_VALUE,
    CAPACITY_TYPE,
    COMPUTE_CLASS,
    EFA_NODE,
    EFA_NODE_VALUE,
    EFA_RESOURCE,
    GKE_PROVISIONING,
    GKE_SPOT,
    GKE_SPOT_VALUE,
    GPU_RESOURCE,
    POOL,
    RESERVED,
    SPOT,
    CapacityType,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pulumi_holdfast.ladder.pools import Pool
    from pulumi_holdfast.ladder.taints import Taint


@dataclass(frozen=True, kw_only=True)
class NodeSelection:
    """A node label that pods select to reach tainted nodes, and its values on those nodes.

    A pod selects a value with `nodeSelector`, or with the operator `In` in a required node affinity. A
    preferred affinity, or an affinity that only excludes other values, does not count.
    """

    key: str
    values: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.key or "" in self.values:
            raise ValueError(
                f"selection of {self.key!r} in {self.values} has an empty key or value: set all of them"
            )


@dataclass(frozen=True, kw_only=True)
class TolerationRule:
    """Adds a toleration to pods that select or need the tainted nodes.

    `name` is the rule's name in the cluster, a DNS label: `spot`, `gpu`. A pod gets the toleration of `taint`
    if it matches one of the `selections`, or if one of its containers requests more than zero of one of the
    extended `resources` (`nvidia.com/gpu`). `removed_annotations` are removed from these pods.
    """

    name: str
    taint: Taint
    selections: tuple[NodeSelection, ...] = ()
    resources: tuple[str, ...] = ()
    removed_annotations: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.selections and not self.resources:
            raise ValueError(f"toleration rule {self.name!r} matches no pod: set selections or resources")


@dataclass(frozen=True, kw_only=True)
class AnnotationRule:
    """Adds an annotation to all pods that do not have it.

    `name` is the rule's name in the cluster, a DNS label.
    """

    name: str
    annotation: str
    value: str


@dataclass(frozen=True, kw_only=True)
class LabelRule:
    """Adds a label to the pods of one service account that do not have it.

    `name` is the rule's name in the cluster, a DNS label.
    """

    name: str
    service_account: str
    label: str
    value: str


@dataclass(frozen=True, kw_only=True)
class OneZoneRule:
    """Keeps the pods of a job that request an extended resource in one zone.

    `name` is the rule's name in the cluster, a DNS label. The pods get `label`, which their affinity selects, so that helper
    pods of the job may run in another zone. A pod keeps its own affinity for zones.
    """

    name: str
    resource: str
    label: str
    value: str


AdmissionRule: TypeAlias = TolerationRule | AnnotationRule | LabelRule | OneZoneRule


#: The label that AKS's workload identity webhook requires: it injects a token only into pods that carry it.
USE_WORKLOAD_IDENTITY: Final = "azure.workload.identity/use"


def workload_identity_rule(service_account: str) -> LabelRule:
    """Return the rule that adds the workload identity label to the pods of a service account.

    The webhook runs after the admission policies, so it sees the label. A pod that sets the label to another
    value than `"true"` keeps that value and gets no identity.
    """
    return LabelRule(
        name="identity", service_account=service_account, label=USE_WORKLOAD_IDENTITY, value="true"
    )


#: Karpenter does not drain a pod with this annotation on a spot interruption notice: the pod gets neither
#: SIGTERM nor the condition DisruptionTarget, and loses the progress since its last checkpoint.
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"


def karpenter_rules(pools: Iterable[Pool]) -> tuple[TolerationRule, ...]:
    """Return the rules of clusters whose pools Karpenter manages: EKS, AKS with auto-provisioning, local.

    A pod reaches spot pools by the capacity type or by a pool's name, and GPU pools by a GPU request or by a
    pool's name. The name is for helper pods that run beside the workers of their job without a GPU.
    """
    known = tuple(pools)
    spot_pools = tuple(pool.name for pool in known if pool.capacity is CapacityType.SPOT)
    gpu_pools = tuple(pool.name for pool in known if pool.has_gpus)
    return (
        *reserved_rules(known, NodeSelection(key=CAPACITY_TYPE, values=(RESERVED,))),
        TolerationRule(
            name="spot",
            taint=taints.SPOT,
            selections=(
                NodeSelection(key=CAPACITY_TYPE, values=(SPOT,)),
                NodeSelection(key=POOL, values=spot_pools),
            ),
            removed_annotations=(DO_NOT_DISRUPT,),
        ),
        TolerationRule(
            name="gpu",
            taint=taints.GPU,
            selections=(NodeSelection(key=POOL, values=gpu_pools),),
            resources=(GPU_RESOURCE,),
        ),
    )


def reserved_rules(pools: Iterable[Pool], *selections: NodeSelection) -> tuple[TolerationRule, ...]:
    """Return the rule for pools of reserved machines, if there are any: pods reach them by name or by `selections`."""
    reserved = tuple(pool.name for pool in pools if pool.capacity is CapacityType.RESERVED)
    if not reserved:
        return ()
    return (
        TolerationRule(
            name="reserved",
            taint=taints.RESERVED,
            selections=(*selections, NodeSelection(key=POOL, values=reserved)),
        ),
    )


def eks_rules(*, efa: bool) -> tuple[AdmissionRule, ...]:
    """Return the rules of EKS beside Karpenter's; `efa`: a pool has Elastic Fabric Adapters.

    Traffic between adapters does not cross zones. Karpenter and the scheduler place each pod by itself, and
    would spread a gang over all zones of its pool.
    """
    if not efa:
        return ()
    return (OneZoneRule(name="efa", resource=EFA_RESOURCE, label=EFA_NODE, value=EFA_NODE_VALUE),)


#: GKE's autoscaler evicts pods from underused nodes to remove these nodes. The value `"false"` prevents that;
#: it does not prevent a preemption.
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"


def gke_rules(
    pools: Iterable[Pool], classes: Mapping[str, Sequence[Pool]] | None = None
) -> tuple[AdmissionRule, ...]:
    """Return the rules of clusters whose pools are GKE node pools.

    `pools` are the pools without a ComputeClass; `classes` are the other pools by their class. A pod reaches
    spot pools by one of GKE's labels or by a pool's name, and GPU pools by a pool's name. GKE itself adds the
    tolerations for pods that request GPUs and for pods that select a ComputeClass, but not for pods that
    select a pool of a class by its name, as the pods of a job on a ladder do.
    """
    known = tuple(pools)
    of_classes = classes or {}
    members = [pool for each in of_classes.values() for pool in each]
    spot_pools = tuple(pool.name for pool in known if pool.capacity is CapacityType.SPOT)
    gpu_pools = tuple(pool.name for pool in (*known, *members) if pool.has_gpus)
    return (
        *reserved_rules(known),
        TolerationRule(
            name="spot",
            taint=taints.GKE_SPOT_TAINT,
            selections=(
                NodeSelection(key=GKE_SPOT, values=(GKE_SPOT_VALUE,)),
                NodeSelection(key=GKE_PROVISIONING, values=(SPOT,)),
                NodeSelection(key=POOL, values=spot_pools),
            ),
        ),
        TolerationRule(name="gpu", taint=taints.GPU, selections=(NodeSelection(key=POOL, values=gpu_pools),)),
        *(_class_rule(name, each) for name, each in of_classes.items()),
        AnnotationRule(name="kept", annotation=SAFE_TO_EVICT, value="false"),
    )


def spot_classes(classes: Mapping[str, Sequence[Pool]]) -> tuple[NodeSelection, ...]:
    """Return how pods select spot by ComputeClass: the names of the classes that have spot pools."""
    names = tuple(
        name for name, pools in classes.items() if any(pool.capacity is CapacityType.SPOT for pool in pools)
    )
    return (NodeSelection(key=COMPUTE_CLASS, values=names),) if names else ()


def _class_rule(name: str, pools: Sequence[Pool]) -> TolerationRule:
    return TolerationRule(
        name=f"class-{name}",
        taint=taints.Taint(key=COMPUTE_CLASS, value=name),
        selections=(NodeSelection(key=POOL, values=tuple(pool.name for pool in pools)),),
    )


#: The labels with which the AKS documentation selects spot nodes.
_AKS_SELECTIONS = tuple(
    NodeSelection(key=key, values=(AKS_SPOT_VALUE,)) for key in (AKS_SCALE_SET_PRIORITY, AKS_PRIORITY)
)


def aks_rules(pools: Iterable[Pool]) -> tuple[AdmissionRule, ...]:
    """Return the rules of AKS clusters, with node auto-provisioning and with scale sets.

    They are the Karpenter rules with AKS's spot labels as further selections, and a second toleration for
    spot because the nodes of a scale set carry AKS's own taint as well. The cluster autoscaler of scale sets
    evicts pods to remove underused nodes, as GKE's does, so all pods get its annotation. The rules are the
    same in both modes, so that jobs do not change when the mode does.
    """
    *reserved, spot, gpu = karpenter_rules(pools)
    asked = replace(spot, selections=(*spot.selections, *_AKS_SELECTIONS))
    return (
        *reserved,
        asked,
        replace(asked, name="scale-set-spot", taint=taints.AKS_SPOT, removed_annotations=()),
        gpu,
        AnnotationRule(name="kept", annotation=SAFE_TO_EVICT, value="false"),
    )
