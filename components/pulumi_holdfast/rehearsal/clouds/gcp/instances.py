"""The machines of GKE node pools: names, stock, and the nodes that they become."""

import hashlib
from collections.abc import Sequence
from typing import Final

from pulumi_holdfast.rehearsal.clouds.gcp.nodes import cluster_name, pool_name, template_of
from pulumi_holdfast.rehearsal.clouds.machines import (
    MachineGroup,
    MachineState,
    Register,
    SimulatedMachine,
    key_of,
)
from pulumi_holdfast.rehearsal.clouds.state import CloudObject

# A node name has at most 63 characters.
_LONGEST_PART: Final = 20
_LETTERS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_STRIDE: Final = 1_000_003


def _name(pool: CloudObject, zone: str, number: int) -> str:
    """Return a machine's name: cluster, pool, the instance group of the zone, and four characters."""
    group = hashlib.sha256(f"{key_of(pool)}|{zone}".encode()).hexdigest()[:8]
    # The stride is coprime to the number of names, so that each number has its own name.
    place = (int(group, 16) + number * _STRIDE) % len(_LETTERS) ** 4
    letters = "".join(_LETTERS[place // len(_LETTERS) ** digit % len(_LETTERS)] for digit in range(4))
    return "-".join(("gke", _part(cluster_name(pool)), _part(pool_name(pool)), group, letters))


def _part(name: str) -> str:
    return name[:_LONGEST_PART].strip("-")


REGISTER: Final = Register(
    type="rehearsal:gke/instance:Instance", stock_out="rehearsal:gke/stockOut:StockOut", name=_name
)


def machines_of(group: MachineGroup) -> Sequence[SimulatedMachine]:
    """Return the running machines of a node pool."""
    template = template_of(group.target, group.inventory)
    return [
        template.machine(one.name, one.zone)
        for one in REGISTER.instances_of(group.target, template, group.inventory)
        if one.state is MachineState.RUNNING
    ]
