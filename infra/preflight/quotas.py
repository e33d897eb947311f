"""What a stack asks of each quota, against what is granted and what others use. Pure; the same for every cloud."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass(frozen=True, kw_only=True)
class QuotaUse:
    """One quota: `asked` is what the stack uses with full pools, `least` what its largest single demand needs to start.

    `granted` and `used` are None if the caller may not query them. `used` is without the stack's own machines. `fields` are
    those of the configuration that count against it, `increase` is the command that requests more.
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


def report(uses: Sequence[QuotaUse]) -> Iterator[str]:
    """The table of quotas, and below it a line for each that is too small or unknown."""
    rows = [("quota", "unit", "asked", "granted", "used by others")]
    rows += [(use.name, use.unit, str(use.asked), _amount(use.granted), _amount(use.used)) for use in uses]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    for use in uses:
        where = ", ".join(use.fields)
        if use.granted is None:
            yield f'warning: "{use.name}" for {where} is not checked: {use.reason}'
        elif use.blocks:
            yield f'error: "{use.name}" is too small for {where}: {use.least} {use.unit} are needed. Run `{use.increase}`.'
        elif use.is_short:
            yield f'warning: "{use.name}" is too small for full pools of {where}. Run `{use.increase}`.'


def _amount(value: float | None) -> str:
    return "unknown" if value is None else f"{value:g}"
