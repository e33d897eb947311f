"""The virtual machines behind node pools, under the names that GKE gives them."""

import hashlib
from typing import Final

from holdfast.simulator.clouds.gcp.nodes.template import NodeTemplate
from holdfast.simulator.clouds.machines import Instance, Register, State, key_of
from holdfast.simulator.clouds.state import CloudObject

__all__ = [
    "INSTANCE",
    "Instance",
    "State",
    "drop",
    "forget_lost_pools",
    "instances_of",
    "new_instance",
    "record",
]

INSTANCE: Final = "rehearsal:gke/instance:Instance"
# A node's name may have 63 characters.
_LONGEST_PART: Final = 20
_LETTERS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_STRIDE: Final = 1_000_003


def _name(pool: CloudObject, template: NodeTemplate, zone: str, number: int) -> str:
    """Return a name as GKE makes it: of the cluster, the pool, the pool's group in the zone, and a few letters."""
    group = hashlib.sha256(f"{key_of(pool)}|{zone}".encode()).hexdigest()[:8]
    # A stride that shares no factor with how many there are: no two numbers make the same letters.
    place = (int(group, 16) + number * _STRIDE) % len(_LETTERS) ** 4
    letters = "".join(_LETTERS[place // len(_LETTERS) ** digit % len(_LETTERS)] for digit in range(4))
    return "-".join(("gke", _part(template.cluster), _part(template.name), group, letters))


def _part(name: str) -> str:
    return name[:_LONGEST_PART].strip("-")


_REGISTER: Final = Register[NodeTemplate](type=INSTANCE, name=_name)
instances_of = _REGISTER.instances_of
new_instance = _REGISTER.new_instance
record = _REGISTER.record
drop = _REGISTER.drop
forget_lost_pools = _REGISTER.forget_lost_pools
