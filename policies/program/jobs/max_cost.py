"""Reads whether what a job may spend pays for its fallback: the controller moves a job to on-demand only for more than one restart.

Prices of a cloud take precedence over those that tiers declare, so nothing here stops a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

from holdfast.policies.program.resources import StackResource, Value, at, text_at
from holdfast.scheduling.labels import MAX_COST
from holdfast.scheduling.ladder import DEFAULT_RESTART_COST, parse_max_cost
from holdfast.scheduling.quantities import DurationError, format_duration, parse_duration

_HOUR: Final = timedelta(hours=1)


def within_max_cost(job: StackResource) -> Iterator[str]:
    """Yield that the `max-cost` of a job suffices, which is assumed."""
    most = at(job.props, "metadata", "annotations", MAX_COST)
    if most is not None:
        yield f"`{MAX_COST}: {most}` suffices for its time there"


def below_a_restart(job: StackResource, ladder: StackResource, tiers: Sequence[Value]) -> Iterator[str]:
    """Yield that a job's `max-cost` pays for no restart on one node of any of these tiers, those on-demand of its ladder."""
    written = text_at(job.props, "metadata", "annotations", MAX_COST)
    most = parse_max_cost(written) if isinstance(written, str) else None
    prices = [price for each in tiers if isinstance(price := at(each, "price"), int | float)]
    restart = _restart_cost(ladder)
    if most is None or restart is None or not prices or len(prices) < len(tiers):
        return
    if most <= min(prices) * (restart / _HOUR):
        yield (
            f"`{MAX_COST}: {written}` pays for no restart (`restartCost`, {format_duration(restart)}) on a node that costs "
            f"{min(prices):g} an hour, so it moves to on-demand only if nodes cost less than its ladder declares"
        )


def _restart_cost(ladder: StackResource) -> timedelta | None:
    declared = at(ladder.props, "spec", "restartCost")
    if declared is None:
        return DEFAULT_RESTART_COST
    try:
        return parse_duration(declared) if isinstance(declared, str) else None
    except DurationError:
        return None
