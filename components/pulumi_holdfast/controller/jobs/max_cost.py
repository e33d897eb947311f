"""Reads from a job's annotations how much it may spend on on-demand nodes, and what it does after that."""

from __future__ import annotations

from collections.abc import Mapping
from math import floor
from typing import Final

from pulumi_holdfast.controller.api.objects import annotations_of, text
from pulumi_holdfast.controller.state_machine.events import EventReason, JobEvent, standing_event
from pulumi_holdfast.controller.state_machine.observation import MaxCost
from pulumi_holdfast.controller.state_machine.state import Ledger
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import AFTER_MAX_COST, MAX_COST, CapacityType
from pulumi_holdfast.ladder.ladder import AFTER_MAX_COST_VALUES, GIVE_UP_AFTER_MAX_COST, parse_max_cost

_QUOTED: Final = 60
# The least amount that can be written.
_LEAST: Final = 1e-6


def max_cost_of(job: Json) -> MaxCost | None:
    """Return how much a job may spend on on-demand nodes; None without a valid limit."""
    written = _annotations(job)
    amount = parse_max_cost(written.get(MAX_COST, ""))
    return (
        None
        if amount is None
        else MaxCost(amount=amount, gives_up=written.get(AFTER_MAX_COST) == GIVE_UP_AFTER_MAX_COST)
    )


def max_cost_left(job: Json, ledger: Ledger | None) -> str:
    """Return the `max-cost` of a job's copy: the rest of the job's own, because the copy's ledger does not include the job's.

    Never 0, which would be no limit: the smallest amount pays for no on-demand node.
    """
    limit = max_cost_of(job)
    if limit is None:
        return _annotations(job).get(MAX_COST, "")
    left = limit.amount - (0.0 if ledger is None else ledger.cost_of(CapacityType.ON_DEMAND))
    # Rounded down: both limits together are never more than what the user allows.
    return f"{max(floor(left / _LEAST), 1) * _LEAST:.6f}"


def max_cost_events(job: Json) -> tuple[JobEvent, ...]:
    """Warn about invalid annotations, which admission rejects if it is installed."""
    problem = _problem(_annotations(job))
    return () if problem is None else (standing_event(EventReason.MAX_COST_UNUSABLE, problem),)


def _problem(written: Mapping[str, str]) -> str | None:
    most, after = written.get(MAX_COST), written.get(AFTER_MAX_COST)
    if most is not None and parse_max_cost(most) is None:
        return (
            f'The job may spend any amount: its annotation {MAX_COST} is "{most[:_QUOTED]}"; allowed: a number above 0, such as '
            "250 or 99.50. Correct it."
        )
    if after is not None and most is None:
        return f"The job may spend any amount: its annotation {AFTER_MAX_COST} needs {MAX_COST}. Add it, or remove this one."
    if after not in {None, *AFTER_MAX_COST_VALUES}:
        return (
            f'The job waits when its max-cost is spent: its annotation {AFTER_MAX_COST} is "{(after or "")[:_QUOTED]}"; allowed: '
            f"{' or '.join(AFTER_MAX_COST_VALUES)}. Correct it."
        )
    return None


def _annotations(job: Json) -> Mapping[str, str]:
    annotations = annotations_of(job)
    return {name: text(annotations[name]) for name in (MAX_COST, AFTER_MAX_COST) if name in annotations}
