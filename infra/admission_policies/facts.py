"""The facts of a tier for the API server, from the pools that a program declares.

A missing fact never rejects a job, so values that are unknown, or that differ between NodePools with one label, are left
out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.components.fallback_policy.ladder import label_values_object, machine_capacity_object
from holdfast.scheduling.json import UNKNOWN
from holdfast.scheduling.labels import POOL, SPOT, ZONE, CapacityType
from holdfast.scheduling.pool_and_job_fields import MOST_LABELS, MOST_NODES, MOST_TAINTS
from holdfast.scheduling.reachability.affinity import ABSENT, OTHERS, label_of
from holdfast.scheduling.reachability.label_values import LabelValues
from holdfast.scheduling.reachability.machine_capacity import non_dominated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.scheduling.json import Json, JsonValue
    from holdfast.scheduling.reachability.facts import PoolFacts
    from holdfast.scheduling.reachability.machine_capacity import MachineCapacity
    from holdfast.scheduling.taints import Taint


def tier_facts(pools: Sequence[PoolFacts]) -> Json | None:
    """Return the facts of the pools that a tier names; None if there are none, or their capacity types are not known."""
    capacity = _capacity(pools)
    if capacity is None:
        return None
    machines = _machines(pools)
    found: dict[str, JsonValue | None] = {
        "capacity": capacity.value,
        "labels": _labels(pools[0]) if len(pools) == 1 else None,
        "taints": _taints(pools),
        "machine": _smallest(machines),
        "machines": [machine_capacity_object(each) for each in non_dominated(machines)] or None,
        "maxNodes": _most_nodes(pools),
        **label_values_object(machines, _zones(pools)),
    }
    return {name: value for name, value in found.items() if value is not None}


def _capacity(pools: Sequence[PoolFacts]) -> CapacityType | None:
    """Return on-demand if one pool is: then a job arrives there. A pool that may make spot nodes counts as spot."""
    if not pools or any(pool.is_on_demand is UNKNOWN for pool in pools):
        return None
    if any(pool.is_on_demand is True for pool in pools):
        return CapacityType.ON_DEMAND
    kinds = frozenset[str]().union(*(pool.capacity_types for pool in pools))
    return CapacityType.SPOT if SPOT in kinds else CapacityType.RESERVED


def _labels(pool: PoolFacts) -> Json | None:
    """Return the labels of its nodes; None if a label that no cloud sets has several values or an unknown one."""
    if pool.labels is UNKNOWN:
        return None
    found: dict[str, JsonValue] = {}
    for key, fact in pool.labels.items():
        only = fact.only if isinstance(fact, LabelValues) else fact
        if key == POOL and isinstance(fact, LabelValues) and pool.name in fact:
            # Karpenter sets the value that the pods of the tier select.
            only = pool.name
        if isinstance(only, str):
            found[key] = only
        elif fact != ABSENT and not (_is_given(key) and (key, fact) != (OTHERS, UNKNOWN)):
            return None
    return found if len(found) <= MOST_LABELS else None


def _is_given(key: str) -> bool:
    """Whether the API server's checks assume that a cloud may set the label."""
    return key == OTHERS or label_of({}, key) is UNKNOWN


def _taints(pools: Sequence[PoolFacts]) -> list[JsonValue] | None:
    """Return the taints that repel pods on every pool, whatever they select; None if there are none for certain."""
    first, *others = map(_certain_taints, pools)
    shared = [taint.as_taint() for taint in first if all(taint in other for other in others)]
    return [*shared[:MOST_TAINTS]] or None


def _certain_taints(pool: PoolFacts) -> Sequence[Taint]:
    """Return its taints without those that only some selectors let pods tolerate: the API server does not know these."""
    if pool.taints is UNKNOWN or pool.added_tolerations is UNKNOWN:
        return ()
    by_selector = [each.toleration for each in pool.added_tolerations if each.selecting is not None]
    return [taint for taint in pool.taints if not any(each.tolerates(taint) for each in by_selector)]


def _machines(pools: Sequence[PoolFacts]) -> Sequence[MachineCapacity]:
    """Return the machine types of all pools; none if those of one are not known."""
    known = [
        pool.machines for pool in pools if pool.machines is not UNKNOWN and not pool.unknown_machine_types
    ]
    if len(known) < len(pools) or not all(known):
        return ()
    types = {machine.name: machine for machines in known for machine in machines}
    return tuple(types.values())


def _zones(pools: Sequence[PoolFacts]) -> frozenset[str]:
    """Return the zones of all pools; none if those of one are not known."""
    found: set[str] = set()
    for pool in pools:
        fact = UNKNOWN if pool.labels is UNKNOWN else pool.labels.get(ZONE)
        if isinstance(fact, LabelValues) and not fact.is_complement:
            found |= fact.values
        elif isinstance(fact, str):
            found.add(fact)
        else:
            return frozenset()
    return frozenset(found)


def _smallest(machines: Sequence[MachineCapacity]) -> Json | None:
    """Return the minimum of each resource."""
    if not machines:
        return None
    whole = [machine.capacity for machine in machines]
    return {
        "cpu": str(min(each.cpu_millis for each in whole) // 1000),
        "memory": f"{min(each.memory_mib for each in whole)}Mi",
        "gpus": min(each.gpus for each in whole),
    }


def _most_nodes(pools: Sequence[PoolFacts]) -> int | None:
    """Return how many nodes the pools have at most; None if one has no limit, or no certain one."""
    most = [_nodes_of(pool) for pool in pools]
    total = sum(each for each in most if each is not None)
    return None if None in most or not 0 < total <= MOST_NODES else total


def _nodes_of(pool: PoolFacts) -> int | None:
    # One plan of Karpenter may exceed a limit of nodes, but none of resources.
    limits = pool.limits if pool.limits.nodes_are_exact else replace(pool.limits, nodes=None)
    if pool.machines is UNKNOWN or pool.unknown_machine_types or not pool.machines:
        return limits.nodes if isinstance(limits.nodes, int) else None
    most = [limits.nodes_of(machine) for machine in pool.machines]
    known = [each for each in most if isinstance(each, int)]
    return max(known) if known and len(known) == len(most) else None
