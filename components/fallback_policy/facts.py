"""A pool's facts as a tier of a FallbackPolicy holds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scheduling.json import Json
    from scheduling.pool_facts import PoolFacts


def facts_object(facts: PoolFacts) -> Json:
    """Return the facts of one pool."""
    machine = facts.machine
    return {
        "capacity": facts.capacity.value,
        "labels": dict(facts.labels),
        "taints": [taint.as_taint() for taint in facts.taints],
        "machine": {
            "cpu": str(machine.vcpus),
            "memory": f"{machine.memory_mib}Mi",
            "gpus": machine.gpus,
        },
        "maxNodes": facts.max_nodes,
    }
