"""What a Karpenter NodePool says, on every cloud that has Karpenter. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from scheduling.labels import ARCH, CAPACITY_TYPE, GPU_RESOURCE, INSTANCE_TYPE, OS, POOL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from components.pools.node_class import NodeClass
    from scheduling.json import Json
    from scheduling.machines import Machine
    from scheduling.pools import Pool

#: How long a node's pods have to leave it before they are taken away. Without an end, one disruption budget that
#: allows no eviction would keep a node, and with it `destroy`, for ever.
TERMINATION_GRACE_PERIOD: Final = "10m"

#: A restart leaves the job's other nodes empty for a moment; giving them back at once would mean to buy them again.
CONSOLIDATE_AFTER: Final = "5m"


def node_pool_spec(
    pool: Pool, machines: Sequence[Machine], node_class: NodeClass, name: str, weight: int
) -> Json:
    """The NodePool of a pool of these machine types, with `name` the name of its node class."""
    return {
        "weight": weight,
        "limits": limits(pool, machines),
        "disruption": _disruption(),
        "template": {
            "metadata": {"labels": {POOL: pool.name}},
            "spec": {
                "nodeClassRef": {"group": node_class.group, "kind": node_class.kind, "name": name},
                "taints": [taint.as_taint() for taint in pool.taints],
                "requirements": requirements(pool, machines),
                # A node that trains is not replaced for its age.
                "expireAfter": "Never",
                "terminationGracePeriod": TERMINATION_GRACE_PERIOD,
            },
        },
    }


def requirements(pool: Pool, machines: Sequence[Machine]) -> Sequence[Json]:
    """What Karpenter may buy: one capacity type, and machines of the list.

    One, because a NodePool with both buys spot first and taints all its nodes alike: its on-demand nodes would then
    be closed to the very pods that fall back to them.
    """
    return [
        _one_of(CAPACITY_TYPE, pool.capacity.value),
        _one_of(INSTANCE_TYPE, *(machine.name for machine in machines)),
        _one_of(ARCH, "amd64"),
        _one_of(OS, "linux"),
    ]


def limits(pool: Pool, machines: Sequence[Machine]) -> Json:
    """How much the pool may hold.

    `nodes` is the limit meant. Karpenter has come to honour it on such pools only lately, and a managed Karpenter is
    not ours to upgrade: the resources of as many of the largest machine stand behind it.
    """
    gpus = max(machine.gpus for machine in machines)
    accelerators = {GPU_RESOURCE: str(pool.max_nodes * gpus)} if gpus else {}
    return {
        "nodes": str(pool.max_nodes),
        "cpu": str(pool.max_nodes * max(machine.vcpus for machine in machines)),
        **accelerators,
    }


def _disruption() -> Json:
    return {
        "consolidationPolicy": "WhenEmpty",
        "consolidateAfter": CONSOLIDATE_AFTER,
        "budgets": [
            # Moving a training pod costs every step since its last checkpoint, on all of the job's nodes: never done
            # for a better price or a newer template. Pods themselves must not refuse disruption, or Karpenter would
            # skip them when it drains a node on a spot interruption notice.
            {"nodes": "0", "reasons": ["Drifted", "Underutilized"]},
            # Budgets that are written replace the default one of 10 %.
            {"nodes": "100%", "reasons": ["Empty"]},
        ],
    }


def _one_of(key: str, *values: str) -> Json:
    return {"key": key, "operator": "In", "values": values}
