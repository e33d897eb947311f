"""Why a job is left alone, although it may have been put on a ladder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.fallback.policy.policy import NoPolicy, Policy
from holdfast.fallback.state_machine.report import Report
from holdfast.scheduling.labels import FOLLOWS, FOLLOWS_VALUE, LADDER, POOL, STAYS_VALUE

if TYPE_CHECKING:
    from holdfast.fallback.state_machine.observation import Observation


def obstacle(seen: Observation, policy: Policy | NoPolicy) -> Report | None:
    """What keeps the ladder from touching a job that follows it, and the fix; None where nothing does."""
    if seen.queued:
        return _standing(
            "ManagedByKueue",
            "Kueue manages the job and would undo what the ladder does, so it is left alone. Take the label "
            "kueue.x-k8s.io/queue-name off a job that is to follow the ladder, or order Kueue's flavors instead.",
        )
    if seen.never_suspendable is not None:
        return _standing(
            "CannotFollow", f"The job cannot be suspended, so it stays where it is: {seen.never_suspendable}"
        )
    if isinstance(policy, NoPolicy):
        return _without_policy(policy)
    return None


def not_on_ladder(seen: Observation, policy: Policy) -> Report:
    """What is said of a job whose pods select none of the ladder's pools."""
    selected = f"the pool {seen.pool}" if seen.pool else "no pool, or several"
    pools = ", ".join(tier.pool for tier in policy.tiers)
    return _standing(
        "NotOnLadder",
        f"The job's pods select {selected}, and its ladder has {pools}: it is left alone. Create it with the selector "
        f'`{POOL}: {policy.tiers[0].pool}`, or with the label `{FOLLOWS}: "{STAYS_VALUE}"` if it is to stay where it is.',
    )


def _without_policy(policy: NoPolicy) -> Report:
    if policy.problems:
        return _standing(
            "PolicyUnusable",
            f"The FallbackPolicy {LADDER} cannot be followed, so the job stays where it is: {' '.join(policy.problems)}",
        )
    return _standing(
        "NoPolicy",
        f'The job says `{FOLLOWS}: "{FOLLOWS_VALUE}"`, but its namespace has no FallbackPolicy called {LADDER}: it stays '
        "where it is. Create one, or take the label off.",
    )


def _standing(reason: str, message: str) -> Report:
    return Report(reason=reason, message=message, is_warning=True, is_standing=True)
