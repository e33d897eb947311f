"""Pools of Karpenter: a NodePool and its node class."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from pulumi import ComponentResource, CustomTimeouts, ResourceOptions

from pulumi_holdfast.kubernetes.kubernetes_object import KubernetesObject
from pulumi_holdfast.ladder.labels import (
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
    RESERVATION_ID,
    ZONE,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pulumi import Input, Output

    from pulumi_holdfast.ladder.json import Json
    from pulumi_holdfast.ladder.machines import Machine
    from pulumi_holdfast.ladder.pools import Pool
    from pulumi_holdfast.ladder.taints import Taint


#: JSON in which any string may be an input that is not known yet.
SpecValue: TypeAlias = (
    "bool | int | Input[str] | Output[Sequence[SpecValue]] | Sequence[SpecValue] | Mapping[str, SpecValue]"
)
Spec: TypeAlias = "Mapping[str, SpecValue]"


@dataclass(frozen=True, kw_only=True)
class NodeClass:
    """The kind and the specification of a node class; its name is the pool's.

    `labels` are those that the cloud's agents on its nodes need. `startup_taints` are the taints that these
    agents remove when they are ready: Karpenter expects pods to run on the node nevertheless.
    """

    group: str
    version: str
    kind: str
    spec: Spec = field(default_factory=dict[str, "SpecValue"])
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    startup_taints: Sequence[Taint] = ()

    @property
    def api_version(self) -> str:
        """Group and version, as in `apiVersion`."""
        return f"{self.group}/{self.version}"


#: Simulated machines; they join immediately.
KWOK: Final = NodeClass(group="karpenter.kwok.sh", version="v1alpha1", kind="KWOKNodeClass")


#: The maximum time to drain a node. Without a limit, a disruption budget that allows no eviction would block
#: the node, and `destroy`, indefinitely.
TERMINATION_GRACE_PERIOD: Final = "10m"

#: A restart leaves the job's nodes empty for a moment; removing them at once would mean buying them again.
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
    reservation: str | None = None,
) -> Json:
    """Return the NodePool for these machine types; `name` is the name of its node class.

    `reservation` is the id of the reservation of a reserved pool. Without `zones` it uses all zones of its node class. `efa`
    labels nodes with fabric adapters. `roll_out` allows the replacement of nodes that differ from the configuration.
    """
    return {
        "weight": weight,
        "limits": limits(pool, machines),
        "disruption": _disruption(roll_out=roll_out),
        "template": {
            "metadata": {"labels": {**node_labels(pool, efa=efa), **node_class.labels}},
            "spec": {
                "nodeClassRef": {"group": node_class.group, "kind": node_class.kind, "name": name},
                "taints": [taint.as_taint() for taint in pool.taints],
                **_startup_taints(node_class),
                "requirements": requirements(pool, machines, zones, reservation),
                # Nodes with training jobs are not replaced because of their age.
                "expireAfter": "Never",
                "terminationGracePeriod": TERMINATION_GRACE_PERIOD,
            },
        },
    }


def _startup_taints(node_class: NodeClass) -> Json:
    taints = [taint.as_taint() for taint in node_class.startup_taints]
    return {"startupTaints": taints} if taints else {}


def node_labels(pool: Pool, *, efa: bool) -> Mapping[str, str]:
    """Return the labels of the pool's nodes: its name and its devices."""
    gpu = {GPU_NODE: GPU_NODE_VALUE} if pool.has_gpus else {}
    fabric = {EFA_NODE: EFA_NODE_VALUE} if efa else {}
    return {POOL: pool.name, **gpu, **fabric}


def requirements(
    pool: Pool, machines: Sequence[Machine], zones: Collection[str], reservation: str | None = None
) -> Sequence[Json]:
    """Return what Karpenter may buy: one capacity type, the listed machines, and zones and a reservation, if any.

    A NodePool with both capacity types would buy spot first and taint all nodes alike, so that its on-demand
    nodes would reject the pods that fall back to them.
    """
    return [
        _one_of(CAPACITY_TYPE, pool.capacity.value),
        _one_of(INSTANCE_TYPE, *(machine.name for machine in machines)),
        *([_one_of(ZONE, *zones)] if zones else []),
        *([_one_of(RESERVATION_ID, reservation)] if reservation is not None else []),
        _one_of(ARCH, *sorted({machine.arch for machine in machines})),
        _one_of(OS, "linux"),
    ]


def limits(pool: Pool, machines: Sequence[Machine]) -> Json:
    """Return the approximate limits of the pool.

    Karpenter checks `nodes` only before it plans, and one plan can add any number of nodes. It does count
    resources while it plans, each machine as the largest that it could become. So the limits also have the
    resources of `max_nodes` of the largest machine. A pool with smaller machines can still get more nodes.
    """
    gpus = max(machine.gpus for machine in machines)
    accelerators = {GPU_RESOURCE: str(pool.max_nodes * gpus)} if gpus else {}
    return {
        "nodes": str(pool.max_nodes),
        "cpu": str(pool.max_nodes * max(machine.vcpus for machine in machines)),
        **accelerators,
    }


def _disruption(*, roll_out: bool) -> Json:
    # Moving a training pod costs the progress since its last checkpoint on all nodes of the job: nodes are
    # not replaced for a better price and, unless `roll_out`, not for a newer template. The pods themselves
    # must not block disruption, because Karpenter then skips them when it drains a node on a spot
    # interruption notice.
    forbidden = ["Underutilized"] if roll_out else ["Drifted", "Underutilized"]
    # With `roll_out` all nodes at once: a job restarts when any of its nodes is drained, so one node at a
    # time would cost one restart per node.
    allowed = ["Drifted", "Empty"] if roll_out else ["Empty"]
    return {
        "consolidationPolicy": "WhenEmpty",
        "consolidateAfter": CONSOLIDATE_AFTER,
        "budgets": [
            {"nodes": "0", "reasons": forbidden},
            # Explicit budgets replace the default budget of 10 %.
            {"nodes": "100%", "reasons": allowed},
        ],
    }


def _one_of(key: str, *values: str) -> Json:
    return {"key": key, "operator": "In", "values": values}


#: A NodePool is deleted after its last node: pods have 10 minutes to leave, and a machine with eight GPUs
#: takes several more to shut down.
_DELETE_TIMEOUT: Final = "30m"


@dataclass(frozen=True, kw_only=True)
class KarpenterPoolArgs:
    """The pool's facts, its machine types (one or more) and the node class of its cloud.

    `weight` (1 to 100) is its priority among the pools that a pod fits; the highest is tried first. `zones`
    restricts its zones; none: all of its network. `efa`: its nodes have fabric adapters. `roll_out` allows
    the replacement of nodes that differ from the configuration. `reservation` is the id of the reservation of a
    reserved pool.
    """

    pool: Pool
    machines: Sequence[Machine]
    node_class: NodeClass
    weight: int
    zones: Collection[str] = ()
    efa: bool = False
    roll_out: bool = False
    reservation: str | None = None


class KarpenterPool(ComponentResource):
    """Nodes of one capacity type that scale with the pods that select them (`holdfast:index:KarpenterPool`).

    Creates the node class and the NodePool with the pool's name. Its deletion waits until its nodes are gone.
    """

    def __init__(self, name: str, args: KarpenterPoolArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:KarpenterPool", name, None, opts)
        node_class = KubernetesObject(
            f"{name}-node-class",
            args.node_class.api_version,
            args.node_class.kind,
            {"metadata": {"name": args.pool.name}, "spec": args.node_class.spec},
            opts=ResourceOptions(parent=self),
        )
        KubernetesObject(
            f"{name}-node-pool",
            "karpenter.sh/v1",
            "NodePool",
            {
                "metadata": {
                    "name": args.pool.name,
                    # NodeClaims block the foreground deletion of their NodePool, so Karpenter, which is deleted
                    # next, still exists to drain and terminate their nodes.
                    "annotations": {"pulumi.com/deletionPropagationPolicy": "foreground"},
                },
                "spec": node_pool_spec(
                    args.pool,
                    args.machines,
                    args.node_class,
                    args.pool.name,
                    args.weight,
                    zones=args.zones,
                    efa=args.efa,
                    roll_out=args.roll_out,
                    reservation=args.reservation,
                ),
            },
            opts=ResourceOptions(
                parent=self, depends_on=[node_class], custom_timeouts=CustomTimeouts(delete=_DELETE_TIMEOUT)
            ),
        )
        self.register_outputs({})
