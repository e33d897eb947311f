"""What holds of every decision about limits of money: call it for each decision of a model, a simulation or a fault run."""

from pulumi_holdfast.controller.jobs.actions import EventReason, Recreate, Resume, Suspend
from pulumi_holdfast.controller.jobs.observation import Observation
from pulumi_holdfast.controller.jobs.state import Phase
from pulumi_holdfast.controller.state_machine.decision import Decision
from pulumi_holdfast.controller.state_machine.ledger import price_of
from pulumi_holdfast.controller.state_machine.spending_limits import (
    is_on_demand,
    is_too_expensive,
    spent_on_demand,
)
from pulumi_holdfast.controller.state_machine.tier_visit import current_tier
from pulumi_holdfast.ladder.ladder import NoPolicy, Policy

MONEY = frozenset({EventReason.PRICE_ABOVE_MAX, EventReason.MAX_COST_REACHED})


def spending_faults(observation: Observation, policy: Policy | NoPolicy, decision: Decision) -> list[str]:
    """Return what a decision does against the limits of money of its tiers and its job; empty for a good one."""
    state = decision.state
    if state is None or not isinstance(policy, Policy):
        return []
    tier = current_tier(state, policy)
    is_moving = state.failback is not None
    resumes = any(isinstance(action, Resume) for action in decision.actions)
    moves = any(isinstance(action, Suspend | Resume | Recreate) for action in decision.actions)
    faults: list[str] = []
    if resumes and tier is not None and is_too_expensive(tier, observation, policy) and not is_moving:
        faults.append(f"the job is resumed on {tier.name}, whose nodes cost more than its maxPrice")
    spent = observation.max_cost is not None and spent_on_demand(state) >= observation.max_cost.amount
    others = [each for each in policy.tiers if not is_on_demand(each, state)]
    on_closed = spent and tier is not None and is_on_demand(tier, state)
    ran = state.phase in {Phase.RUNNING, Phase.WAITING} and observation.outcome is None
    could = observation.can_be_suspended and observation.follows and not observation.suspended
    # A job that its user has resumed is adopted first: its limits apply from the next reconciliation on.
    could = could and EventReason.RESUMED_EXTERNALLY not in {each.reason for each in decision.events}
    if ran and could and on_closed and not moves:
        faults.append(f"the job stays on {state.pool} although its max-cost is spent")
    unpriced = all(price_of(each.name, observation, policy) is None for each in policy.tiers)
    if unpriced and any(each.reason in MONEY - {EventReason.MAX_COST_REACHED} for each in decision.events):
        faults.append("the job leaves its tier for a price that is not known")
    if on_closed and resumes and others and any(each.is_open for each in others):
        faults.append(f"the job is resumed on {state.pool} although its max-cost is spent")
    return faults
