"""Amounts as Kubernetes writes them: `96`, `500m`, `1152Gi`."""

from __future__ import annotations

import re
from fractions import Fraction
from math import isfinite
from typing import TYPE_CHECKING, Final

from holdfast.scheduling.json import UNKNOWN, Unknown
from holdfast.scheduling.quantities import parse_quantity

if TYPE_CHECKING:
    from holdfast.policies.known_values import Value

_AMOUNT: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:m|k|[MGTP]|[KMGTP]i)?")
_MIB: Final = 1024**2


def amount(value: Value) -> Fraction | Unknown | None:
    """An amount in its unit: CPUs, bytes, pieces. None for what is none."""
    if value is UNKNOWN:
        return UNKNOWN
    if isinstance(value, int | float) and not isinstance(value, bool):
        # As it was written: the float that stands for 0.57 is a hair less.
        return Fraction(str(value)) if isfinite(value) else None
    if isinstance(value, str) and _AMOUNT.fullmatch(value):
        return parse_quantity(value)
    return None


def whole(value: Value) -> int | Unknown | None:
    """A number of pieces."""
    return _scaled(value, 1)


def cpu_millis(value: Value) -> int | Unknown | None:
    """Thousandths of a CPU."""
    return _scaled(value, 1000)


def memory_mib(value: Value) -> int | Unknown | None:
    """MiB."""
    return _scaled(value, Fraction(1, _MIB))


def _scaled(value: Value, factor: int | Fraction) -> int | Unknown | None:
    found = amount(value)
    return int(found * factor) if isinstance(found, Fraction) else found
