"""What a pod in a training namespace may ask for, and what admission does for a pod that does."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from holdfast.scheduling import taints
from holdfast.scheduling.errors import Problem
from holdfast.scheduling.labels import (
    AKS_PRIORITY,
    AKS_SCALE_SET_PRIORITY,
    AKS_SPOT_VALUE,
    CAPACITY_TYPE,
    COMPUTE_CLASS,
    GKE_PROVISIONING,
    GKE_SPOT,
    GKE_SPOT_VALUE,
    GPU_RESOURCE,
    POOL,
    SPOT,
    CapacityType,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from holdfast.scheduling.pools import Pool
    from holdfast.scheduling.taints import Taint


@dataclass(frozen=True, kw_only=True)
class NodeSelection:
    """A node label by which pods ask for tainted nodes, and the values of it that those nodes have.

    A pod asks by naming a value: in its `nodeSelector`, or with `In` in a required node affinity. One that merely
    prefers such nodes, or that excludes all others, names none.
    """

    key: str
    values: tuple[str, ...]

    def __post_init__(self) -> None:
        if not self.key or "" in self.values:
            raise ValueError(
                f"selection of {self.key!r} in {self.values}: neither key nor value may be empty"
            )


@dataclass(frozen=True, kw_only=True)
class TolerationRule:
    """Pods that ask for tainted nodes tolerate the taint.

    `name` is the rule's name within the cluster, a DNS label: `spot`, `gpu`. A pod asks for the nodes behind `taint` by
    one of the `selections`, or by a container that requests more than zero of one of the extended
    `resources`, as `nvidia.com/gpu`. `removed_annotations` are those that a pod on such nodes must not carry.
    """

    name: str
    taint: Taint
    selections: tuple[NodeSelection, ...] = ()
    resources: tuple[str, ...] = ()
    removed_annotations: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.selections and not self.resources:
            raise ValueError(
                f"toleration rule {self.name!r}: no pod can ask for it; give selections or resources"
            )


@dataclass(frozen=True, kw_only=True)
class AnnotationRule:
    """All pods carry an annotation; one that has it already keeps what its author wrote.

    `name` is the rule's name within the cluster, a DNS label.
    """

    name: str
    annotation: str
    value: str


@dataclass(frozen=True, kw_only=True)
class LabelRule:
    """The pods of one service account carry a label; one that has it already keeps what its author wrote.

    `name` is the rule's name within the cluster, a DNS label.
    """

    name: str
    service_account: str
    label: str
    value: str


AdmissionRule: TypeAlias = TolerationRule | AnnotationRule | LabelRule


#: The first Kubernetes version that serves MutatingAdmissionPolicy as admissionregistration.k8s.io/v1.
OLDEST = (1, 36)

ALLOWED = "1.36 or later, the first to serve MutatingAdmissionPolicy v1, which gives training pods their tolerations"


def version_problem(field: str, version: str, taints: Iterable[Taint]) -> Problem | None:
    """Return why a cluster cannot run the admission policies, `None` when it can.

    `field` is the full path of the configuration field that holds the version (`1.36` or `1.36.3`); `taints` are those
    that pods have to tolerate by hand on an older cluster.
    """
    match = re.fullmatch(r"v?(\d+)\.(\d+)(?:[.+-].*)?", version, re.ASCII)
    if match is None:
        return Problem(
            field=field, value=f'"{version}"', allowed=ALLOWED, fix='Write a version such as "1.36".'
        )
    if (int(match[1]), int(match[2])) >= OLDEST:
        return None
    return Problem(
        field=field,
        value=f'"{version}"',
        allowed=ALLOWED,
        fix='Write "1.36"; or, to stay on the older version, leave out the training namespaces and add to each job\'s '
        f"pod template the tolerations it needs: {by_hand(taints)}.",
    )


def by_hand(taints: Iterable[Taint]) -> str:
    """Return tolerations as their author would write them into a pod template."""
    return ", ".join(
        f'{{key: {taint.key}, operator: Equal, value: "{taint.value}", effect: {taint.effect}}}'
        for taint in taints
    )


#: What AKS's webhook heeds a pod by: it gives no other the token, and tells no other whose identity it has.
USES_IDENTITY: Final = "azure.workload.identity/use"


def workload_identity_rule(service_account: str) -> LabelRule:
    """Return the rule under which the pods of a service account need not be labelled by whoever writes them.

    The webhook looks at pods after the policies of the cluster, and so sees the label. A pod that has it as anything but
    `"true"` says no, and gets none.
    """
    return LabelRule(name="identity", service_account=service_account, label=USES_IDENTITY, value="true")


#: Karpenter leaves a pod that carries it out of the drain on a spot interruption notice: it would get neither SIGTERM
#: nor the DisruptionTarget condition, and lose what it trained since its last checkpoint.
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"


def karpenter_rules(pools: Iterable[Pool]) -> tuple[TolerationRule, ...]:
    """Return the rules under which pods reach the spot pools and the GPU pools they ask for.

    A pod asks for spot by the capacity type or by the name of a spot pool; for GPUs by requesting some, or by the name of
    a GPU pool, as a helper does that runs beside the workers of its job.
    """
    known = tuple(pools)
    spot_pools = tuple(pool.name for pool in known if pool.capacity is CapacityType.SPOT)
    gpu_pools = tuple(pool.name for pool in known if pool.has_gpus)
    return (
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


#: GKE's autoscaler moves what runs on a half-empty node elsewhere and takes the node away. A pod that says no keeps its
#: node, but not from a preemption.
SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"


def gke_rules(
    pools: Iterable[Pool], classes: Mapping[str, Sequence[Pool]] | None = None
) -> tuple[AdmissionRule, ...]:
    """Return the rules under which pods reach the spot pools and the GPU pools they ask for, and keep their nodes.

    `pools` are those that belong to no ComputeClass; `classes` are the others, by their class. A pod asks for spot by either
    of GKE's labels or by the name of a spot pool; for GPUs by the name of a GPU pool, as a helper does that runs beside the
    workers of its job. Pods that request GPUs, and those that select a class, are let in by GKE itself; not so those that
    name a pool of one, as the pods of a job do that follows a ladder.
    """
    known = tuple(pools)
    of_classes = classes or {}
    members = [pool for each in of_classes.values() for pool in each]
    spot_pools = tuple(pool.name for pool in known if pool.capacity is CapacityType.SPOT)
    gpu_pools = tuple(pool.name for pool in (*known, *members) if pool.has_gpus)
    return (
        TolerationRule(
            name="spot",
            taint=taints.GKE_SPOT_TAINT,
            selections=(
                NodeSelection(key=GKE_SPOT, values=(GKE_SPOT_VALUE,)),
                NodeSelection(key=GKE_PROVISIONING, values=(SPOT,)),
                NodeSelection(key=POOL, values=spot_pools),
            ),
        ),
        TolerationRule(
            name="gpu",
            taint=taints.GPU,
            selections=(NodeSelection(key=POOL, values=gpu_pools),),
        ),
        *(_class_rule(name, each) for name, each in of_classes.items()),
        AnnotationRule(name="kept", annotation=SAFE_TO_EVICT, value="false"),
    )


def spot_classes(classes: Mapping[str, Sequence[Pool]]) -> tuple[NodeSelection, ...]:
    """By what pods ask for spot where ComputeClasses stand for pools: by the name of a class of spot pools."""
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


#: How AKS's own pages tell users to select spot.
_AKS_SELECTIONS = tuple(
    NodeSelection(key=key, values=(AKS_SPOT_VALUE,)) for key in (AKS_SCALE_SET_PRIORITY, AKS_PRIORITY)
)


def aks_rules(pools: Iterable[Pool]) -> tuple[AdmissionRule, ...]:
    """Return the rules under which pods reach the spot pools and the GPU pools they ask for, and keep their nodes.

    They are those of Karpenter's pools, with AKS's labels as further ways to ask for spot, and a second toleration for
    it: the nodes of a scale set have AKS's taint beside ours. The cluster autoscaler of scale sets, like GKE's, would
    move a job that trains to empty a node. In both ways of scaling all rules hold, so that neither jobs nor what they
    rely on change with it.
    """
    spot, gpu = karpenter_rules(pools)
    asked = replace(spot, selections=(*spot.selections, *_AKS_SELECTIONS))
    return (
        asked,
        replace(asked, name="scale-set-spot", taint=taints.AKS_SPOT, removed_annotations=()),
        gpu,
        AnnotationRule(name="kept", annotation=SAFE_TO_EVICT, value="false"),
    )
