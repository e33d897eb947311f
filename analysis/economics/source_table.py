"""The source's own worked example and table, set beside what its equations give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from holdfast.analysis.economics.cost_model import Between, MixedJob, tolerated_extension

#: Five hours, five interruptions that add an hour together, 60 % on spot.
WORKED_EXAMPLE: Final = MixedJob(hours=5, spot_share=0.6, failures=5, hours_per_failure=0.2)

#: Share on spot → how much longer the job may take, as the source prints it.
PRINTED: Final = {0.3: 0.36, 0.4: 0.56, 0.5: 0.81, 0.6: 2.17}

#: The source cuts off its digits: 1.369 became 36 %, and 1.818 became 81 %.
_TRUNCATION: Final = 0.01


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row of the table: what is printed, and what the equations bound."""

    spot_share: float
    printed: float
    tolerated: Between

    @property
    def is_right(self) -> bool:
        """Whether the printed value is the spread equation's, but for digits that were cut off."""
        return 0 <= self.tolerated.spread - self.printed < _TRUNCATION

    @property
    def remark(self) -> str:
        """What is wrong with the printed value; empty where nothing is."""
        if self.is_right:
            return ""
        total = 1 + self.tolerated.spread
        if 0 <= total - self.printed < _TRUNCATION:
            return f"printed is the total, {total:.0%} of the undisturbed time, not what is added to it"
        return f"the equation gives {self.tolerated.spread:.0%}"


def table() -> tuple[Row, ...]:
    """The table's rows, in the source's order."""
    return tuple(
        Row(spot_share=share, printed=printed, tolerated=tolerated_extension(share))
        for share, printed in PRINTED.items()
    )
