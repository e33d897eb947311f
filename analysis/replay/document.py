"""A comparison as a JSON document: every replay of every row, for one's own evaluation."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from holdfast.analysis.replay.averages import averages

if TYPE_CHECKING:
    from holdfast.analysis.replay.comparison import Comparison

_HOUR: Final = timedelta(hours=1)


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
