"""A pool's machine types, looked up in the tables that are pinned for each cloud."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.scheduling.json import UNKNOWN, Unknown
from holdfast.scheduling.machines import machine_catalogue
from holdfast.scheduling.reachability.machine_capacity import machine_capacity

if TYPE_CHECKING:
    from collections.abc import Collection

    from holdfast.scheduling.reachability.machine_capacity import MachineCapacity, Provisioner


@dataclass(frozen=True, kw_only=True)
class Machines:
    """What is known of a pool's types: those in the table, and the names of those that are not."""

    rooms: tuple[MachineCapacity, ...] | Unknown
    unread: tuple[str, ...] = ()

    @property
    def have_gpus(self) -> bool:
        """Whether any of them has GPUs, as far as is known."""
        return self.rooms is not UNKNOWN and any(room.capacity.gpus for room in self.rooms)


def machines_named(types: Collection[str] | Unknown | None, cloud: str, provisioner: Provisioner) -> Machines:
    """The machines of these names on a cloud.

    Where a pool takes any type of some kind (None), or the cloud is not known, nothing is told of them.
    """
    if types is UNKNOWN or types is None or not cloud:
        return Machines(rooms=UNKNOWN)
    table = machine_catalogue(cloud)
    return Machines(
        rooms=tuple(machine_capacity(table[name], provisioner) for name in sorted(types) if name in table),
        unread=tuple(name for name in sorted(types) if name not in table),
    )
