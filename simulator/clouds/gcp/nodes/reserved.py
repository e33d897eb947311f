"""What GKE keeps of a machine for itself. Pure.

Its documentation gives the rules (`plan-node-sizes`). What the pods that GKE itself runs on every node ask for comes on
top: they are not played.
"""

from collections.abc import Mapping
from fractions import Fraction
from math import ceil
from typing import Final

from holdfast.simulator.operator_runner.pod_spec import parse_quantity

_GIB: Final = 1024
# Up to so many cores, so much of each is kept, in thousandths of a core.
_CPU_STEPS: Final = ((1, 60), (2, 10), (4, 5), (None, Fraction(5, 2)))
# Up to so many GiB, so much of it is kept.
_MEMORY_STEPS: Final = (
    (4, Fraction(25, 100)),
    (8, Fraction(20, 100)),
    (16, Fraction(10, 100)),
    (128, Fraction(6, 100)),
    (None, Fraction(2, 100)),
)
# Below this much free memory the kubelet evicts pods.
_MEMORY_EVICTION_MIB: Final = 100
# Of machines that share their cores, whatever their size.
_SHARED_CORE_MILLICORES: Final = 1060
_SHARED_CORE: Final = frozenset({"e2-micro", "e2-small", "e2-medium"})


def allocatable(machine_type: str, capacity: Mapping[str, str]) -> dict[str, str]:
    """Return what pods may have of a machine with this capacity (`cpu` in cores, `memory` in MiB, `ephemeral-storage`)."""
    cores = int(capacity["cpu"])
    memory = int(parse_quantity(capacity["memory"]) / 1024**2)
    disk = int(parse_quantity(capacity["ephemeral-storage"]) / 1024**3)
    kept = _SHARED_CORE_MILLICORES if machine_type in _SHARED_CORE else ceil(_stepped(cores, _CPU_STEPS))
    return {
        **capacity,
        "cpu": f"{cores * 1000 - kept}m",
        "memory": f"{memory - ceil(_stepped(memory, _in_mib(_MEMORY_STEPS))) - _MEMORY_EVICTION_MIB}Mi",
        "ephemeral-storage": f"{disk - _disk_kept(disk)}Gi",
    }


def _in_mib(
    steps: tuple[tuple[int | None, Fraction], ...],
) -> tuple[tuple[int | None, Fraction], ...]:
    return tuple((upto and upto * _GIB, share) for upto, share in steps)


def _stepped(amount: int, steps: tuple[tuple[int | None, Fraction | int], ...]) -> Fraction:
    """Return what is kept of an amount, each step's share of what lies in it."""
    kept, below = Fraction(0), 0
    for upto, share in steps:
        end = amount if upto is None else min(amount, upto)
        kept += max(0, end - below) * share
        below = end
    return kept


def _disk_kept(gib: int) -> int:
    """Return a tenth, below which the kubelet evicts pods, and what the system has: the least of three."""
    system = min(Fraction(gib, 2), 6 + Fraction(35 * gib, 100), Fraction(100))
    return ceil(Fraction(gib, 10) + system)
