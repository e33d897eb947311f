"""The few machines of a pool that speak for all its machines, since a list that the API server reads has to be short."""

from collections.abc import Sequence
from typing import Final

from holdfast.scheduling.reachability.machine_capacity import MachineCapacity
from holdfast.scheduling.reachability.shape import Resources, widest

MOST_CAPACITIES: Final = 8

#: The name of what stands for the machines that the list had no place for.
OTHERS: Final = "another"


def non_dominated(rooms: Sequence[MachineCapacity]) -> tuple[MachineCapacity, ...]:
    """The rooms beside which the others add nothing, largest first, MOST_CAPACITIES at most.

    What fits in one that is left out fits in one that is kept, and as often. Where too many are left, the smallest of them
    become one that has the most of each: what is refused for lack of room then has none, though not all of what has none is
    refused.
    """
    kept: list[MachineCapacity] = []
    for each in sorted(rooms, key=MachineCapacity.size, reverse=True):
        if not any(_holds_all_of(other, each) for other in kept):
            kept = [other for other in kept if not _holds_all_of(each, other)] + [each]
    if len(kept) <= MOST_CAPACITIES:
        return tuple(kept)
    return (*kept[: MOST_CAPACITIES - 1], _merged(kept[MOST_CAPACITIES - 1 :]))


def _holds_all_of(one: MachineCapacity, other: MachineCapacity) -> bool:
    return (
        one.accelerator == other.accelerator
        and other.room.fits_in(one.room)
        and other.most_pods <= one.most_pods
    )


def _merged(rooms: Sequence[MachineCapacity]) -> MachineCapacity:
    kinds = {each.accelerator for each in rooms}
    most: Resources = widest([each.room for each in rooms])
    return MachineCapacity(
        name=OTHERS,
        total=widest([each.total for each in rooms]),
        room=most,
        accelerator=kinds.pop() if len(kinds) == 1 else None,
        most_pods=max(each.most_pods for each in rooms),
    )
