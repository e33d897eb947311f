"""Limits of money: the `maxPrice` of a tier and the `max-cost` of a job, as tiers on which the job may buy no nodes now.

`maxPrice` bounds what is bought: a job that has all of its nodes keeps them, at whatever price. `max-cost` bounds what is
spent on on-demand, which only grows: a tier that it has closed stays closed for the job. A price that is not known closes
nothing. A job that must leave its tier while limits close all lower tiers pauses, moves elsewhere or is given up.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from pulumi_holdfast.controller.jobs.actions import EventReason, JobEvent, JobStep, standing_event
from pulumi_holdfast.controller.jobs.observation import Observation
from pulumi_holdfast.controller.jobs.pod_shapes import machines_needed
from pulumi_holdfast.controller.jobs.state import JobState, Phase, Purpose
from pulumi_holdfast.controller.state_machine.failover import fail_over, give_up, pause
from pulumi_holdfast.controller.state_machine.ledger import price_of, use_of
from pulumi_holdfast.controller.state_machine.pacing import copy_is_on_demand, pacing_of
from pulumi_holdfast.controller.state_machine.tier_visit import (
    NO_WAIT,
    current_tier,
    is_available,
    is_reached,
    tier_below,
    wait_ends,
)
from pulumi_holdfast.ladder.frozen import replace
from pulumi_holdfast.ladder.labels import MAX_COST, CapacityType
from pulumi_holdfast.ladder.ladder import Policy, Tier

_HOUR: Final = timedelta(hours=1)

# A gang that restarts gets its own nodes again within this time, and buys none.
RESTART_GRACE: Final = timedelta(minutes=1)

# How long a job without a tier that it may buy on stays suspended before its prices are compared again.
PRICE_INTERVAL: Final = timedelta(minutes=10)

# A sum of many small costs is a little less than their product.
_ROUNDING: Final = timedelta(milliseconds=1)

# What would be owed for longer is not spent in the life of a job.
_LONGEST: Final = timedelta(days=3650)


def limited_policy(state: JobState, observation: Observation, policy: Policy) -> Policy:
    """Return the ladder with the tiers closed on which the job may buy no nodes now."""
    if observation.max_cost is None and all(tier.max_price is None for tier in policy.tiers):
        return policy
    return replace(
        policy,
        tiers=tuple(
            replace(tier, is_open=not _is_closed(tier, state, observation, policy)) for tier in policy.tiers
        ),
    )


def _is_closed(tier: Tier, state: JobState, observation: Observation, policy: Policy) -> bool:
    return is_too_expensive(tier, observation, policy) or _is_past_max_cost(tier, state, observation, policy)


def is_too_expensive(tier: Tier, observation: Observation, policy: Policy) -> bool:
    """Whether a tier's nodes cost more than its `maxPrice`; a price that is not known is not too high."""
    price = price_of(tier.name, observation, policy)
    return tier.max_price is not None and price is not None and price > tier.max_price


def spent_on_demand(state: JobState) -> float:
    """What the job has spent on on-demand nodes, as far as their prices are known."""
    return 0.0 if state.ledger is None else state.ledger.cost_of(CapacityType.ON_DEMAND)


def _left(state: JobState, observation: Observation) -> float | None:
    """The rest of `max-cost` for on-demand; None for a job without one."""
    return None if observation.max_cost is None else observation.max_cost.amount - spent_on_demand(state)


def is_on_demand(tier: Tier, state: JobState) -> bool:
    """Whether a tier is on-demand; without facts, whether the job's own nodes there were."""
    known = tier.facts.capacity or use_of(state.ledger, tier.name).capacity
    return known is CapacityType.ON_DEMAND


def _is_past_max_cost(tier: Tier, state: JobState, observation: Observation, policy: Policy) -> bool:
    """Whether `max-cost` excludes a tier: what is left of it must pay for more than one restart before a job moves there."""
    left = _left(state, observation)
    if left is None or not is_on_demand(tier, state):
        return False
    if left <= 0:
        return True
    price = price_of(tier.name, observation, policy)
    if tier.name == state.pool or price is None:
        return False
    machines = machines_needed(observation.shapes, tier.facts.machine)
    return left <= price * machines * (policy.restart_cost / _HOUR)


def spending_event(state: JobState, observation: Observation, policy: Policy) -> JobEvent | None:
    """Return why a job must leave its tier for its cost; None if it must not."""
    tier = current_tier(state, policy)
    if tier is None:
        return None
    left = _left(state, observation)
    if (
        left is not None
        and left <= 0
        and (is_on_demand(tier, state) or copy_is_on_demand(state, observation))
    ):
        return JobEvent(
            reason=EventReason.MAX_COST_REACHED,
            message=f"{_spent_text(state, observation)}.",
            is_warning=True,
        )
    if is_too_expensive(tier, observation, policy) and is_reached(
        _price_deadline(state, observation), observation.now
    ):
        return JobEvent(reason=EventReason.PRICE_ABOVE_MAX, message=_price_text(tier, observation, policy))
    return None


def _spent_text(state: JobState, observation: Observation) -> str:
    most = 0.0 if observation.max_cost is None else observation.max_cost.amount
    return f"The job has spent {spent_on_demand(state):.2f} on on-demand nodes, of max-cost {most:g}"


def _price_text(tier: Tier, observation: Observation, policy: Policy) -> str:
    price, most = price_of(tier.name, observation, policy) or 0.0, tier.max_price or 0.0
    return f"A node of {tier.name} costs {price:g} per hour, above maxPrice {most:g}, so the job buys none there."


def _price_deadline(state: JobState, observation: Observation) -> datetime | None:
    """From when a job that waits on its tier would buy nodes: at once, or when a restart has not found its own nodes."""
    if observation.is_placed or state.waiting_since is None:
        return None
    has_run = state.waiting_since > max(state.since, state.resumed_at or state.since)
    return wait_ends(state, observation, RESTART_GRACE if has_run else NO_WAIT)


def other_tier(state: JobState, observation: Observation, policy: Policy) -> Tier | None:
    """The tier that a job moves to when its own and all below are closed: the first open one, from the top.

    A job whose `max-cost` excludes on-demand tries the other tiers in turn, and waits on each for its `procurementTimeout`.
    """
    return next(
        (each for each in policy.tiers if each.name != state.pool and is_available(each, observation)), None
    )


def first_other_than_on_demand(state: JobState, policy: Policy) -> Tier | None:
    """The best tier on which `max-cost` allows the job to wait, at any price; None if all tiers are on-demand."""
    return next((each for each in policy.tiers if not is_on_demand(each, state)), None)


def is_closed_below(state: JobState, observation: Observation, policy: Policy) -> bool:
    """Whether only cost limits exclude every lower tier."""
    opened = replace(policy, tiers=tuple(replace(tier, is_open=True) for tier in policy.tiers))
    return (
        tier_below(state, observation, policy) is None and tier_below(state, observation, opened) is not None
    )


def ends_at_max_cost(state: JobState, observation: Observation, policy: Policy) -> JobEvent | None:
    """Return why a job that must leave its tier is given up: it asks for that, or all tiers are on-demand."""
    if observation.max_cost is None:
        return None
    closed = [tier.name for tier in policy.tiers if _is_past_max_cost(tier, state, observation, policy)]
    is_alone = len(closed) == len(policy.tiers)
    if not closed or not (observation.max_cost.gives_up or is_alone):
        return None
    why = "no other tier is left" if is_alone else "it asks to be given up then"
    return JobEvent(
        reason=EventReason.GIVEN_UP,
        message=(
            f"{_spent_text(state, observation)}, and {why}: it is suspended permanently. Raise {MAX_COST}, then set "
            "`suspend: false` in its spec."
        ),
        is_warning=True,
    )


def is_held(state: JobState, observation: Observation, policy: Policy) -> bool:
    """Whether a suspended job must stay suspended, because a node of its tier costs more than `maxPrice`."""
    tier = current_tier(state, policy)
    return tier is not None and is_too_expensive(tier, observation, policy)


def spending_deadlines(
    state: JobState, observation: Observation, policy: Policy
) -> tuple[datetime | None, ...]:
    """The times at which this module's result may change although nothing else does."""
    if state.phase not in {Phase.WAITING, Phase.RUNNING}:
        return ()
    tier = current_tier(state, policy)
    waits = tier is not None and is_too_expensive(tier, observation, policy)
    return (_price_deadline(state, observation) if waits else None, _spent_at(state, observation, policy))


def _spent_at(state: JobState, observation: Observation, policy: Policy) -> datetime | None:
    """When the cost of the job's current on-demand nodes reaches the rest of `max-cost`."""
    left = _left(state, observation)
    rate = 0.0
    for kind, number in observation.nodes.items():
        if kind.capacity is CapacityType.ON_DEMAND:
            price = price_of(kind.pool, observation, policy) if kind.price is None else kind.price
            rate += number * (price or 0.0)
    if left is None or left <= 0 or left / _LONGEST_HOURS >= rate:
        return None
    return observation.now + left / rate * _HOUR + _ROUNDING


_LONGEST_HOURS: Final = _LONGEST / _HOUR


def spending_warnings(state: JobState, observation: Observation, policy: Policy) -> tuple[JobEvent, ...]:
    """Warn about limits without an effect, and about a deadline that `max-cost` does not pay for."""
    return (*_unknown_prices(state, observation, policy), *_uncovered_deadline(state, observation, policy))


def _unknown_prices(state: JobState, observation: Observation, policy: Policy) -> tuple[JobEvent, ...]:
    unknown = [tier for tier in policy.tiers if price_of(tier.name, observation, policy) is None]
    capped = [tier.name for tier in unknown if tier.max_price is not None]
    limited = [
        tier.name for tier in unknown if observation.max_cost is not None and is_on_demand(tier, state)
    ]
    names = {"maxPrice": capped, "max-cost": limited}
    found = [f"{limit} has no effect on {', '.join(pools)}" for limit, pools in names.items() if pools]
    if not found:
        return ()
    return (
        standing_event(
            EventReason.PRICE_UNKNOWN,
            f"No price is known, so {' and '.join(found)}: declare `price` on these tiers.",
        ),
    )


def _uncovered_deadline(state: JobState, observation: Observation, policy: Policy) -> tuple[JobEvent, ...]:
    left, pacing = _left(state, observation), pacing_of(state, observation, policy)
    if left is None or pacing is None:
        return ()
    safe = [tier for tier in policy.tiers if is_on_demand(tier, state)]
    price = price_of(safe[-1].name, observation, policy) if safe else None
    if price is None:
        return ()
    machines = machines_needed(observation.shapes, safe[-1].facts.machine)
    if left >= price * machines * ((pacing.left + policy.restart_cost) / _HOUR):
        return ()
    most = observation.max_cost.amount if observation.max_cost else 0.0
    return (
        standing_event(
            EventReason.DEADLINE_NOT_COVERED,
            f"The rest of max-cost {most:g} does not pay for the remaining work on on-demand, and max-cost takes precedence over "
            "the deadline: the job finishes in time only if spot nodes are available. Raise max-cost, or move finish-by.",
        ),
    )


def kept_from_lower_tiers(
    state: JobState, observation: Observation, policy: Policy, why: JobEvent
) -> JobStep | None:
    """The move of a job that must leave its tier while cost limits exclude all lower tiers; None if it stays.

    A job whose program fails stays: it would fail on every tier in turn.
    """
    is_price = why.reason in {EventReason.PRICE_ABOVE_MAX, EventReason.MAX_COST_REACHED}
    if not is_price and not is_closed_below(state, observation, policy):
        return None
    ends = ends_at_max_cost(state, observation, policy)
    if ends is not None:
        return give_up(state, observation, ends)
    if why.reason is EventReason.MAX_FAILURES_REACHED:
        return None
    if why.reason is EventReason.PRICE_ABOVE_MAX:
        said = replace(why, message=f"{why.message} It is suspended until cost limits allow a tier.")
        return pause(state, observation, Purpose.RESTART, said)
    other = other_tier(state, observation, policy)
    if other is None and why.reason is EventReason.MAX_COST_REACHED:
        other = first_other_than_on_demand(state, policy)
    return None if other is None else fail_over(state, observation, policy, other, why)
