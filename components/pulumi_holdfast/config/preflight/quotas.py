"""What a stack asks of each quota, against what is granted and what others use. Pure; the same for every cloud."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf

from pulumi_holdfast.config.loader import PLATFORM


@dataclass(frozen=True, kw_only=True)
class Demand:
    """What the machines of one field take of one quota: `asked` with all of them, `least` what they need to start."""

    field: str
    asked: int
    least: int


@dataclass(frozen=True, kw_only=True)
class QuotaUse:
    """One quota: `asked` is what the stack uses with full pools, `least` what its largest single demand needs to start.

    `granted` and `used` are None if the caller may not query them; `granted` is infinite without a limit. `used` is
    without the stack's own machines. `fields` are those of the configuration that count against it, `increase` is the
    command that requests more.
    """

    name: str
    unit: str
    asked: int
    least: int
    fields: tuple[str, ...]
    increase: str
    granted: float | None = None
    used: float | None = None
    reason: str = ""

    @property
    def available(self) -> float | None:
        """What the stack may use; None if that is unknown. Unknown use by others counts as none."""
        return None if self.granted is None else self.granted - (self.used or 0)

    @property
    def blocks(self) -> bool:
        """Whether a part of the stack cannot run at all."""
        return self.available is not None and self.available < self.least

    @property
    def is_short(self) -> bool:
        """Whether full pools do not fit."""
        return self.available is not None and self.available < self.asked

    @property
    def shortage(self) -> str | None:
        """What is too small, and the command that requests more; None if full pools fit, or if that is unknown."""
        where = ", ".join(self.fields)
        if self.blocks:
            return f'"{self.name}" is too small for {where}: {self.least} {self.unit} are needed. Run `{self.increase}`.'
        if self.is_short:
            return f'"{self.name}" is too small for full pools of {where}. Run `{self.increase}`.'
        return None


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What a cloud grants of a quota and what others use of it, as in QuotaUse."""

    granted: float | None = None
    used: float | None = None
    reason: str = ""


def quota_use(name: str, unit: str, demands: Sequence[Demand], usage: Usage, *, increase: str) -> QuotaUse:
    """The use of one quota by the fields in `demands`; `increase` has a placeholder {} for the number."""
    asked = sum(demand.asked for demand in demands)
    return QuotaUse(
        name=name,
        unit=unit,
        asked=asked,
        least=max(demand.least for demand in demands),
        fields=tuple(dict.fromkeys(demand.field.removeprefix(f"{PLATFORM}.") for demand in demands)),
        increase=increase.format(asked),
        granted=usage.granted,
        used=usage.used,
        reason=usage.reason,
    )


def advice(uses: Iterable[QuotaUse]) -> Iterator[str]:
    """A line for each quota that is known to be too small, for an update, which continues."""
    return (f"quota {use.shortage}" for use in uses if use.shortage is not None)


def report(uses: Sequence[QuotaUse]) -> Iterator[str]:
    """The table of quotas, and below it a line for each that is too small or unknown."""
    rows = [("quota", "unit", "asked", "granted", "used by others")]
    rows += [(use.name, use.unit, str(use.asked), _amount(use.granted), _amount(use.used)) for use in uses]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    for use in uses:
        if use.granted is None:
            yield f'warning: "{use.name}" for {", ".join(use.fields)} is not checked: {use.reason}'
        elif use.shortage is not None:
            yield f"{'error' if use.blocks else 'warning'}: {use.shortage}"


def _amount(value: float | None) -> str:
    return "unknown" if value is None else "unlimited" if value == inf else f"{value:g}"
