"""Whether a spot pool has enough to choose from."""

from collections.abc import Sequence
from typing import Final

from holdfast.scheduling.labels import CapacityType
from holdfast.scheduling.machines import Machine
from holdfast.scheduling.pools import Pool

#: Each type is a spot market of its own; with fewer than this many, the pool is as good as its worst day on one.
ENOUGH_TYPES: Final = 3


def spot_pool_warnings(pool: Pool, machines: Sequence[Machine]) -> list[str]:
    """What may disappoint about a spot pool that is allowed to be as it is; nothing for a pool on-demand."""
    if pool.capacity is not CapacityType.SPOT:
        return []
    warnings: list[str] = []
    names = ", ".join(machine.name for machine in machines)
    if len(machines) < ENOUGH_TYPES:
        warnings.append(
            f"pool {pool.name} buys {_count(len(machines), 'machine type')} on spot ({names}). Each type is a spot "
            f"market of its own: with fewer than {ENOUGH_TYPES}, one that sells out or is taken back stops the jobs "
            "here more often. List more types that the jobs can run on."
        )
    kinds = {_accelerators(machine): machine.name for machine in reversed(machines)}
    if len(kinds) > 1:
        held = ", ".join(f"{name} has {kind}" for kind, name in reversed(kinds.items()))
        warnings.append(
            f"pool {pool.name} buys machines with different accelerators ({held}). A job on several nodes may get some "
            "of each: it then waits for the slowest one at every step, and fits only if its pods fit on the smallest. "
            "Make a pool of each kind, and a tier of each pool."
        )
    return warnings


def _accelerators(machine: Machine) -> str:
    return f"{machine.gpus} {machine.accelerator or 'GPUs'}" if machine.gpus else "none"


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
