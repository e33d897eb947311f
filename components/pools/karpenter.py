"""A pool that Karpenter keeps: a NodePool and its node class."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from pulumi import ComponentResource, CustomTimeouts, ResourceOptions
from pulumi_kubernetes.apiextensions import CustomResource

from holdfast.scheduling.labels import (
    ARCH,
    CAPACITY_TYPE,
    EFA_NODE,
    EFA_NODE_VALUE,
    GPU_NODE,
    GPU_NODE_VALUE,
    GPU_RESOURCE,
    INSTANCE_TYPE,
    OS,
    POOL,
    ZONE,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pulumi import Input

    from holdfast.scheduling.json import Json
    from holdfast.scheduling.machines import Machine
    from holdfast.scheduling.pools import Pool


#: JSON in which a text that is not known yet may stand anywhere.
SpecValue: TypeAlias = "bool | int | Input[str] | Sequence[SpecValue] | Mapping[str, SpecValue]"
Spec: TypeAlias = "Mapping[str, SpecValue]"


@dataclass(frozen=True, kw_only=True)
class NodeClass:
    """A kind of node class and what it says; its name is the pool's."""

    group: str
    version: str
    kind: str
    spec: Spec = field(default_factory=dict[str, "SpecValue"])

    @property
    def api_version(self) -> str:
        """Group and version, as objects name them."""
        return f"{self.group}/{self.version}"


#: Simulated machines; they join as soon as they are bought.
KWOK: Final = NodeClass(group="karpenter.kwok.sh", version="v1alpha1", kind="KWOKNodeClass")


#: How long a node's pods have to leave it before they are taken away. Without an end, one disruption budget that
#: allows no eviction would keep a node, and with it `destroy`, for ever.
TERMINATION_GRACE_PERIOD: Final = "10m"

#: A restart leaves the job's other nodes empty for a moment; giving them back at once would mean to buy them again.
CONSOLIDATE_AFTER: Final = "5m"


def node_pool_spec(
    pool: Pool,
    machines: Sequence[Machine],
    node_class: NodeClass,
    name: str,
    weight: int,
    *,
    zones: Collection[str] = (),
    efa: bool = False,
    roll_out: bool = False,
) -> Json:
    """The NodePool of a pool of these machine types, with `name` the name of its node class.

    With no `zones` it is at home in all that its node class reaches. `efa` marks nodes that have fabric adapters;
    `roll_out` lets machines be replaced which are not as the configuration now says.
    """
    return {
        "weight": weight,
        "limits": limits(pool, machines),
        "disruption": _disruption(roll_out=roll_out),
        "template": {
            "metadata": {"labels": node_labels(pool, efa=efa)},
            "spec": {
                "nodeClassRef": {"group": node_class.group, "kind": node_class.kind, "name": name},
                "taints": [taint.as_taint() for taint in pool.taints],
                "requirements": requirements(pool, machines, zones),
                # A node that trains is not replaced for its age.
                "expireAfter": "Never",
                "terminationGracePeriod": TERMINATION_GRACE_PERIOD,
            },
        },
    }


def node_labels(pool: Pool, *, efa: bool) -> Mapping[str, str]:
    """The labels of a pool's nodes: its name, and which devices they bring."""
    gpu = {GPU_NODE: GPU_NODE_VALUE} if pool.has_gpus else {}
    fabric = {EFA_NODE: EFA_NODE_VALUE} if efa else {}
    return {POOL: pool.name, **gpu, **fabric}


def requirements(pool: Pool, machines: Sequence[Machine], zones: Collection[str]) -> Sequence[Json]:
    """What Karpenter may buy: one capacity type, machines of the list, in these zones if there are any.

    One, because a NodePool with both buys spot first and taints all its nodes alike: its on-demand nodes would then
    be closed to the very pods that fall back to them.
    """
    return [
        _one_of(CAPACITY_TYPE, pool.capacity.value),
        _one_of(INSTANCE_TYPE, *(machine.name for machine in machines)),
        *([_one_of(ZONE, *zones)] if zones else []),
        _one_of(ARCH, *sorted({machine.arch for machine in machines})),
        _one_of(OS, "linux"),
    ]


def limits(pool: Pool, machines: Sequence[Machine]) -> Json:
    """About how much the pool may hold.

    `nodes` is what is meant, but Karpenter looks at it only before it plans: one plan can add any number of nodes.
    What a plan's machines hold is counted as it goes, each as the largest that it could become: so the resources of
    as many of the largest machine stand beside it. A pool of smaller ones too can get more nodes than was meant.
    """
    gpus = max(machine.gpus for machine in machines)
    accelerators = {GPU_RESOURCE: str(pool.max_nodes * gpus)} if gpus else {}
    return {
        "nodes": str(pool.max_nodes),
        "cpu": str(pool.max_nodes * max(machine.vcpus for machine in machines)),
        **accelerators,
    }


def _disruption(*, roll_out: bool) -> Json:
    # Moving a training pod costs every step since its last checkpoint, on all of the job's nodes: never done for a
    # better price, nor, unasked, for a newer template. Pods themselves must not refuse disruption, or Karpenter would
    # skip them when it drains a node on a spot interruption notice.
    kept = ["Underutilized"] if roll_out else ["Drifted", "Underutilized"]
    # All at once where it is asked for: a job restarts when any of its nodes goes, so one after the other would cost
    # it one restart for each.
    given_up = ["Drifted", "Empty"] if roll_out else ["Empty"]
    return {
        "consolidationPolicy": "WhenEmpty",
        "consolidateAfter": CONSOLIDATE_AFTER,
        "budgets": [
            {"nodes": "0", "reasons": kept},
            # Budgets that are written replace the default one of 10 %.
            {"nodes": "100%", "reasons": given_up},
        ],
    }


def _one_of(key: str, *values: str) -> Json:
    return {"key": key, "operator": "In", "values": values}


#: The deletion of a NodePool is that of its last node: its pods have 10 min to leave, and a machine with eight GPUs
#: takes several more to shut down.
_DELETE_TIMEOUT: Final = "30m"


@dataclass(frozen=True, kw_only=True)
class KarpenterPoolArgs:
    """A pool's facts, the machine types it may buy (one or more), and the node class of its cloud.

    `weight`, 1 to 100, is its rank among the pools that a pod fits in; the highest is tried first. `zones` are those
    it keeps to, none for all of its network's. `efa`: its nodes have fabric adapters. `roll_out`: its machines may
    now be replaced where they are not as the configuration says.
    """

    pool: Pool
    machines: Sequence[Machine]
    node_class: NodeClass
    weight: int
    zones: Collection[str] = ()
    efa: bool = False
    roll_out: bool = False


class KarpenterPool(ComponentResource):
    """Nodes of one capacity type that come and go with the pods which select them.

    Creates the node class and the NodePool, both under the pool's name. Deleting it waits until its nodes are gone.
    """

    def __init__(self, name: str, args: KarpenterPoolArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:KarpenterPool", name, None, opts)
        node_class = CustomResource(
            f"{name}-node-class",
            api_version=args.node_class.api_version,
            kind=args.node_class.kind,
            metadata={"name": args.pool.name},
            spec=args.node_class.spec,
            opts=ResourceOptions(parent=self),
        )
        CustomResource(
            f"{name}-node-pool",
            api_version="karpenter.sh/v1",
            kind="NodePool",
            metadata={
                "name": args.pool.name,
                # NodeClaims are owned by their NodePool and block its deletion in the foreground: so the next thing
                # in line, Karpenter itself, is still there to empty and end their nodes.
                "annotations": {"pulumi.com/deletionPropagationPolicy": "foreground"},
            },
            spec=node_pool_spec(
                args.pool,
                args.machines,
                args.node_class,
                args.pool.name,
                args.weight,
                zones=args.zones,
                efa=args.efa,
                roll_out=args.roll_out,
            ),
            opts=ResourceOptions(
                parent=self,
                depends_on=[node_class],
                custom_timeouts=CustomTimeouts(delete=_DELETE_TIMEOUT),
            ),
        )
        self.register_outputs({})
