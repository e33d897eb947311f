"""Judges a job before its pods wait for nodes: whether they can be created, and whether they reach on-demand capacity.

What can be created is asked of the API server, by dry runs of the Jobs and pods that the job's operator would create: its own
validation, Pod Security, LimitRanges, quotas, webhooks, service accounts and classes, in its own words. Where the pods can run
is the walk of `scheduling.reachability` along the ladder, with the pods as the API server has admitted them.
The fallback controller and `kubectl holdfast check` judge by this one function.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Final, TypeAlias

from pulumi_holdfast.controller.jobs.child_templates import (
    MOST_JUDGED,
    ChildTemplate,
    child_templates,
    pod_of_job,
)
from pulumi_holdfast.controller.jobs.observation import Judgement
from pulumi_holdfast.controller.jobs.pod_templates import pool_of, with_pool
from pulumi_holdfast.controller.kube.client import JOB, POD, ApiError, Kind
from pulumi_holdfast.controller.kube.objects import annotations_of, labels_of, metadata_of, objects, text
from pulumi_holdfast.ladder.json import UNKNOWN, Json, JsonValue, mapping
from pulumi_holdfast.ladder.labels import (
    CAPACITY_KEYS,
    EXCLUSIVE_TOPOLOGY,
    FOLLOWS,
    GPU_RESOURCE,
    POOL,
    RESERVED_FOR,
    STAYS_VALUE,
)
from pulumi_holdfast.ladder.operators import KEEPING_CLUSTER
from pulumi_holdfast.ladder.quantities import parse_quantity
from pulumi_holdfast.ladder.reachability import messages
from pulumi_holdfast.ladder.reachability.checks import Failed
from pulumi_holdfast.ladder.reachability.facts import AddedToleration, TierFacts
from pulumi_holdfast.ladder.reachability.pod_capacity import check_together
from pulumi_holdfast.ladder.reachability.pod_shape import pod_shape, selects_spot, tolerations_of
from pulumi_holdfast.ladder.reachability.shape import Shape
from pulumi_holdfast.ladder.reachability.walk import Outcome, Walk, check_tier, walk_together
from pulumi_holdfast.ladder.taints import Toleration, untolerated

#: Sends an object to the API server to create it in a dry run, and returns it as admitted. Raises ApiError if it is rejected.
DryRun: TypeAlias = Callable[[Kind, Json], Awaitable[Json]]

#: More templates than this that differ are not asked about: each is at most two requests.
MOST_TEMPLATES: Final = 8
#: A text has at most this many problems: the others of a job are usually the same.
_MOST_PROBLEMS: Final = 3

_QUEUE: Final = "kueue.x-k8s.io/queue-name"
_NO_DRY_RUN: Final = "does not support dry run"
_NO_RIGHT: Final = " cannot create resource "
_ENDS: Final = "because it is being terminated"
_WEBHOOK: Final = "failed calling webhook"
_QUOTA: Final = re.compile(
    r"exceeded quota: (?P<name>\S+), requested: (?P<requested>\S+), used: \S+, limited: (?P<limited>\S+)"
)


class NotAnswered(Exception):  # noqa: N818 - says what is wrong
    """The API server cannot answer now: ask again later."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What is found about a job: the judgement, and its walk down the ladder, None if it could not be walked.

    `is_refused`: the API server refuses an object of it. What is missing now, such as a service account, may be created later.
    """

    judgement: Judgement
    is_refused: bool = False
    walk: Walk | None = None


async def judge(job: Json, tiers: Sequence[TierFacts], dry_run: DryRun | None) -> Verdict:
    """Judge a job that follows a ladder with these tiers; without `dry_run` by the walk alone.

    Raises NotAnswered, and whatever `dry_run` raises but ApiError.
    """
    templates = child_templates(job)
    if not templates:
        return Verdict(judgement=Judgement(problems=tuple(_without_templates(job))))
    asked = _Asked(dry_run)
    pods = [(each, await asked.about(each)) for each in templates]
    shapes = [_shape(each, pod) for each, pod in pods if each.follows]
    following = [each for each in templates if each.follows]
    tiers = [await _with_tolerations(asked, following, shapes, tier) for tier in tiers]
    found = _walk(shapes, following, tiers)
    if len(templates) == MOST_JUDGED:
        asked.not_judged.append(f"the templates after the first {MOST_JUDGED}.")
    stranded = () if found is None else tuple(_stranded(shapes, found, tiers))
    problems = (*asked.problems, *stranded)
    return Verdict(
        judgement=Judgement(problems=problems[:_MOST_PROBLEMS], not_judged=tuple(asked.not_judged)),
        is_refused=bool(asked.problems),
        walk=found,
    )


async def _with_tolerations(
    asked: _Asked, templates: Sequence[ChildTemplate], shapes: Sequence[Shape], tier: TierFacts
) -> TierFacts:
    """Return a tier with the tolerations that admission adds to the job's pods there; without taints if that is not known."""
    given: list[Toleration] = []
    taints = [each for pool in tier.node_pools if pool.taints is not UNKNOWN for each in pool.taints]
    if any(untolerated(taints, shape.tolerations) for shape in shapes):
        for template in templates:
            pod = await asked.on_tier(template, str(tier.pool))
            if pod is None:
                return replace(
                    tier,
                    node_pools=tuple(
                        replace(each, taints=(), added_tolerations=()) for each in tier.node_pools
                    ),
                )
            given += tolerations_of(mapping(pod.get("spec")))
    added = tuple(AddedToleration(toleration=each) for each in given)
    pools = tuple(replace(each, added_tolerations=added) for each in tier.node_pools)
    return replace(tier, node_pools=pools)


def job_shapes(job: Json) -> list[Shape]:
    """Return the shapes of a job's templates that follow the ladder, as the job is written."""
    return [_shape(each, each.pod) for each in child_templates(job) if each.follows]


def _shape(template: ChildTemplate, pod: Json) -> Shape:
    return pod_shape(
        mapping(pod.get("spec")),
        name=template.name,
        pods=template.pods,
        labels=template.labels,
        after=template.after,
        apart_by=template.apart_by,
    )


def _without_templates(job: Json) -> Iterator[str]:
    spec = mapping(job.get("spec"))
    if not spec.get("replicatedJobs") and not spec.get("rayClusterSpec"):
        yield messages.NO_TEMPLATE.sentence


class _Asked:
    """The dry runs of one job; templates that are equal are asked about once."""

    def __init__(self, dry_run: DryRun | None) -> None:
        self._dry_run = dry_run
        self._pods: dict[str, Json] = {}
        self._is_full = False
        self.problems: list[str] = []
        self.not_judged: list[str] = []

    async def about(self, template: ChildTemplate) -> Json:
        """Return a pod of the template, as the API server admits it; as its operator writes it, if that is not known."""
        if self._dry_run is None:
            return template.pod
        key = _text_of(template.source)
        if key in self._pods:
            return self._pods[key]
        if len(self._pods) >= MOST_TEMPLATES:
            if not self._is_full:
                self.not_judged.append(
                    f"the template {template.name} and others: more than {MOST_TEMPLATES}."
                )
            self._is_full = True
            return template.pod
        self._pods[key] = found = await self._admitted(template, self._dry_run)
        return found

    async def on_tier(self, template: ChildTemplate, pool: str) -> Json | None:
        """Return a pod of the template as the API server admits it on another tier; None if that is not known."""
        if self._dry_run is None:
            return None
        key = f"{pool} {_text_of(template.source)}"
        if key not in self._pods and len(self._pods) < 2 * MOST_TEMPLATES:
            spec = with_pool(mapping(template.pod.get("spec")), pool, reserved_for_uid=None)
            try:
                self._pods[key] = await self._dry_run(POD, {**template.pod, "spec": spec})
            except ApiError as error:
                if _is_temporary(error):
                    raise NotAnswered(error.message) from error
        return self._pods.get(key)

    async def _admitted(self, template: ChildTemplate, dry_run: DryRun) -> Json:
        pod = template.pod
        if template.job is not None:
            problems = len(self.problems)
            job = await self._create(JOB, template.job, f"the Job of {template.name}", dry_run)
            if len(self.problems) > problems:
                return pod
            pod = pod if job is None else pod_of_job(job)
        return await self._create(POD, pod, f"a pod of {template.name}", dry_run) or pod

    async def _create(self, kind: Kind, obj: Json, title: str, dry_run: DryRun) -> Json | None:
        try:
            return await dry_run(kind, obj)
        except ApiError as error:
            said = error.message or error.reason
            if error.is_conflict:  # it exists, so it could be created
                return None
            if _is_temporary(error):
                raise NotAnswered(said) from error
            if _NO_DRY_RUN in said or _NO_RIGHT in said or error.is_missing or _is_full(said):
                self.not_judged.append(f"{title}: {said}.")
            else:
                self.problems.append(f"The API server refuses {title}: {said.rstrip('.')}.")
            return None


def _is_temporary(error: ApiError) -> bool:
    return (
        error.is_overload
        or error.status == _UNAUTHORIZED
        or _ENDS in error.message
        or _WEBHOOK in error.message
    )


_UNAUTHORIZED: Final = 401


def _is_full(said: str) -> bool:
    """Whether a quota is used up now, and would have room for the object when it is empty."""
    found = _QUOTA.search(said)
    if found is None:
        return False
    requested, limited = (_amounts(found[name]) for name in ("requested", "limited"))
    return all(
        parse_quantity(amount) <= parse_quantity(limited.get(key)) for key, amount in requested.items()
    )


def _amounts(written: str) -> Mapping[str, str]:
    pairs = (each.partition("=") for each in written.split(","))
    return {key: amount for key, _, amount in pairs}


def _walk(
    shapes: Sequence[Shape], templates: Sequence[ChildTemplate], tiers: Sequence[TierFacts]
) -> Walk | None:
    """Walk the ladder from the tier that the templates select; None if they are on no tier."""
    start = pool_of(mapping(each.pod.get("spec")) for each in templates)
    places = [place for place, tier in enumerate(tiers) if tier.pool == start and not tier.cluster]
    return walk_together(shapes, tiers[places[0] :]) if shapes and places else None


def _stranded(shapes: Sequence[Shape], found: Walk, tiers: Sequence[TierFacts]) -> Iterator[str]:
    """Yield why a job does not reach on-demand capacity, one sentence for each template."""
    if found.outcome not in {Outcome.STUCK, Outcome.FALLS_OFF}:
        return
    step = found.steps[-1]
    is_last = step.tier is tiers[-1]
    checked = [(each.title, [*check_tier(each, step.tier, is_last=is_last)]) for each in shapes]
    if len(step.tier.node_pools) == 1:
        checked.append((messages.THE_JOB, [*check_together(shapes, step.tier.node_pools[0])]))
    for who, results in checked:
        reasons = [f"{each.reason}. {each.fix}".strip() for each in results if isinstance(each, Failed)]
        if reasons:
            why = " ".join(reasons if is_last else [*reasons, messages.NO_WAY_PAST])
            yield messages.CANNOT_FALL_BACK.format(who=who, where=step.title, why=why)


def left_on_spot(job: Json, tiers: Sequence[TierFacts]) -> str:
    """Return why nothing moves a job to on-demand that selects spot and does not follow the ladder; empty for any other job."""
    labels = labels_of(job)
    if text(labels.get(FOLLOWS)) == STAYS_VALUE or text(labels.get(_QUEUE)):
        return ""
    if text(job.get("kind")) == "JobSet":
        for problem in _without_templates(job):
            return problem
    on_spot = [each for each in child_templates(job) if selects_spot(mapping(each.pod.get("spec")))]
    if not on_spot:
        return ""
    pools = ", ".join(str(tier.pool) for tier in tiers) or "no tier"
    why, fix = _why_not(job, on_spot, tiers)
    return f"{messages.NOT_FOLLOWING.reason.format(pools=pools, why=why)}. {fix}"


def _why_not(job: Json, on_spot: Sequence[ChildTemplate], tiers: Sequence[TierFacts]) -> tuple[str, str]:
    """Return why a job does not follow, and the fix."""
    spec = mapping(job.get("spec"))
    for field in KEEPING_CLUSTER:
        *above, last = field.path
        value = reduce(lambda found, step: mapping(found.get(step)), above, spec).get(last)
        if value and field.value in (None, value):
            reason, fix = messages.CANNOT_STOP.reason, messages.CANNOT_STOP.fix
            return reason.format(field=field.title), fix.format(field=field.title)
    if text(job.get("kind")) == "RayJob" and all(each.name in {"head", "submitter"} for each in on_spot):
        return messages.ONLY_THE_HEAD.reason, messages.ONLY_THE_HEAD.fix
    wants = any(_requests_gpus(each) for each in on_spot)
    why = messages.NO_GPUS_ON_LADDER if wants else messages.ONLY_GPUS_ON_LADDER
    return messages.NOT_MARKED if wants == _has_gpus(tiers) else why, messages.NOT_FOLLOWING.fix


def _requests_gpus(template: ChildTemplate) -> bool:
    return any(
        GPU_RESOURCE in mapping(mapping(each.get("resources")).get(kind))
        for each in objects(mapping(template.pod.get("spec")).get("containers"))
        for kind in ("requests", "limits")
    )


def _has_gpus(tiers: Iterable[TierFacts]) -> bool:
    machines = [each.machines for tier in tiers for each in tier.node_pools]
    return any(one.capacity.gpus for each in machines if isinstance(each, tuple) for one in each)


def digest_of(job: Json, tiers: str) -> str:
    """Return what identifies a judgement: what it reads of the job, and `tiers`, what identifies those of the ladder.

    What a suspension or a move changes of the job is left out.
    """
    metadata, spec = metadata_of(job), mapping(job.get("spec"))
    annotations = annotations_of(job)
    read: list[JsonValue] = [
        text(metadata.get("uid")),
        text(labels_of(job).get(FOLLOWS)),
        annotations.get(EXCLUSIVE_TOPOLOGY),
        _without_moves({key: value for key, value in spec.items() if key != "suspend"}),
        tiers,
    ]
    return hashlib.sha256(_text_of(read).encode()).hexdigest()


def _without_moves(value: JsonValue) -> JsonValue:
    if isinstance(value, Mapping):
        return {
            key: _without_moves(each)
            for key, each in value.items()
            if key not in {POOL, *CAPACITY_KEYS} and not (key == "tolerations" and not _own(each))
        }
    if isinstance(value, list):
        return [_without_moves(each) for each in value if mapping(each).get("key") != RESERVED_FOR]
    return value


def _own(tolerations: JsonValue) -> bool:
    return any(each.get("key") != RESERVED_FOR for each in objects(tolerations))


def _text_of(value: JsonValue) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
