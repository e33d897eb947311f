"""Reads what keeps the pods of a job from being created, and from ending: a job moves only when none of its pods is left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.ladder.labels import STOP
from pulumi_holdfast.program.clusters import is_same_cluster
from pulumi_holdfast.program.namespaces.interceptors import is_enforced
from pulumi_holdfast.program.resources import (
    StackResource,
    Value,
    at,
    is_object,
    known_items,
    of_type,
    once,
    text_at,
    whole_number,
)

_ACCOUNT: Final = "kubernetes:core/v1:ServiceAccount"
#: The ends of the types of admission policies: those that let jobs follow a ladder, and those that reject jobs that cannot.
MUTATING: Final = ":MutatingAdmissionPolicy"
VALIDATING: Final = ":ValidatingAdmissionPolicy"
#: The longest time that pods may take to end without a word about it, in seconds.
_LONGEST_END: Final = 3600
_LOST_POD: Final = "PodFailurePolicy"


def hindered_pods(
    template: Value, job: StackResource, namespace: str, resources: Sequence[StackResource]
) -> Iterator[str]:
    """Yield what keeps pods of this template from being created, or from ending."""
    account = text_at(template, "spec", "serviceAccountName") or text_at(template, "spec", "serviceAccount")
    if account not in (None, "", "default", UNKNOWN) and not _is_made(
        str(account), job, namespace, resources
    ):
        yield (
            f"whether its ServiceAccount {account} exists is not known, because this program does not make it in the namespace: "
            "without it the API server rejects its pods"
        )
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


def _is_made(name: str, job: StackResource, namespace: str, resources: Sequence[StackResource]) -> bool:
    return any(
        text_at(each.props, "metadata", "name") in (name, UNKNOWN)
        and (text_at(each.props, "metadata", "namespace") or "default") in (namespace, UNKNOWN)
        and is_same_cluster(each, job, resources) is not False
        for each in of_type(resources, _ACCOUNT)
    )


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
        and is_enforced(each, resources)
    )
