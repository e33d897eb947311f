"""A pool's facts as a tier of a FallbackPolicy holds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.scheduling.quantities import format_cpu, format_memory

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json
    from holdfast.scheduling.pools import PoolSummary
    from holdfast.scheduling.reachability.machine_capacity import MachineCapacity


def facts_object(facts: PoolSummary) -> Json:
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
        **({"machines": [room_object(room) for room in facts.rooms]} if facts.rooms else {}),
        "maxNodes": facts.max_nodes,
    }


def room_object(room: MachineCapacity) -> Json:
    """Return what pods get of one of its machines."""
    return {
        "name": room.name,
        "cpu": format_cpu(room.room.cpu_millis),
        "memory": format_memory(room.room.memory_mib),
        "gpus": room.room.gpus,
        "pods": room.most_pods,
        **({} if room.accelerator is None else {"accelerator": room.accelerator}),
    }
