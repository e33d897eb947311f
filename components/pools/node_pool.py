"""What a Karpenter NodePool says, on every cloud that has Karpenter. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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

    from holdfast.components.pools.node_class import NodeClass
    from holdfast.scheduling.json import Json
    from holdfast.scheduling.machines import Machine
    from holdfast.scheduling.pools import Pool

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
