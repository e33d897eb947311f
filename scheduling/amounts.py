"""Amounts of CPU and memory as Kubernetes writes them: `48`, `500m`, `512Gi`."""

import re
from typing import Final

from holdfast.scheduling.quantities import parse_quantity

#: What each reads, and what the FallbackPolicy's schema holds an amount to.
CPU_PATTERN: Final = r"^([0-9]{1,8}m|[0-9]{1,5}(\.[0-9]{1,3})?)$"
MEMORY_PATTERN: Final = r"^[0-9]{1,9}(\.[0-9]{1,3})?(Mi|Gi|Ti|M|G|T)$"

# Larger than any machine there is: beyond it a number is a mistyped unit.
MOST_CPU_MILLIS: Final = 10_000_000
MOST_MEMORY_MIB: Final = 100 * 1024**2

CPU_ALLOWED: Final = "CPUs, 1m to 10000, such as 48, 1.5 or 500m"
MEMORY_ALLOWED: Final = "an amount with its unit, 1Mi to 100Ti, such as 512Gi"

_MIB: Final = 2**20
_GIB_IN_MIB: Final = 1024
_MILLIS: Final = 1000


class AmountError(ValueError):
    """A text that is no amount: `fix` says what to write instead."""

    def __init__(self, text: str, allowed: str, fix: str) -> None:
        super().__init__(f'"{text}" is no amount. Allowed: {allowed}. {fix}')
        self.fix = fix


def parse_cpu(text: str) -> int:
    """Read `48`, `1.5` or `500m` as thousandths of a CPU.

    Raises AmountError for anything else, nothing and more than 10000 CPUs included.
    """
    if re.fullmatch(CPU_PATTERN, text, re.ASCII) is None:
        raise AmountError(text, CPU_ALLOWED, "Write a number of CPUs, or of thousandths with an m.")
    millis = int(parse_quantity(text) * _MILLIS)
    if not 1 <= millis <= MOST_CPU_MILLIS:
        raise AmountError(text, CPU_ALLOWED, f"Write {'at least 1m' if millis < 1 else 'at most 10000'}.")
    return millis


def parse_memory(text: str) -> int:
    """Read `512Gi`, `1.5Ti` or `500M` as MiB, rounded up: less than was asked for must not be counted.

    Raises AmountError for anything else, nothing and more than 100Ti included.
    """
    if re.fullmatch(r"[0-9.]+", text, re.ASCII):
        raise AmountError(text, MEMORY_ALLOWED, f"Write {text}Gi or {text}Mi: without a unit it is bytes.")
    if re.fullmatch(MEMORY_PATTERN, text, re.ASCII) is None:
        raise AmountError(text, MEMORY_ALLOWED, "Write a number and Mi, Gi or Ti.")
    mib = -(-parse_quantity(text) // _MIB)
    if not 1 <= mib <= MOST_MEMORY_MIB:
        raise AmountError(text, MEMORY_ALLOWED, f"Write {'at least 1Mi' if mib < 1 else 'at most 100Ti'}.")
    return mib


def format_cpu(millis: int) -> str:
    """Write thousandths of a CPU as `parse_cpu` reads them: 48000 → `48`, 1500 → `1500m`."""
    return f"{millis}m" if millis % _MILLIS else str(millis // _MILLIS)


def format_memory(mib: int) -> str:
    """Write MiB as `parse_memory` reads them: 524288 → `512Gi`, 1500 → `1500Mi`."""
    return f"{mib}Mi" if mib % _GIB_IN_MIB else f"{mib // _GIB_IN_MIB}Gi"
