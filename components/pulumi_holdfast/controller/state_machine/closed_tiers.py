"""Moves a job that must leave its tier while cost limits exclude all lower tiers."""

from __future__ import annotations

from pulumi_holdfast.controller.policy.policy import Policy
from pulumi_holdfast.controller.state_machine.actions import JobStep
from pulumi_holdfast.controller.state_machine.events import EventReason, JobEvent
from pulumi_holdfast.controller.state_machine.failover import fail_over, give_up, pause
from pulumi_holdfast.controller.state_machine.observation import Observation
from pulumi_holdfast.controller.state_machine.spending_limits import (
    ends_at_max_cost,
    first_other_than_on_demand,
    is_closed_below,
    other_tier,
)
from pulumi_holdfast.controller.state_machine.state import JobState, Purpose
from pulumi_holdfast.ladder.frozen import replace


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
