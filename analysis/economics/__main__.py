"""`python -m holdfast.analysis.economics COMMAND` answers what spot saves and what a ladder's numbers should be."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from holdfast.analysis.command_line import answered
from holdfast.analysis.economics import reports
from holdfast.analysis.economics.arguments import parser
from holdfast.analysis.economics.checkpoint_interval import Checkpointing
from holdfast.analysis.economics.cost_model import MixedJob
from holdfast.analysis.economics.curves import saving_curve, tolerance_curve
from holdfast.analysis.economics.drawing import as_picture, as_text
from holdfast.analysis.economics.ladder_costs import judge
from holdfast.analysis.economics.max_failures import advise
from holdfast.analysis.economics.rates import Market

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Mapping


def main(arguments: list[str] | None = None) -> int:
    """Print one answer; 1 and a sentence where a number cannot be."""
    return answered(parser(), ANSWERS, arguments)


def _cost(asked: Namespace) -> str:
    return reports.cost_report(_job(asked, asked.spot_share))


def _max_failures(asked: Namespace) -> str:
    market = Market(
        price=asked.spot_price,
        evictions_per_hour=asked.evictions_per_hour,
        hours_per_eviction=asked.hours_per_eviction,
    )
    return reports.advice_report(advise(market, hours=asked.hours, slack_hours=asked.slack_hours))


def _checkpoints(asked: Namespace) -> str:
    return reports.checkpoint_report(
        Checkpointing(
            size_gib=asked.size_gib,
            gib_per_second=asked.gib_per_second,
            notice_seconds=asked.notice_seconds,
            evictions_per_hour=asked.evictions_per_hour,
            losses_without_notice_per_hour=asked.losses_without_notice_per_hour,
        )
    )


def _curves(asked: Namespace) -> str:
    curves = (saving_curve(_job(asked, 0.0)), tolerance_curve(asked.spot_price))
    drawn = "\n\n".join(as_text(curve) for curve in curves)
    if asked.png is None:
        return drawn
    as_picture(curves, asked.png)
    return f"{drawn}\n\nwritten: {asked.png}"


def _job(asked: Namespace, spot_share: float) -> MixedJob:
    return MixedJob(
        hours=asked.hours,
        spot_share=spot_share,
        failures=asked.failures,
        hours_per_failure=asked.hours_per_failure,
        spot_price=asked.spot_price,
    )


ANSWERS: Mapping[str, Callable[[Namespace], str]] = {
    "source": lambda _: reports.source_report(),
    "cost": _cost,
    "ladder": lambda asked: reports.ladder_report(judge(asked.rungs)),
    "max-failures": _max_failures,
    "checkpoints": _checkpoints,
    "curves": _curves,
}


if __name__ == "__main__":
    sys.exit(main())
