"""`kubectl holdfast drill`: interrupts a node of a job as a cloud does, and measures what that costs."""

from __future__ import annotations

import json
import sys
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.cli.kubectl.command_line import JOB_HELP, access_of, open_cluster
from pulumi_holdfast.cli.kubectl.drill.plan import (
    Taking,
    Target,
    cannot_vanish,
    choose_node,
    plan_lines,
    refusal,
    rights_needed,
    target_of,
)
from pulumi_holdfast.cli.kubectl.drill.recovery import Sighting, Stage, advance, begin, furthest, progress_of
from pulumi_holdfast.cli.kubectl.drill.report import DrillResult, report_object, report_text
from pulumi_holdfast.cli.kubectl.job_view import reference_of, state_of, tier_of
from pulumi_holdfast.controller.jobs.kinds import job_of_pod
from pulumi_holdfast.controller.jobs.observation import JobOutcome
from pulumi_holdfast.controller.jobs.pods_and_nodes import has_ended
from pulumi_holdfast.controller.kube.client import NODE, NODECLAIM, POD, ApiError, Unreachable
from pulumi_holdfast.controller.kube.objects import name_of, namespace_of, objects, text
from pulumi_holdfast.ladder.errors import ConfigError, Problem
from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.ladder.ladder import Policy
from pulumi_holdfast.ladder.quantities import DurationError, parse_duration

if TYPE_CHECKING:
    import argparse
    from collections.abc import Generator

    from pulumi_holdfast.cli.kubectl.cluster import Cluster
    from pulumi_holdfast.cli.kubectl.drill.recovery import Progress, Recovery
    from pulumi_holdfast.controller.jobs.pods_and_nodes import JobKey
    from pulumi_holdfast.ladder.ladder import NoPolicy

_POLL_SECONDS: Final = 0.25
_NOT_ASKED: Final = 3
_FAILED: Final = 1
_MISSING_OR_BUDGET: Final = frozenset({404, 429})


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("job", metavar="JOB", help=JOB_HELP)
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--notice",
        dest="taking",
        action="store_const",
        const=Taking.NOTICE,
        default=Taking.NOTICE,
        help="interrupt the node as after a reclaim notice: its pods are evicted (default)",
    )
    how.add_argument(
        "--vanish",
        dest="taking",
        action="store_const",
        const=Taking.VANISH,
        help="interrupt the node without a notice: its machine is gone",
    )
    how.add_argument(
        "--by-hand",
        dest="taking",
        action="store_const",
        const=None,
        help="interrupt nothing: name the node, wait until the cloud takes it, and measure",
    )
    parser.add_argument("--node", help="the node to interrupt (default: one with the fewest pods of the job)")
    parser.add_argument("--yes", action="store_true", help="interrupt the node without asking")
    parser.add_argument("--timeout", default="1h", metavar="DURATION", help="how long to follow the job")
    parser.add_argument(
        "--max-lost-steps", type=float, metavar="N", help="exit with 1 if more steps are lost"
    )
    parser.add_argument("--price", type=float, help="of a node per hour (default: the tier's `price`)")
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text", help="how to report")


def run(parsed: argparse.Namespace) -> int:
    """Run the drill; return 0 if the job recovered within the limits, 1 if not, 3 if the user declines."""
    seconds = _seconds(parsed.timeout)
    with open_cluster(access_of(parsed)) as cluster:
        key = cluster.job_named(parsed.job)
        job, policy = cluster.job(key), cluster.policy()
        target, before = _prepare(cluster, key, job, policy, parsed)
        if not _agreed(cluster, job, target, policy, parsed):
            print("nothing is taken", file=sys.stderr)
            return _NOT_ASKED
        state = state_of(job)
        record = begin(cluster.pods(key), before, state.pool if state else None)
        started = time.monotonic()
        with _closed(cluster, target, parsed.taking):
            _take(cluster, target, parsed.taking)
            record = _follow(cluster, key, record, started, seconds)
        tier = tier_of(state, policy) if state and isinstance(policy, Policy) else None
    result = DrillResult(
        job=reference_of(job),
        taking=parsed.taking,
        target=target,
        recovery=record,
        price=parsed.price if parsed.price is not None else tier.price if tier else None,
        most_lost=parsed.max_lost_steps,
    )
    print(json.dumps(report_object(result), indent=2) if parsed.output == "json" else report_text(result))
    if result.problem is None:
        return 0
    print(f"error: drill: {result.problem}", file=sys.stderr)
    return _FAILED


def _prepare(
    cluster: Cluster, key: JobKey, job: Json, policy: Policy | NoPolicy, parsed: argparse.Namespace
) -> tuple[Target, Progress]:
    """Return the node to interrupt and the job's progress. Raises ConfigError if the drill must not run."""
    pods, state = cluster.pods(key), state_of(job)
    before = furthest(pods) or progress_of(job)
    problem = refusal(job, state, policy, cluster.observe(key, job), reports=before is not None)
    node = choose_node(pods, parsed.node)
    if problem is not None or before is None:
        raise ConfigError([problem] if problem else [])
    if node is None:
        raise ConfigError([_no_node(pods, parsed.node)])
    target = _read_target(cluster, node, pods)
    if parsed.taking is None:
        return target, before
    vanishing = cannot_vanish(target) if parsed.taking is Taking.VANISH else None
    if vanishing is not None:
        raise ConfigError([vanishing])
    lacking = [
        str(each) for each in rights_needed(target, parsed.taking, cluster.namespace) if not cluster.may(each)
    ]
    if lacking:
        raise ConfigError([_no_right(lacking)])
    return target, before


def _read_target(cluster: Cluster, node: str, pods: list[Json]) -> Target:
    """Return the target, as far as the user may read the node and its NodeClaim."""
    found: Json | None = None
    claims: list[Json] = []
    # Without the right to read nodes there is none to take them either: that is said with the right's name.
    with suppress(ConfigError):
        found = cluster.find(NODE, node)
    with suppress(ConfigError):
        claims = cluster.list(NODECLAIM, everywhere=True)
    return target_of(node, found, claims, pods)


def _agreed(
    cluster: Cluster, job: Json, target: Target, policy: Policy | NoPolicy, parsed: argparse.Namespace
) -> bool:
    if parsed.taking is None:
        print(
            f"Interrupt the node {target.node} through the cloud; this command follows {reference_of(job)}.",
            file=sys.stderr,
        )
        return True
    for line in plan_lines(job, target, parsed.taking, policy, _other_pods(cluster, job, target)):
        print(line, file=sys.stderr)
    if parsed.yes:
        return True
    if not sys.stdin.isatty():
        raise ConfigError.of(
            field="--yes",
            value="not set, and no terminal to ask on",
            allowed="a confirmation before a node is interrupted",
            fix="Pass --yes in a pipeline.",
        )
    print("Interrupt it? [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _other_pods(cluster: Cluster, job: Json, target: Target) -> list[str] | None:
    """Return the other pods of the node that no DaemonSet made; None if the user may not read them."""
    try:
        there = cluster.list(POD, fields=f"spec.nodeName={target.node}", everywhere=True)
    except ConfigError:
        return None
    own = (cluster.namespace, name_of(job))
    return sorted(
        f"{namespace_of(pod)}/{name_of(pod)}"
        for pod in there
        if not has_ended(pod)
        and _owner_kind(pod) != "DaemonSet"
        and (job_of_pod(pod) or ("", "", ""))[1:] != own
    )


def _owner_kind(pod: Json) -> str:
    owners = objects(mapping(pod.get("metadata")).get("ownerReferences"))
    return text(owners[0].get("kind")) if owners else ""


def _take(cluster: Cluster, target: Target, taking: Taking | None) -> None:
    if taking is Taking.VANISH:
        # Karpenter drains a node that is deleted, by its finalizer: without the finalizer nothing is drained.
        cluster.patch(NODE, target.node, {"metadata": {"finalizers": None}})
        cluster.delete(NODE, target.node)
    if taking is not None and target.claim is not None:
        cluster.delete(NODECLAIM, target.claim)
    elif taking is Taking.NOTICE:
        for pod in target.pods:
            _evict(cluster, pod)


def _evict(cluster: Cluster, pod: str) -> None:
    body: Json = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": pod, "namespace": cluster.namespace},
    }
    try:
        cluster.send("POST", POD.item(cluster.namespace, pod, "eviction"), body=body)
    except ApiError as error:
        # 404: it is gone. 429: a disruption budget forbids it; a cloud does not wait for that.
        if error.status not in _MISSING_OR_BUDGET:
            raise


@contextmanager
def _closed(cluster: Cluster, target: Target, taking: Taking | None) -> Generator[None]:
    """Cordon the node for the length of the block, if necessary, and uncordon it afterward in any case."""
    if not target.is_closed_by(taking):
        yield
        return
    try:
        cluster.patch(NODE, target.node, {"spec": {"unschedulable": True}})
        yield
    finally:
        _open_again(cluster, target.node)


def _open_again(cluster: Cluster, node: str) -> None:
    try:
        cluster.patch(NODE, node, {"spec": {"unschedulable": None}})
    except (ApiError, Unreachable, ConfigError) as error:
        if isinstance(error, ApiError) and error.is_missing:
            return  # its machine is gone
        raise ConfigError.of(
            field="node",
            value=f"{node}, which the drill cordoned and cannot uncordon ({error})",
            allowed="a node that is schedulable, as it was before",
            fix=f"Run `kubectl uncordon {node}`.",
        ) from error


def _follow(cluster: Cluster, key: JobKey, record: Recovery, started: float, seconds: float) -> Recovery:
    said: set[Stage] = set()
    while not record.is_complete and time.monotonic() - started < seconds:
        job = cluster.job(key)
        seen = cluster.observe(key, job)
        state = state_of(job)
        sighting = Sighting(
            at=time.monotonic() - started,
            pods=cluster.pods(key),
            pool=state.pool if state else None,
            own_progress=progress_of(job),
            has_completed=seen.outcome is JobOutcome.COMPLETED,
        )
        record = advance(record, sighting)
        for stage in Stage:
            if stage in record.stages and stage not in said:
                said.add(stage)
                print(f"[{record.stages[stage]:7.1f} s] {stage.value}", file=sys.stderr, flush=True)
        if seen.outcome is JobOutcome.FAILED:
            break
        time.sleep(_POLL_SECONDS)
    return record


def _seconds(written: str) -> float:
    try:
        return parse_duration(written).total_seconds()
    except DurationError as error:
        problem = Problem(
            field="--timeout", value=f'"{written}"', allowed="a duration such as 30m", fix=error.fix
        )
        raise ConfigError([problem]) from error


def _no_node(pods: list[Json], wanted: str | None) -> Problem:
    nodes = sorted({text(mapping(pod.get("spec")).get("nodeName")) for pod in pods} - {""})
    return Problem(
        field="--node",
        value=f'"{wanted}"' if wanted else "none that has only workers of the job",
        allowed=", ".join(nodes) or "a node of the job's workers; it has none",
        fix="Name a node on which a worker of the job runs, and no Ray head.",
    )


def _no_right(lacking: list[str]) -> Problem:
    return Problem(
        field="rights",
        value=f"no right to {'; '.join(lacking)}",
        allowed="the right to take a node, which the roles of a training namespace do not include",
        fix="Let an administrator run the drill; or let the cloud take the node, with --by-hand.",
    )
