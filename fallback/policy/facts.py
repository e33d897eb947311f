"""What a tier says of its pool: written with the pools by the same `up`, absent where a ladder is applied by hand."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Final

from holdfast.fallback.policy.policy import Machine, TierFacts
from holdfast.scheduling.labels import CapacityType
from holdfast.scheduling.quantities import parse_quantity
from holdfast.scheduling.taints import Taint

if TYPE_CHECKING:
    from holdfast.fallback.policy.reading import Fields

_MOST: Final = 2**31
_QUANTITY: Final = re.compile(r"[0-9]{1,18}(m|[kMGTP]|[KMGTP]i)?", re.ASCII)
_MILLI: Final = 1000


def read_facts(fields: Fields) -> TierFacts:
    """Read a tier's facts; what is not said is not known."""
    capacity = fields.choice("capacity", [each.value for each in CapacityType])
    return TierFacts(
        capacity=CapacityType(capacity) if capacity else None,
        labels=fields.entries("labels"),
        taints=tuple(_taint(each) for each in fields.sections("taints")),
        machine=_machine(fields.section("machine")),
        max_nodes=fields.integer("maxNodes", 0, _MOST),
    )


def _taint(fields: Fields) -> Taint:
    key, value, effect = (fields.text(name) for name in ("key", "value", "effect"))
    return Taint(key=key or "", value=value or "", effect=effect or "NoSchedule")


def _machine(fields: Fields) -> Machine | None:
    cpu, memory = _amount(fields, "cpu", _MILLI), _amount(fields, "memory", 1)
    if cpu is None or memory is None:
        return None
    return Machine(cpu=cpu, memory=memory, gpus=fields.integer("gpus", 0, _MOST) or 0)


def _amount(fields: Fields, name: str, units: int) -> int | None:
    """How much of a resource, with so many `units` to the whole."""
    text = fields.text(name)
    if text is None:
        return None
    if not _QUANTITY.fullmatch(text):
        fields.refuse(name, "a quantity, as 96 or 1152Gi")
        return None
    return math.ceil(parse_quantity(text) * units)
