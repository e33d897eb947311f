"""Reads what keeps a job from being moved: pods that end late, a failure policy that ends it first, a stop, a small `max-cost`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final

from pulumi_holdfast.ladder.labels import MAX_COST, STOP
from pulumi_holdfast.ladder.ladder import DEFAULT_RESTART_COST, parse_max_cost
from pulumi_holdfast.ladder.quantities import DurationError, format_duration, parse_duration
from pulumi_holdfast.program.clusters import is_same_cluster
from pulumi_holdfast.program.resources import (
    StackResource,
    Value,
    at,
    is_object,
    known_items,
    once,
    text_at,
    whole_number,
)

#: The ends of the types of admission policies: those that let jobs follow a ladder, and those that reject jobs that cannot.
MUTATING: Final = ":MutatingAdmissionPolicy"
VALIDATING: Final = ":ValidatingAdmissionPolicy"
#: The longest time that pods may take to end without a word about it, in seconds.
_LONGEST_END: Final = 3600
_LOST_POD: Final = "PodFailurePolicy"


def slow_to_end(template: Value) -> Iterator[str]:
    """Yield what keeps pods of this template from ending: a job moves only when none of its pods is left."""
    finalizers = [str(each) for each in known_items(template, "metadata", "finalizers")]
    if finalizers:
        yield f"its pods end only when the finalizer {', '.join(finalizers)} is removed, and a job moves only after them"
    seconds = whole_number(at(template, "spec", "terminationGracePeriodSeconds"))
    if isinstance(seconds, int) and seconds > _LONGEST_END:
        yield f"its pods may take {seconds} seconds to end (terminationGracePeriodSeconds), and a job moves only after them"


def stopped(job: StackResource) -> Iterator[str]:
    """Yield that the controller keeps a job suspended, because its annotation says so."""
    if at(job.props, "metadata", "annotations", STOP) == "true":
        yield f"its annotation {STOP} keeps it suspended until the annotation is removed"


def failure_policy_replaced(
    job: StackResource, failures: int, resources: Sequence[StackResource]
) -> Iterator[str]:
    """Yield that admission replaces the failure policy with which a JobSet would fail before its ladder moves it.

    `failures` are those that its ladder counts on its spot tiers. Holdfast's admission replaces the policy of every JobSet that
    follows a ladder. A program that makes the admission shows it.
    """
    policy = at(job.props, "spec", "failurePolicy")
    rules = [
        each
        for each in known_items(policy, "rules")
        if not known_items(each, "onJobFailureReasons")
        or _LOST_POD in known_items(each, "onJobFailureReasons")
    ]
    most = whole_number(at(policy, "maxRestarts") or 0)
    is_short = isinstance(most, int) and most < failures
    ends = at(rules[0], "action") == "FailJobSet" if rules else is_short
    if is_object(policy) and ends and not has_admission(MUTATING, job, resources):
        yield "admission replaces its failure policy, with which it would fail before it moves"


def has_admission(ending: str, near: StackResource, resources: Sequence[StackResource]) -> bool:
    """Whether the program makes and binds an admission policy of this type that goes by ladders, in the cluster of a resource."""
    return any(
        each.type.endswith(ending) and is_same_cluster(each, near, resources) is True
        for each in _by_ladders(resources)
    )


@once
def _by_ladders(resources: Sequence[StackResource]) -> tuple[StackResource, ...]:
    return tuple(
        each
        for each in resources
        if each.type.endswith((MUTATING, VALIDATING))
        and at(each.props, "spec", "paramKind", "kind") == "FallbackPolicy"
        and _is_enforced(each, resources)
    )


def _is_enforced(policy: StackResource, resources: Sequence[StackResource]) -> bool:
    """Whether a binding of the policy does more than warn, or all of its bindings are made elsewhere."""
    name = at(policy.props, "metadata", "name")
    bindings = [
        known_items(each.props, "spec", "validationActions") or ("Deny",)
        for each in resources
        if each.type.endswith("AdmissionPolicyBinding") and at(each.props, "spec", "policyName") == name
    ]
    return not bindings or any("Deny" in actions for actions in bindings)


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
