"""What `holdfast replay run --finish-within` prints, as text with bars, as JSON and as a picture."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.analysis.replay.reports import aligned, counted, instances, number

if TYPE_CHECKING:
    from pathlib import Path

    from pulumi_holdfast.analysis.replay.deadlines import DeadlineComparison, DeadlineRow

# matplotlib leaves the rest of its keyword arguments untyped.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

_HOUR: Final = timedelta(hours=1)
_HINDSIGHT: Final = "hindsight"

# Characters of the bar of on-demand, and the eighths of one.
_BAR: Final = 40
_EIGHTHS: Final = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")


@dataclass(frozen=True, kw_only=True)
class _Bar:
    """The mean cost of a row within one deadline, and how many of its replays are late."""

    name: str
    cost: float
    late: int = 0

    @property
    def label(self) -> str:
        return f"{self.cost:.3f}{f', {self.late} late' if self.late else ''}"


def _bars(comparison: DeadlineComparison, place: int) -> list[_Bar]:
    bars = [
        _Bar(name=row.name, cost=row.kept[place].cost or 0.0, late=row.kept[place].late)
        for row in comparison.rows
    ]
    return [*bars, _Bar(name=_HINDSIGHT, cost=comparison.hindsight[place] or 0.0)]


def deadline_report(comparison: DeadlineComparison) -> str:
    """The table, with the columns of each deadline side by side, and the recommendation."""
    headings = [""]
    for limit in comparison.within:
        headings += [f"{limit / _HOUR:g} h: cost", "worst", "hours", "late"]
    rows = [headings, *([row.name, *_cells(row)] for row in comparison.rows)]
    rows.append(
        [_HINDSIGHT, *(cell for cost in comparison.hindsight for cell in (number(cost, 3), "", "", ""))]
    )
    drawn = [line for place in range(len(comparison.within)) for line in _drawn(comparison, place)]
    return "\n".join([_title(comparison), "", *aligned(rows), "", *drawn, *_recommendations(comparison)])


def _drawn(comparison: DeadlineComparison, place: int) -> list[str]:
    """The costs within one deadline as bars of characters."""
    bars = _bars(comparison, place)
    width = max(len(bar.name) for bar in bars)
    lines = [f"Cost within {comparison.within[place] / _HOUR:g} h:"]
    for bar in bars:
        whole, eighths = divmod(round(bar.cost * _BAR * len(_EIGHTHS)), len(_EIGHTHS))
        lines.append(f"{bar.name.ljust(width)}  {'█' * whole}{_EIGHTHS[eighths]} {bar.label}")
    return [*lines, ""]


def _title(comparison: DeadlineComparison) -> str:
    job, markets = comparison.job, len(comparison.markets)
    where = f" in each of {counted(markets, 'market')}" if markets > 1 else ""
    return (
        f"{job.work / _HOUR:g} h of training on {instances(job.nodes)}; {counted(comparison.starts, 'start')}{where}. "
        f"On-demand alone costs 1 and takes {job.undisturbed / _HOUR:.1f} h."
    )


def _cells(row: DeadlineRow) -> list[str]:
    cells: list[str] = []
    for kept in row.kept:
        cells += [number(kept.cost, 3), number(kept.worst_cost, 3), number(kept.hours, 1), str(kept.late)]
    return cells


def _recommendations(comparison: DeadlineComparison) -> list[str]:
    lines: list[str] = []
    for place, limit in enumerate(comparison.within):
        best = comparison.best(place)
        if best is None:
            lines.append(
                f"Within {limit / _HOUR:g} h: every ladder is late from some start. Allow more time."
            )
            continue
        how = (
            "annotate the job with finish-by and work"
            if best.is_paced
            else "give the job no finish-by: the fixed ladder is in time from every start and costs less"
        )
        lines.append(f"Within {limit / _HOUR:g} h: {how} ({best.name}).")
    return lines


def deadline_document(comparison: DeadlineComparison) -> str:
    """The document: one entry of `deadlines` per row and deadline, with every replay."""
    document = {
        "job": {
            "work_hours": comparison.job.work / _HOUR,
            "nodes": comparison.job.nodes,
            "undisturbed_hours": comparison.job.undisturbed / _HOUR,
        },
        "within_hours": [limit / _HOUR for limit in comparison.within],
        "hindsight": list(comparison.hindsight),
        "rows": [
            {
                "name": row.name,
                "deadlines": [
                    {
                        "within_hours": kept.within / _HOUR,
                        "cost": kept.cost,
                        "worst_cost": kept.worst_cost,
                        "late": kept.late,
                        "replays": [asdict(each) for each in kept.replayed],
                    }
                    for kept in row.kept
                ],
            }
            for row in comparison.rows
        ],
    }
    return json.dumps(document, indent=2)


def deadline_picture(comparison: DeadlineComparison, path: Path) -> None:
    """Draw the mean costs as bars into a PNG file, a group for each deadline. Late rows are hatched."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6 * len(comparison.within), 5), layout="constrained")
    for place, limit in enumerate(comparison.within):
        axes = figure.add_subplot(1, len(comparison.within), place + 1)
        bars = _bars(comparison, place)
        drawn = axes.barh([bar.name for bar in bars], [bar.cost for bar in bars])
        for patch, bar in zip(drawn, bars, strict=True):
            patch.set_hatch("//" if bar.late else "")
        axes.bar_label(drawn, [bar.label for bar in bars])
        axes.margins(x=0.2)
        axes.invert_yaxis()
        axes.set(title=f"within {limit / _HOUR:g} h", xlabel="cost, on-demand is 1")
    figure.savefig(path, format="png")
