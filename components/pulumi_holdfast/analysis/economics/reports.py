"""The text that `holdfast economics` prints."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pulumi_holdfast.analysis.economics.cost_model import (
    BEYOND_LINEAR,
    LINEAR_UP_TO,
    WORKED_EXAMPLE,
    Between,
    MixedJob,
    table,
)
from pulumi_holdfast.analysis.economics.tier_costs import FEW_FAILURES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi_holdfast.analysis.economics.checkpoint_interval import Checkpointing
    from pulumi_holdfast.analysis.economics.tier_costs import Advice, TierComparison


def source_report() -> str:
    """The source's table and worked example, compared with the equations."""
    rows = [
        f"{row.spot_share:>6.0%}  {row.printed:>7.0%}  {row.tolerated.spread:>13.1%}  "
        f"{row.tolerated.on_demand:>19.1%}  {row.remark}".rstrip()
        for row in table()
    ]
    return "\n".join(
        [
            "How much longer a job may take before it costs more than on-demand, spot at 0.1:",
            "  spot  printed  hours as work  all hours on-demand",
            *rows,
            "",
            f"Worked example: {_sentence(WORKED_EXAMPLE)}",
            cost_report(WORKED_EXAMPLE),
        ]
    )


def cost_report(job: MixedJob) -> str:
    """The cost of a job, its saving, and the failures until it breaks even."""
    return "\n".join(
        [
            f"takes            {job.total_hours:.2f} h instead of {job.hours:g} h",
            f"costs            {job.cost} on-demand hours instead of {job.hours:g}",
            f"saves            {_percent_range(job.saving)}",
            f"breaks even at   {_failures(job.failures_to_break_even)}",
            *_beyond(job.added_hours <= LINEAR_UP_TO * job.hours),
        ]
    )


def _beyond(is_linear: bool) -> list[str]:
    return [] if is_linear else [f"These figures are {BEYOND_LINEAR}: the job takes longer, and costs more."]


def ladder_report(verdicts: Sequence[TierComparison]) -> str:
    """The cost of an hour of training on each tier, and whether the tier is worth it."""
    width = max(len(verdict.tier.pool) for verdict in verdicts)
    lines = [f"{'pool':<{width}}  on-demand hours per hour of training  verdict"]
    for verdict in verdicts:
        cost = verdict.tier.rates.cost_per_useful_hour
        mark = "" if verdict.tier.rates.is_linear else f" ({BEYOND_LINEAR})"
        lines.append(f"{verdict.tier.pool:<{width}}  {cost:>36.2f}  {_verdict(verdict)}{mark}")
    return "\n".join(lines)


def advice_report(advice: Advice) -> str:
    """A `maxFailures` and its bounds."""
    return "\n".join(
        [
            f"maxFailures: {advice.max_failures}",
            f"  because        {advice.reason}",
            f"  bad luck       up to {advice.by_luck} evictions in 95 of 100 jobs",
            f"  money          {_bound(advice.by_money)} until on-demand is as cheap{_at_most(advice)}",
            f"  time           {_bound(advice.by_time)} within the deadline",
            *_window(advice),
        ]
    )


def _at_most(advice: Advice) -> str:
    is_linear = math.isinf(advice.by_money) or advice.by_money <= advice.linear_up_to
    return "" if is_linear else f", or fewer: more than {advice.linear_up_to:.0f} are {BEYOND_LINEAR}"


def _window(advice: Advice) -> list[str]:
    if advice.window_hours is None:
        return []
    minutes = int(advice.window_hours * 60)
    window = f"{minutes // 60}h" if minutes >= 60 else f"{max(1, minutes)}m"
    return [
        f"  or             `maxFailures: {FEW_FAILURES}` with `failureWindow: {window}`, which forgets older ones"
    ]


def checkpoint_report(checkpoints: Checkpointing) -> str:
    """The checkpoint interval and its cost."""
    write, notice = checkpoints.write_seconds, checkpoints.notice_seconds
    if checkpoints.fits_in_notice:
        first = f"a checkpoint takes {write:.0f} s and fits into the notice of {notice:.0f} s: write one on SIGTERM"
    else:
        first = f"a checkpoint takes {write:.0f} s, longer than the notice of {notice:.0f} s: rely on the schedule"
    interval = checkpoints.interval_seconds
    if math.isinf(interval):
        return f"{first}\nno loss comes without notice, so no schedule is needed beside it"
    return f"{first}\ncheckpoint every {_time(interval)}: {checkpoints.overhead:.1%} of the time goes into it"


def _sentence(job: MixedJob) -> str:
    return f"{job.hours:g} h, {job.spot_share:.0%} on spot, {job.failures:g} failures of {job.hours_per_failure:g} h each"


def _verdict(verdict: TierComparison) -> str:
    if verdict.cheapest_below is None:
        return "the last tier"
    below = verdict.cheapest_below.pool
    if not verdict.is_worth_it:
        return f"leave it out: {below} is cheaper"
    if math.isinf(verdict.evictions_left):
        return f"cheaper than {below} at any rate of evictions, since one adds no time"
    return f"worth it up to {verdict.evictions_left:.2f} more evictions per hour, then {below} is cheaper"


def _failures(between: Between) -> str:
    if math.isinf(between.spread):
        return "no number of failures: each adds nothing"
    low, high = sorted((between.spread, between.on_demand))
    return f"{low:.1f} to {high:.1f} failures"


def _percent_range(between: Between) -> str:
    low, high = sorted((between.spread, between.on_demand))
    return f"{low:.1%}" if math.isclose(low, high) else f"{low:.1%} to {high:.1%}"


def _bound(evictions: float) -> str:
    return "no bound" if math.isinf(evictions) else f"{evictions:.0f} evictions"


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
