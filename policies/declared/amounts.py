"""Amounts as Kubernetes writes them: `96`, `500m`, `1152Gi`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from scheduling.unknown import UNKNOWN, Unknown

if TYPE_CHECKING:
    from policies.known_values import Value

_AMOUNT: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(m|[kKMGTP]i?)?")
_FACTORS: Final = {
    "": 1.0,
    "m": 1e-3,
    **{unit: 1000.0**power for power, unit in enumerate(("k", "M", "G", "T", "P"), start=1)},
    **{f"{unit}i": 1024.0**power for power, unit in enumerate(("K", "M", "G", "T", "P"), start=1)},
}
_MIB: Final = 1024**2


def amount(value: Value) -> float | Unknown | None:
    """An amount in its unit: CPUs, bytes, pieces. None for what is none."""
    if value is UNKNOWN:
        return UNKNOWN
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    found = _AMOUNT.fullmatch(value) if isinstance(value, str) else None
    return None if found is None else float(found[1]) * _FACTORS[found[2] or ""]


def whole(value: Value) -> int | Unknown | None:
    """A number of pieces."""
    return _scaled(value, 1)


def cpu_millis(value: Value) -> int | Unknown | None:
    """Thousandths of a CPU."""
    return _scaled(value, 1000)


def memory_mib(value: Value) -> int | Unknown | None:
    """MiB."""
    return _scaled(value, 1 / _MIB)


def _scaled(value: Value, factor: float) -> int | Unknown | None:
    found = amount(value)
    # 4007 thousandths times 1000 are a hair less than 4007.
    return int(round(found * factor, 6)) if isinstance(found, float) else found
