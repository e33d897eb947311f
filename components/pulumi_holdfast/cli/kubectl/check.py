"""Reports whether admission accepts a manifest, whether its pods can be created, and which tiers of its ladder it can reach.

The API server checks the manifest in a dry run, with all policies and webhooks. The rest is the judgement that the fallback
controller makes of the job when it sees it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, cast

from pulumi_holdfast.cli.kubectl.cluster import JOB_KINDS, Cluster, rejected
from pulumi_holdfast.cli.kubectl.connection import Access, kubectl
from pulumi_holdfast.cli.kubectl.job_view import reference_of, selected_pool
from pulumi_holdfast.controller.jobs.judgement import NotAnswered, judge, left_on_spot
from pulumi_holdfast.controller.jobs.judgement import Verdict as Judged
from pulumi_holdfast.controller.kube.client import ApiError, Kind
from pulumi_holdfast.controller.kube.objects import (
    labels_of,
    metadata_of,
    name_of,
    namespace_of,
    objects,
    text,
)
from pulumi_holdfast.ladder.errors import ConfigError, Problem
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import FOLLOWS, FOLLOWS_VALUE, POOL, TRAINING, TRAINING_VALUE
from pulumi_holdfast.ladder.reachability.facts import TierFacts, read_tiers
from pulumi_holdfast.ladder.reachability.walk import Outcome, Step

_FORBIDDEN: Final = 403
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
    policy = cluster.policy_object()
    tiers = read_tiers(policy or {})
    if labels_of(admitted).get(FOLLOWS) != FOLLOWS_VALUE:
        why = left_on_spot(admitted, tiers) if policy else ""
        line = f"{name}: admission accepts it, and it does not follow the ladder: no label {FOLLOWS} is set."
        return Verdict(lines=(line, *said, *([f"  {why}"] if why else [])), is_good=not why)
    if policy is None or not tiers:
        line = f"{name}: admission accepts it, but its namespace has no ladder to follow."
        return Verdict(lines=(line, *said), is_good=False)
    start = selected_pool(admitted)
    here = [str(tier.pool) for tier in tiers if not tier.cluster]
    if start is None or start not in here:
        return Verdict(lines=(_off_ladder(name, start, here), *said), is_good=False)
    found = asyncio.run(_judged(cluster, admitted, tiers))
    steps = () if found.walk is None else found.walk.steps
    end = () if found.walk is None else (f"  {_ENDS[found.walk.outcome]}",)
    judgement = found.judgement
    return Verdict(
        lines=(
            f"{name}: admission accepts it, and it starts on {start}.",
            *said,
            *map(_step_line, steps),
            *end,
            *(f"  {each}" for each in judgement.problems),
            *(f"  not judged: {each}" for each in judgement.not_judged),
        ),
        is_good=not judgement.problems,
    )


async def _judged(cluster: Cluster, job: Json, tiers: Sequence[TierFacts]) -> Judged:
    """Return what the fallback controller will find, by the user's own rights."""

    async def dry_run(kind: Kind, made: Json) -> Json:
        path = kind.collection(cluster.namespace)
        try:
            return cluster.send("POST", path, query={"dryRun": "All"}, body=made).document
        except ConfigError as error:
            # Of the user's rights: what they may not create is not judged.
            raise ApiError(_FORBIDDEN, "Forbidden", error.problems[0].value) from error

    try:
        return await judge(job, tiers, dry_run)
    except NotAnswered as error:
        found = await judge(job, tiers, None)
        asked = f"whether its pods can be created, because the API server does not answer ({error})."
        return replace(found, judgement=replace(found.judgement, not_judged=(asked,)))


def _off_ladder(name: str, start: str | None, pools: Iterable[str]) -> str:
    """Return the message about an admitted job that is on no tier."""
    return (
        f"{name}: admission accepts it, but does not put it on a tier: its pods select "
        f"{f'the pool {start}' if start else 'no pool, or several'}, and the ladder has {', '.join(pools) or 'none in this cluster'}. "
        f"The fallback controller ignores such a job. Select one of the pools with {POOL}. Without a selector, admission selects the "
        f'first, if the namespace has the label {TRAINING}: "{TRAINING_VALUE}".'
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
