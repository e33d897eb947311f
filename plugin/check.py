"""Reports whether admission accepts a manifest, and which tiers of its namespace's ladder its job can reach.

The API server checks the manifest in a dry run, with all policies and webhooks. The tiers follow from the facts in the
namespace's FallbackPolicy, by the rules of the policy pack.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, cast

from holdfast.fallback.jobs.jobset import replicated_jobs
from holdfast.fallback.jobs.pod_templates import requests_of, selector_of
from holdfast.fallback.jobs.rayjob import worker_groups
from holdfast.fallback.kube.client import ApiError
from holdfast.fallback.kube.objects import count, labels_of, metadata_of, name_of, namespace_of, objects, text
from holdfast.plugin.cluster import JOB_KINDS, Cluster, rejected
from holdfast.plugin.connection import Access, kubectl
from holdfast.plugin.job_view import reference_of, selected_pool
from holdfast.scheduling.errors import ConfigError, Problem
from holdfast.scheduling.json import Json, mapping
from holdfast.scheduling.labels import (
    CAPACITY_KEYS,
    EFA_RESOURCE,
    FOLLOWS,
    FOLLOWS_VALUE,
    GPU_RESOURCE,
    POOL,
    TRAINING,
    TRAINING_VALUE,
)
from holdfast.scheduling.quantities import parse_quantity
from holdfast.scheduling.reachability.facts import PoolFacts, TierFacts
from holdfast.scheduling.reachability.shape import Resources, Shape
from holdfast.scheduling.reachability.stored_facts import read_exported, read_pool_facts
from holdfast.scheduling.reachability.walk import Outcome, Step, walk_together

_MIB: Final = 2**20
_OTHER_NAMESPACE: Final = "does not match the namespace"
_ENDS: Final = {
    Outcome.ARRIVES: "It reaches on-demand capacity.",
    Outcome.STAYS: "It stays on spot indefinitely, as the ladder says (maxFailures: -1).",
    Outcome.STUCK: "It gets stuck there: its pods fit on no machine, and no procurementTimeout moves it on.",
    Outcome.FALLS_OFF: "It reaches no on-demand capacity.",
    Outcome.UNDETERMINED: "Whether it reaches on-demand capacity depends on what the ladder does not say.",
}


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The result for one manifest: the lines to print, and whether its job follows the ladder and reaches capacity."""

    lines: tuple[str, ...]
    is_good: bool


def check_file(cluster: Cluster, access: Access, file: str, stdin: str | None = None) -> list[Verdict]:
    """Return the verdict on each job of a file (`-`: standard input).

    Raises ConfigError if the file cannot be read, holds no job, or admission rejects one.
    """
    return [check_job(cluster, manifest) for manifest in read_jobs(access, file, stdin)]


def read_jobs(access: Access, file: str, stdin: str | None = None) -> list[Json]:
    """Return the jobs of a file, as kubectl reads it."""
    words = ("create", "--dry-run=client", "--validate=false", "-o", "json", "-f", file)
    # With -n kubectl rejects a manifest of another namespace, as it does in `apply`.
    chosen = (f"--namespace={access.namespace}",) if access.namespace else ()
    read = kubectl(access, *chosen, *words, stdin=stdin)
    if read.returncode:
        if access.namespace and _OTHER_NAMESPACE in read.stderr:
            raise ConfigError([_another_namespace(access.namespace, read.stderr)])
        raise ConfigError([_unreadable(file, read.stderr)])
    # kubectl prints one document for each object, one after the other.
    found = [each for document in _documents(read.stdout) for each in _flattened(document)]
    jobs = [each for each in found if each.get("kind") in JOB_KINDS]
    if not jobs:
        kinds = ", ".join(sorted({text(each.get("kind")) for each in found})) or "nothing"
        raise ConfigError([_unreadable(file, f"it has {kinds}")])
    return jobs


def check_job(cluster: Cluster, manifest: Json) -> Verdict:
    """Return the verdict on one manifest, in its own namespace or else the cluster's.

    Raises ConfigError with the API server's message if admission rejects it.
    """
    cluster = cluster.within(namespace_of(manifest) or cluster.namespace)
    admitted, warnings = _dry_run(cluster, manifest)
    name = reference_of(admitted)
    said = tuple(f"  warning: {each}" for each in warnings)
    if labels_of(admitted).get(FOLLOWS) != FOLLOWS_VALUE:
        line = f"{name}: admission accepts it, and it does not follow the ladder: no label {FOLLOWS} is set."
        return Verdict(lines=(line, *said), is_good=True)
    policy = cluster.policy_object()
    tiers = tier_facts(policy)
    if policy is None or not tiers:
        line = f"{name}: admission accepts it, but its namespace has no ladder to follow."
        return Verdict(lines=(line, *said), is_good=False)
    start = selected_pool(admitted)
    here = {str(tier.pool): place for place, tier in enumerate(tiers) if not tier.cluster}
    if start is None or start not in here:
        return Verdict(lines=(_off_ladder(name, start, here), *said), is_good=False)
    found = walk_together(job_shapes(admitted), tiers[here[start] :])
    head = f"{name}: admission accepts it, and it starts on {start}."
    return Verdict(
        lines=(head, *said, *map(_step_line, found.steps), f"  {_ENDS[found.outcome]}"),
        is_good=found.outcome not in {Outcome.STUCK, Outcome.FALLS_OFF},
    )


def _off_ladder(name: str, start: str | None, pools: Iterable[str]) -> str:
    """Return the message about an admitted job that is on no tier."""
    return (
        f"{name}: admission accepts it, but does not put it on a tier: its pods select "
        f"{f'the pool {start}' if start else 'no pool, or several'}, and the ladder has {', '.join(pools) or 'none in this cluster'}. "
        f"The fallback controller ignores such a job. Select one of the pools with {POOL}. Without a selector, admission selects the "
        f'first, if the namespace has the label {TRAINING}: "{TRAINING_VALUE}".'
    )


def tier_facts(policy: Json | None) -> tuple[TierFacts, ...]:
    """Return the tiers of a FallbackPolicy with what it says about their pools."""
    tiers = objects(mapping(mapping(policy).get("spec")).get("tiers"))
    return tuple(
        TierFacts(
            number=number,
            pool=text(tier.get("pool")),
            max_failures=count(tier["maxFailures"]) if "maxFailures" in tier else None,
            has_timeout="procurementTimeout" in tier,
            node_pools=_node_pools(tier),
            cluster=text(tier.get("cluster")),
            exported=read_exported(mapping(tier.get("exported"))),
        )
        for number, tier in enumerate(tiers, 1)
    )


def _node_pools(tier: Json) -> tuple[PoolFacts, ...]:
    """Return the pool of a tier; none for a tier in another cluster without facts."""
    if "cluster" in tier and "facts" not in tier:
        return ()
    return (read_pool_facts(text(tier.get("pool")), mapping(tier.get("facts"))),)


def job_shapes(job: Json) -> list[Shape]:
    """Return the shapes of a job's templates that follow the ladder."""
    if text(job.get("kind")) == "RayJob":
        groups = [(each.name, each.pods, each.pod_spec) for each in worker_groups(job) if each.follows]
    else:
        groups = [
            (each.name, each.replicas * each.pods_at_once, each.pod_spec)
            for each in replicated_jobs(job)
            if each.follows
        ]
    return [
        Shape(
            name=name, pods=max(1, pods), requests=_resources(requests_of(spec)), selector=_own_selector(spec)
        )
        for name, pods, spec in groups
    ]


def _own_selector(spec: Json) -> dict[str, str]:
    given = CAPACITY_KEYS | {POOL}
    return {key: text(value) for key, value in selector_of(spec).items() if key not in given}


def _resources(amounts: Mapping[str, str]) -> Resources:
    known = {"cpu", "memory", GPU_RESOURCE, EFA_RESOURCE}
    read = {name: parse_quantity(value) for name, value in amounts.items()}
    return Resources(
        cpu_millis=math.ceil(read.get("cpu", 0) * 1000),
        memory_mib=math.ceil(read.get("memory", 0) / _MIB),
        gpus=int(read.get(GPU_RESOURCE, 0)),
        efa=int(read.get(EFA_RESOURCE, 0)),
        devices={
            name: math.ceil(amount / (_MIB if "storage" in name or "hugepages" in name else 1))
            for name, amount in read.items()
            if name not in known
        },
    )


def _step_line(step: Step) -> str:
    if step.takes_the_job is True:
        return f"  {step.title}: takes it"
    reasons = "; ".join(result.reason for result in step.results)
    verb = "does not take it" if step.failed else "may take it"
    return f"  {step.title}: {verb}: {reasons}"


def _dry_run(cluster: Cluster, manifest: Json) -> tuple[Json, tuple[str, ...]]:
    kind = JOB_KINDS[text(manifest.get("kind"))]
    metadata: Json = {**metadata_of(manifest), "namespace": cluster.namespace}
    job: Json = {**manifest, "metadata": metadata}
    path, query = kind.collection(cluster.namespace), {"dryRun": "All", "fieldValidation": "Strict"}
    try:
        try:
            answer = cluster.send("POST", path, query=query, body=job)
        except ApiError as error:
            if not error.is_conflict:
                raise
            # A job of that name exists: judge the manifest as a new one.
            renamed = {**metadata, "name": f"{name_of(job)[:40]}-check"}
            answer = cluster.send("POST", path, query=query, body={**job, "metadata": renamed})
            renamed_back = {**metadata_of(answer.document), "name": name_of(job)}
            return {**answer.document, "metadata": renamed_back}, answer.warnings
    except ApiError as error:
        raise rejected(error, f"{kind.name.lower()}/{name_of(job)}", "Follow the message.") from error
    return answer.document, answer.warnings


def _documents(printed: str) -> Iterable[Json]:
    decoder, place = json.JSONDecoder(), 0
    while place < len(printed) and printed[place:].strip():
        place += len(printed[place:]) - len(printed[place:].lstrip())
        document, place = decoder.raw_decode(printed, place)
        yield cast("Json", document)


def _flattened(document: Json) -> Iterable[Json]:
    return objects(document.get("items")) if text(document.get("kind")).endswith("List") else (document,)


def _another_namespace(namespace: str, said: str) -> Problem:
    return Problem(
        field="-n",
        value=f'"{namespace}" ({said.strip().removeprefix("error: ")})',
        allowed="the namespace of the manifest",
        fix="Leave -n out: the manifest is judged in its own namespace.",
    )


def _unreadable(file: str, why: str) -> Problem:
    return Problem(
        field="-f",
        value=f'"{file}" ({why.strip().removeprefix("error: ")})',
        allowed="a file with a JobSet or a RayJob, or - for standard input",
        fix="Name such a file.",
    )
