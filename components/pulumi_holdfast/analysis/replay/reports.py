"""What `holdfast replay` prints, as text and as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.analysis.replay.comparison import Comparison, Row, averages, mean

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pulumi_holdfast.analysis.replay.market import PoolMarket
    from pulumi_holdfast.analysis.replay.trace import Rates

_HOUR: Final = timedelta(hours=1)
_DAY: Final = timedelta(days=1)

_HEADINGS: Final = ("cost", "worst", "at best", "hours", "worst", "moves", "evictions", "lost h", "waited h")


def comparison_report(comparison: Comparison) -> str:
    """The table and its notes."""
    rows = [[row.name, *_cells(row, comparison)] for row in comparison.rows]
    rows.append(["hindsight", *_hindsight_cells(comparison)])
    headings = ["", *_HEADINGS, *(["late"] if comparison.has_deadline else [])]
    return "\n".join([_title(comparison), "", *aligned([headings, *rows]), *_notes(comparison)])


def rates_report(found: Sequence[tuple[Path, Rates]], nodes: int) -> str:
    """The evictions and waits of a gang in each trace."""
    headings = ["", "there", "evictions per hour", "mean wait h", "longest wait h"]
    rows = [
        [
            path.name,
            f"{each.share:.1%}",
            f"{each.evictions_per_hour:.3f}",
            f"{each.mean_wait_hours:.1f}",
            f"{each.longest_wait_hours:.1f}",
        ]
        for path, each in found
    ]
    return "\n".join([f"For {instances(nodes)} at once:", "", *aligned([headings, *rows])])


def _title(comparison: Comparison) -> str:
    job, length = comparison.job, comparison.market.length
    where = f"; {counted(len(comparison.starts), 'start')} in {length / _DAY:.3g} days" if length else ""
    return (
        f"{job.work / _HOUR:g} h of training on {instances(job.nodes)}{where}. On-demand alone costs 1 and takes "
        f"{job.undisturbed / _HOUR:.1f} h."
    )


def _cells(row: Row, comparison: Comparison) -> list[str]:
    found = averages(row, comparison.within / _HOUR)
    cells = [
        number(found.cost, 2),
        number(found.worst_cost, 2),
        number(found.at_best, 2),
        number(found.hours, 1),
        number(found.worst_hours, 1),
        number(found.moves, 1),
        number(found.evictions, 1),
        number(found.lost_hours, 1),
        number(found.waited_hours, 1),
    ]
    return [*cells, f"{found.late}"] if comparison.has_deadline else cells


def _hindsight_cells(comparison: Comparison) -> list[str]:
    costs = [each for each in comparison.hindsight if each is not None]
    cells = [number(mean(costs), 2), number(max(costs, default=None), 2), "", "", ""]
    return [*cells, *[""] * (len(_HEADINGS) - len(cells)), *([""] if comparison.has_deadline else [])]


def _notes(comparison: Comparison) -> list[str]:
    hours = comparison.within / _HOUR
    bound = (
        f"hindsight: no schedule over these pools and on-demand that finishes within {hours:.4g} h costs less"
    )
    notes = [f"{bound}; `at best`: within the hours of that row."]
    for row in comparison.rows:
        found = averages(row, hours)
        if found.finished < found.starts:
            notes.append(
                f"{row.name}: from {found.starts - found.finished} of {found.starts} starts the job had not finished when "
                "the traces were through; its numbers are those of the others."
            )
    notes += [note for pool in comparison.market.pools if (note := _never(pool, comparison.job.nodes))]
    return ["", *notes]


def _never(pool: PoolMarket, nodes: int) -> str:
    if pool.trace is None or pool.trace.most >= nodes:
        return ""
    return f"{pool.pool}: its trace never has {instances(nodes)}, {pool.trace.most} at most."


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table: the first column on the left, the others on the right."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def number(value: float | None, digits: int) -> str:
    """A value with its digits, `-` for none."""
    return "-" if value is None else f"{value:.{digits}f}"


def instances(count: int) -> str:
    """A number of instances, in words."""
    return counted(count, "instance")


def counted(count: int, what: str) -> str:
    """A number of things, in words."""
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def comparison_document(comparison: Comparison) -> str:
    """The document: hours and costs as in the table, one entry of `replays` per start and row."""
    job, within = comparison.job, comparison.within / _HOUR
    document = {
        "job": {
            "work_hours": job.work / _HOUR,
            "nodes": job.nodes,
            "restart_hours": job.restart / _HOUR,
            "undisturbed_hours": job.undisturbed / _HOUR,
        },
        "pools": [
            {"pool": each.pool, "price": each.price, "has_trace": each.trace is not None}
            for each in comparison.market.pools
        ],
        "start_hours": [start / _HOUR for start in comparison.starts],
        "hindsight": {"within_hours": within, "costs": list(comparison.hindsight)},
        "rows": [
            {
                "name": row.name,
                "averages": asdict(averages(row, within)),
                "replays": [
                    {**asdict(replayed), "at_best": at_best}
                    for replayed, at_best in zip(row.replayed, row.at_best, strict=True)
                ],
            }
            for row in comparison.rows
        ],
    }
    return json.dumps(document, indent=2)
