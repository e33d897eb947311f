"""What AKS keeps of a machine for itself. Pure.

Its documentation gives the rules (`node-resource-reservations`). What the pods that AKS itself runs on every node ask for
comes on top: they are not played.
"""

from collections.abc import Mapping
from fractions import Fraction
from math import ceil
from typing import Final

from holdfast.simulator.operator_runner.pod_spec import parse_quantity

# Up to so many cores, so much of each is kept, in thousandths of a core: 60 of one, 100 of two, 140 of four, 180 of eight,
# 260 of sixteen.
_CPU_STEPS: Final = ((1, 60), (2, 40), (4, 20), (None, 10))
# For each pod that a node may run, and once.
_MEMORY_A_POD_MIB: Final = 20
_MEMORY_MIB: Final = 50
_MOST_OF_MEMORY: Final = Fraction(25, 100)
# Below this much free memory the kubelet evicts pods.
_MEMORY_EVICTION_MIB: Final = 100
# Below this share of the disk the kubelet evicts pods: what Kubernetes does where nothing is said.
_DISK_EVICTION: Final = Fraction(10, 100)


def allocatable(capacity: Mapping[str, str]) -> dict[str, str]:
    """Return what pods may have of a machine with this capacity (`cpu`, `memory`, `ephemeral-storage`, `pods`)."""
    cores, pods = int(capacity["cpu"]), int(capacity["pods"])
    memory = int(parse_quantity(capacity["memory"]) / 1024**2)
    disk = int(parse_quantity(capacity["ephemeral-storage"]) / 1024**3)
    kept = min(_MEMORY_A_POD_MIB * pods + _MEMORY_MIB, ceil(memory * _MOST_OF_MEMORY))
    return {
        **capacity,
        "cpu": f"{cores * 1000 - _cpu_kept(cores)}m",
        "memory": f"{memory - kept - _MEMORY_EVICTION_MIB}Mi",
        "ephemeral-storage": f"{disk - ceil(disk * _DISK_EVICTION)}Gi",
    }


def _cpu_kept(cores: int) -> int:
    kept, below = 0, 0
    for upto, share in _CPU_STEPS:
        end = cores if upto is None else min(cores, upto)
        kept += max(0, end - below) * share
        below = end
    return kept
