"""Rows in numbers: means and worst cases over the starts from which the job finished."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.analysis.replay.comparison import Row


@dataclass(frozen=True, kw_only=True)
class Averages:
    """A row's numbers; None where no start's job finished.

    `finished` of `starts` did. `at_best`: what hindsight would have paid on average to finish no later than each did.
    `late`: how many finished after the time that was given.
    """

    starts: int
    finished: int
    late: int
    cost: float | None
    worst_cost: float | None
    at_best: float | None
    hours: float | None
    worst_hours: float | None
    moves: float | None
    evictions: float | None
    lost_hours: float | None
    waited_hours: float | None


def averages(row: Row, within_hours: float) -> Averages:
    """Return a row's numbers."""
    done = [each for each in row.replayed if each.is_finished]
    costs, hours = [each.cost for each in done], [each.hours for each in done]
    return Averages(
        starts=len(row.replayed),
        finished=len(done),
        late=sum(each.hours > within_hours for each in row.replayed),
        cost=mean(costs),
        worst_cost=max(costs, default=None),
        at_best=mean([each for each in row.at_best if each is not None]),
        hours=mean(hours),
        worst_hours=max(hours, default=None),
        moves=mean([each.moves for each in done]),
        evictions=mean([each.evictions for each in done]),
        lost_hours=mean([each.lost_hours for each in done]),
        waited_hours=mean([each.waited_hours for each in done]),
    )


def mean(values: Sequence[float]) -> float | None:
    """The mean of values; None of none."""
    return fmean(values) if values else None
