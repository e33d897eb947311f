"""The virtual machines behind node pools, under the names that scale sets give them."""

import hashlib
from typing import Final

from holdfast.simulator.clouds.azure.nodes.template import NodeTemplate
from holdfast.simulator.clouds.machines import Register, key_of
from holdfast.simulator.clouds.state import CloudObject

_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


#: How many letters at the end of a machine's name are its number in its scale set.
NUMBER: Final = 6


def _scale_set(pool: CloudObject, name: str) -> str:
    """Return the name of a pool's scale set: another one for each pool there ever was."""
    number = int(hashlib.sha256(key_of(pool).encode()).hexdigest(), 16) % 10**8
    return f"aks-{name}-{number:08}-vmss"


def _name(pool: CloudObject, template: NodeTemplate, _zone: str, number: int) -> str:
    """Return a name as a scale set makes it: its own, and a number of six digits to the base of 36."""
    places = "".join(
        _DIGITS[number // len(_DIGITS) ** place % len(_DIGITS)] for place in reversed(range(NUMBER))
    )
    return f"{_scale_set(pool, template.name)}{places}"


REGISTER: Final = Register[NodeTemplate](type="rehearsal:aks/instance:Instance", name=_name)
