"""Decides whether a drill may interrupt a node of a job, which one, and how. Pure.

A drill counts against the tier like any outage. It refuses if it would move the job, end it, or make it miss its deadline.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from pulumi_holdfast.cli.kubectl.cluster import Right
from pulumi_holdfast.cli.kubectl.job_view import limit_of, reference_of, state_of, tier_of
from pulumi_holdfast.controller.jobs.observation import Observation, Part
from pulumi_holdfast.controller.jobs.pod_history import part_of
from pulumi_holdfast.controller.jobs.pods_and_nodes import has_ended, is_terminating, node_of
from pulumi_holdfast.controller.jobs.state import JobState, Phase
from pulumi_holdfast.controller.kube.objects import annotations_of, count, name_of, objects, text
from pulumi_holdfast.controller.state_machine.outages import counted_failures
from pulumi_holdfast.controller.state_machine.pacing import pacing_of
from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.ladder.labels import PROGRESS
from pulumi_holdfast.ladder.ladder import NoPolicy, Policy

# An interruption costs one restart; below two more a job with a deadline leaves spot.
_RESTARTS_KEPT: Final = 3
_IGNORES: Final = "RestartJobSetAndIgnoreMaxRestarts"
_SIMULATED: Final = "kwok.x-k8s.io/node"


class Taking(StrEnum):
    """How a cloud interrupts a spot machine."""

    NOTICE = "notice"  #: with a notice: pods are evicted and have their grace period
    VANISH = "vanish"  #: without one: the machine is gone


@dataclass(frozen=True, kw_only=True)
class Target:
    """The node to interrupt, with its NodeClaim if Karpenter made it, and the job's pods on it.

    `is_closed`: it is unschedulable already, as an administrator left it.
    """

    node: str
    claim: str | None
    pods: tuple[str, ...]
    is_simulated: bool = False
    is_closed: bool = False

    def is_closed_by(self, taking: Taking | None) -> bool:
        """Whether the drill cordons the node and must uncordon it: no controller removes its machine."""
        return taking is Taking.NOTICE and self.claim is None and not self.is_closed


def refusal(
    job: Json, state: JobState | None, policy: Policy | NoPolicy, seen: Observation, *, reports: bool
) -> Problem | None:
    """Return why no node of a job may be interrupted now, with the fix; None if one may."""
    name = reference_of(job)
    if state is None or not isinstance(policy, Policy) or not seen.follows:
        return _refused(
            f"{name}, which is on no tier of a ladder",
            "a job that follows the ladder of its namespace",
            f"Read `kubectl holdfast why {name}`.",
        )
    if state.phase is not Phase.RUNNING or seen.suspended or state.failback is not None:
        now = "a failback under way" if state.failback is not None else f"the phase {state.phase.value}"
        return _refused(
            f"{name} with {now}",
            "a job that is Running and does not move: otherwise the drill would measure the move",
            "Wait until it is Running.",
        )
    if not reports:
        return _refused(
            f"{name}, which reports no progress",
            f"a program that annotates one of its pods, or the job, with {PROGRESS}, as 0.42 or 4200/10000",
            "Report progress as examples/training/progress.py does: give the container POD_NAME, and apply "
            "examples/report-progress.yaml. For a program that reports nothing, annotate the job yourself.",
        )
    return (
        _spends_the_tier(name, state, policy)
        or _spends_the_slack(name, state, policy, seen)
        or _ends_the_job(name, job)
    )


def _spends_the_tier(name: str, state: JobState, policy: Policy) -> Problem | None:
    limit = limit_of(tier_of(state, policy))
    spent = counted_failures(state, policy.failures)
    if state.pace is not None or limit is None or spent + 1 < limit:
        return None
    return _refused(
        f"{name}, against which {state.pool} has counted {spent} of {limit} failures",
        "a job for which one more failure does not spend its tier: the drill would move it on",
        "Raise maxFailures of the tier, or run the drill after the job has moved.",
    )


def _spends_the_slack(name: str, state: JobState, policy: Policy, seen: Observation) -> Problem | None:
    pacing = pacing_of(state, seen, policy)
    if pacing is None or pacing.slack >= _RESTARTS_KEPT * pacing.restart_cost:
        return None
    return _refused(
        f"{name}, which has {max(0, int(pacing.slack.total_seconds() // 60))} minutes of slack until its deadline",
        f"a job with slack for {_RESTARTS_KEPT} restarts, {_RESTARTS_KEPT * policy.restart_cost}: the drill costs one",
        "Run the drill on a job with a later deadline.",
    )


def _ends_the_job(name: str, job: Json) -> Problem | None:
    spec, status = mapping(job.get("spec")), mapping(job.get("status"))
    if text(job.get("kind")) == "RayJob":
        spent, most, field = count(status.get("failed")), count(spec.get("backoffLimit")), "backoffLimit"
    else:
        most = count(mapping(spec.get("failurePolicy")).get("maxRestarts"))
        spent, field = count(status.get("restartsCountTowardsMax")), "maxRestarts"
    if spent < most or _ignores_evictions(spec):
        return None
    return _refused(
        f"{name}, which has used {spent} of {field}: {most}",
        "a job that may restart once more: the drill would end it",
        f"Create the job with a larger {field}.",
    )


def _ignores_evictions(spec: Json) -> bool:
    """Whether JobSet counts no eviction, by the rule that admission adds."""
    rules = objects(mapping(spec.get("failurePolicy")).get("rules"))
    return any(text(rule.get("action")) == _IGNORES for rule in rules)


def choose_node(pods: Sequence[Json], wanted: str | None) -> str | None:
    """Return the node to interrupt: the wanted one, else one with the fewest of the job's workers; never a Ray head's.

    None if the job has no pod on the wanted node, or no worker on any node.
    """
    alive = [pod for pod in pods if node_of(pod) and not has_ended(pod) and not is_terminating(pod)]
    heads = {node_of(pod) for pod in alive if part_of(pod) is Part.HEAD}
    found = Counter(node_of(pod) for pod in alive if node_of(pod) not in heads)
    if wanted is not None:
        return wanted if wanted in found else None
    return min(found, key=lambda node: (found[node], node), default=None)


def target_of(node: str, node_object: Json | None, claims: Sequence[Json], pods: Sequence[Json]) -> Target:
    """Return the node to interrupt from its objects."""
    annotations = annotations_of(mapping(node_object))
    claim = next((each for each in claims if mapping(each.get("status")).get("nodeName") == node), None)
    return Target(
        node=node,
        claim=None if claim is None else name_of(claim),
        pods=tuple(sorted(name_of(pod) for pod in pods if node_of(pod) == node and not has_ended(pod))),
        is_simulated=_SIMULATED in annotations,
        is_closed=mapping(mapping(node_object).get("spec")).get("unschedulable") is True,
    )


def rights_needed(target: Target, taking: Taking, namespace: str) -> tuple[Right, ...]:
    """Return the permissions that an interruption of the node needs."""
    claims = Right(verb="delete", group="karpenter.sh", resource="nodeclaims")
    if taking is Taking.VANISH:
        nodes = tuple(Right(verb=verb, group="", resource="nodes") for verb in ("patch", "delete"))
        return (*nodes, claims) if target.claim else nodes
    if target.claim:
        return (claims,)
    return (
        # Whether it was closed before: an administrator may have closed it.
        Right(verb="get", group="", resource="nodes"),
        Right(verb="patch", group="", resource="nodes"),
        Right(verb="create", group="", resource="pods/eviction", namespace=namespace),
    )


def cannot_vanish(target: Target) -> Problem | None:
    """Return why a node cannot be removed without a notice; None if it can.

    If no controller terminates the machine of a deleted Node, its containers would run beside the job's new gang.
    """
    if target.claim or target.is_simulated:
        return None
    return _refused(
        f"the node {target.node}, which no NodeClaim owns",
        "--vanish on nodes of Karpenter, which terminates the machine of a deleted node",
        "Use --notice; or let the cloud take the machine (`az vmss simulate-eviction`, `gcloud compute instances delete`), "
        "with --by-hand.",
    )


def plan_lines(
    job: Json, target: Target, taking: Taking, policy: Policy | NoPolicy, others: Sequence[str] | None
) -> list[str]:
    """Return a description of the interruption, for the user's confirmation."""
    state = state_of(job)
    closing = "the node stays cordoned" if target.is_closed else "the node is cordoned"
    does = {
        (Taking.NOTICE, True): f"NodeClaim {target.claim} is deleted, as Karpenter does on a reclaim notice",
        (Taking.NOTICE, False): f"{closing}, and the job's pods on it are evicted",
        (Taking.VANISH, True): f"the Node is removed without a drain, and then NodeClaim {target.claim}",
        (Taking.VANISH, False): "the Node is removed without a drain",
    }[(taking, target.claim is not None)]
    lines = [
        f"{reference_of(job)} loses the node {target.node} ({taking.value}): {does}.",
        f"Its pods there: {', '.join(target.pods)}.",
    ]
    if others is None:
        lines.append("You have no permission to list pods of other jobs on the node.")
    elif others and target.claim:
        lines.append(f"Pods of others that are lost with the node: {', '.join(others)}.")
    if state is not None and isinstance(policy, Policy):
        limit = limit_of(tier_of(state, policy))
        counted = counted_failures(state, policy.failures) + 1
        of = "" if limit is None or state.pace is not None else f" of {limit}"
        lines.append(f"The outage counts as failure {counted}{of} on {state.pool}.")
    return lines


def _refused(value: str, allowed: str, fix: str) -> Problem:
    return Problem(field="drill", value=value, allowed=allowed, fix=fix)
