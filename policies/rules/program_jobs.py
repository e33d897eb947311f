"""Jobs that a program creates itself are judged like shapes: JobSets and RayJobs by their walk down the ladder."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.ladder.labels import FOLLOWS, FOLLOWS_VALUE, POOL
from pulumi_holdfast.ladder.reachability import messages
from pulumi_holdfast.ladder.reachability.checks import Failed, check_pool
from pulumi_holdfast.ladder.reachability.elsewhere import check_images, check_job_elsewhere
from pulumi_holdfast.ladder.reachability.facts import Exported
from pulumi_holdfast.ladder.reachability.shape import Shape
from pulumi_holdfast.ladder.reachability.walk import walk_together
from pulumi_holdfast.program.definitions import refusals
from pulumi_holdfast.program.fields import unread
from pulumi_holdfast.program.jobs.job_ends import (
    MUTATING,
    VALIDATING,
    below_a_restart,
    failure_policy_replaced,
    has_admission,
    stopped,
    within_max_cost,
)
from pulumi_holdfast.program.jobs.jobs import JobKind, jobs_on, unreadable
from pulumi_holdfast.program.jobs.pod_templates import SPOT_SELECTIONS
from pulumi_holdfast.program.resources import at
from pulumi_holdfast.program.settings import MADE_ELSEWHERE, Elsewhere

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pulumi_holdfast.ladder.reachability.facts import PoolFacts, TierFacts
    from pulumi_holdfast.ladder.reachability.walk import Walk
    from pulumi_holdfast.program.jobs.jobs import DeclaredJob
    from pulumi_holdfast.program.jobs.pod_templates import PodTemplate
    from pulumi_holdfast.program.namespaces.ladder_pools import LadderPools
    from pulumi_holdfast.program.namespaces.ladders import DeclaredLadder
    from pulumi_holdfast.program.resources import StackResource, Value

QUEUED: Final = (
    "another controller, such as Kueue, decides when and where its pods run, so the ladder does not move it"
)
_KEPT_OFF: Final = "its label {key}: {value!r} keeps it off the ladder: nothing moves it, and whether its pods run is not checked."
_LATER: Final = "is known only after the update, which checks it again"
_START_UNKNOWN: Final = (
    f"on which tier it starts {_LATER}: it starts on the first, and which pool that names is not known yet"
)
_IGNORED: Final = (
    "{why}. The fallback controller ignores such a job, so nothing moves it; whether the cluster has Holdfast's admission, which "
    "rejects it, is not known, because this program does not make it"
)


@dataclass(frozen=True, kw_only=True)
class JobVerdict:
    """What is found about a job of the program.

    `walk` is its way down the ladder, None if it has none or it is not known; `broken` is why it cannot follow its ladder
    whatever the pools are, `open` why it is not judged, `assumed` what its arrival takes for granted, `elsewhere` what is not
    judged of it on tiers in other clusters, `note` what is said about it beside.
    """

    job: DeclaredJob
    shapes: tuple[Shape, ...] = ()
    walk: Walk | None = None
    broken: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    note: str = ""

    @property
    def title(self) -> str:
        """The job in a message, with its shape if it has one."""
        return f"{self.job.title}, {self.shapes[0].title}" if len(self.shapes) == 1 else self.job.title


def job_verdicts(
    ladder: DeclaredLadder, pools: LadderPools, resources: Sequence[StackResource]
) -> Iterator[JobVerdict]:
    """Yield what is found about each job in the namespace of a ladder that runs on one of its tiers."""
    for job in jobs_on(ladder, resources):
        refused = refusals(job.resource)
        if refused:
            yield JobVerdict(job=job, broken=refused)
            continue
        if isinstance(job.label, str) and job.label not in {"", FOLLOWS_VALUE}:
            yield JobVerdict(job=job, note=_KEPT_OFF.format(key=FOLLOWS, value=job.label))
            continue
        if job.is_queued:
            yield JobVerdict(job=job, open=(QUEUED,))
            continue
        if job.is_empty:
            yield JobVerdict(job=job, broken=(messages.NO_TEMPLATE.sentence,))
            continue
        if _may_follow(job, ladder):
            yield JobVerdict(job=job, open=(f"whether it follows the ladder {_LATER}",))
            continue
        names = ladder.pools
        followers = job.followers(names) if ladder.own_pools else ()
        if not followers:
            yield from _without_followers(job, ladder, pools, resources)
            continue
        if not _is_suited(job, followers, ladder, pools):
            yield JobVerdict(job=job, note=_not_following(followers, names))
            continue
        found = _of_followers(job, followers, ladder, pools)
        replaced = failure_policy_replaced(job.resource, _failures(ladder), resources)
        policy = tuple(replaced) if job.kind == JobKind.JOB_SET else ()
        is_adjusted = has_admission(MUTATING, job.resource, resources)
        affinity = () if is_adjusted else _affinity_to_spot(followers)
        yield replace(
            found, assumed=(*policy, *within_max_cost(job.resource), *_heads_on_spot(job), *affinity)
        )


def _may_follow(job: DeclaredJob, ladder: DeclaredLadder) -> bool:
    """Whether only the update knows which of its templates follow the ladder."""
    if ladder.tiers is UNKNOWN or job.templates is UNKNOWN or job.label is UNKNOWN:
        return True
    elsewhere = (each.selected(POOL) not in (None, *ladder.pools) for each in job.templates)
    return UNKNOWN in ladder.own_pools and any(elsewhere)


def _without_followers(
    job: DeclaredJob, ladder: DeclaredLadder, pools: LadderPools, resources: Sequence[StackResource]
) -> Iterator[JobVerdict]:
    """Yield what is found about a job without templates that follow; with the label to follow, admission rejects it."""
    templates = () if job.templates is UNKNOWN else job.templates
    nothing_follows = messages.NOTHING_FOLLOWS.filled(pools=", ".join(ladder.pools))
    if job.label != FOLLOWS_VALUE or not ladder.own_pools:
        left = tuple(_left_where_it_is(job))
        yield from (JobVerdict(job=job, note=each) for each in left)
        if not left:
            yield from _not_on_ladder(job, pools)
    elif any(each.selected(key) is UNKNOWN for each in templates for key in SPOT_SELECTIONS):
        yield JobVerdict(job=job, open=(f"whether it follows the ladder {_LATER}",))
    elif has_admission(VALIDATING, job.resource, resources):
        yield JobVerdict(job=job, broken=(nothing_follows.sentence,))
    else:
        yield JobVerdict(job=job, open=(_IGNORED.format(why=nothing_follows.reason),))


def _left_where_it_is(job: DeclaredJob) -> Iterator[str]:
    """Yield why no move ever changes a RayJob without workers that follow: it runs on a cluster of others, or its head is on spot."""
    if at(job.resource.props, "spec", "clusterSelector"):
        yield messages.CANNOT_STOP.sentence.format(field="clusterSelector")
    elif any(each.selects_spot for each in job.heads):
        yield f"nothing moves it to on-demand: {messages.ONLY_THE_HEAD.sentence}"


def _heads_on_spot(job: DeclaredJob) -> Iterator[str]:
    """Yield that admission removes the spot selector from the head and the submitter of a RayJob: no move changes it."""
    for each in job.heads:
        if each.selects_spot:
            yield f"admission removes the spot selector from its {each.name}, which no move changes"


def _affinity_to_spot(followers: Sequence[PodTemplate]) -> Iterator[str]:
    """Yield that admission removes the affinity to spot from pods that follow: a move changes their node selector only."""
    for each in followers:
        if each.has_spot_affinity:
            yield f"admission removes the required affinity to spot from its {each.name}, which no move changes"


def _of_followers(
    job: DeclaredJob, followers: Sequence[PodTemplate], ladder: DeclaredLadder, pools: LadderPools
) -> JobVerdict:
    unknown = tuple(f"{part} {_LATER}" for part in unreadable(followers))
    alone = (
        *unread(job.resource),
        *stopped(job.resource),
        *_of_helpers(job, ladder),
        *_without_nodes(job, ladder, pools),
        *below_a_restart(job.resource, ladder.resource, _on_demand(ladder, pools)),
    )
    shapes = tuple(
        replace(shape, unmodeled=(*shape.unmodeled, *alone))
        for each in followers
        if isinstance(shape := each.shape, Shape) and shape.pods
    )
    start = job.start(ladder.own_pools)
    tiers = [*pools.tiers(ladder)]
    if start is UNKNOWN:
        unknown, tiers = (*unknown, _START_UNKNOWN), []
    tiers = tiers[next((at for at, tier in enumerate(tiers) if tier.pool == start and not tier.cluster), 0) :]
    return JobVerdict(
        job=job,
        shapes=shapes,
        walk=walk_together(shapes, tiers) if shapes and not unknown else None,
        broken=tuple(
            messages.PINNED.sentence.format(name=each.name, keys=", ".join(each.pinned_by))
            for each in followers
            if each.pinned_by
        )
        + tuple(_unpullable(job, tiers))
        + job.rejected,
        open=unknown,
        elsewhere=tuple(_unknown_elsewhere(job, tiers)),
    )


def _on_demand(ladder: DeclaredLadder, pools: LadderPools) -> Sequence[Value]:
    """Return the tiers of a ladder that may be on-demand, as they are declared."""
    return [
        tier.declared
        for tier in (() if ladder.tiers is UNKNOWN else ladder.tiers)
        if not isinstance(tier.pool, str)
        or tier.is_elsewhere
        or not (named := pools.named(tier.pool))
        or any(each.facts.is_on_demand is not False for each in named)
    ]


def _unknown_elsewhere(job: DeclaredJob, tiers: Sequence[TierFacts]) -> Iterator[str]:
    """Yield what is not known of a job's images and volumes on each tier in another cluster."""
    images = [image for each in job.all_templates for image in each.images]
    volumes = [volume for each in job.all_templates for volume in each.volumes_of_cluster]
    for tier in tiers:
        for result in check_job_elsewhere(tier, images, volumes) if tier.cluster else ():
            yield f"{messages.tier_title(tier.number, str(tier.pool), tier.cluster)}: {result.reason}"


def _unpullable(job: DeclaredJob, tiers: Sequence[TierFacts]) -> Iterator[str]:
    """Yield the images that nodes of a tier in another cluster cannot pull."""
    images = [image for each in job.all_templates for image in each.images]
    for tier in tiers:
        for result in check_images(tier.exported, images) if isinstance(tier.exported, Exported) else ():
            if isinstance(result, Failed):
                yield f"{messages.tier_title(tier.number, str(tier.pool), tier.cluster)}: {result.reason}. {result.fix}"


def _failures(ladder: DeclaredLadder) -> int:
    """Return how many failures a ladder counts before its last tier; 0 if it does not count them, or not everywhere."""
    counts = [] if ladder.tiers is UNKNOWN else [each.max_failures for each in ladder.tiers[:-1]]
    known = [each for each in counts if isinstance(each, int) and each >= 0]
    return sum(known) if len(known) == len(counts) else 0


def _not_on_ladder(job: DeclaredJob, pools: LadderPools) -> Iterator[JobVerdict]:
    """Yield that no pool of the program takes pods of a job that follows no ladder, or that only spot takes them."""
    if not _are_all_shown(pools) or job.templates is UNKNOWN:
        return
    for each in job.templates:
        placed = each.written
        if placed is UNKNOWN or not (placed.selector or placed.affinity):
            continue
        selected = placed.selector.get(POOL)
        # A pool of another ladder, or of none, is selected on purpose.
        if selected is not None and (pools.named(selected) or selected in pools.on_demand_elsewhere):
            continue
        taking = [pool.facts for pool in pools.of_stack if _may_take(placed, pool.facts)]
        labels = ", ".join(sorted({*placed.selector, *(one.key for term in placed.affinity for one in term)}))
        if not taking:
            yield JobVerdict(
                job=job,
                open=(f"no pool of this program takes its pods {each.name!r}, which select {labels}",),
            )
        elif all(pool.is_on_demand is False for pool in taking):
            yield JobVerdict(
                job=job,
                note=f"its pods {each.name!r} select {labels}, and stay on spot: it does not follow the ladder.",
            )


def _are_all_shown(pools: LadderPools) -> bool:
    """Whether the program shows all pools that pods may run on."""
    shown = bool(pools.of_stack) and not pools.unplaced and not pools.unshown
    return shown and not pools.default_elsewhere and not pools.others_elsewhere


def _of_helpers(job: DeclaredJob, ladder: DeclaredLadder) -> Iterator[str]:
    """Yield what is not judged of the pods beside those that follow."""
    for each in job.helpers(ladder.pools):
        if each.shape is UNKNOWN:
            yield f"a value of its template {each.name!r} {_LATER}"
        for reason in each.shape.unmodeled if isinstance(each.shape, Shape) else ():
            yield f"of its pod {each.name!r}: {reason}"


def _without_nodes(job: DeclaredJob, ladder: DeclaredLadder, pools: LadderPools) -> Iterator[str]:
    """Yield the pods beside those that follow which no pool of the program takes, and without which the job does not begin."""
    if not _are_all_shown(pools):
        return
    for each in job.helpers(ladder.pools):
        placed = each.written
        if placed is UNKNOWN:
            continue
        taking = [pool.facts for pool in pools.of_stack if _may_take(placed, pool.facts)]
        if taking and all(pool.is_on_demand is False for pool in taking):
            yield f"only spot takes its pod {each.name!r}, without which it does not begin"
        elif not taking:
            yield (
                f"no pool of this program takes its pod {each.name!r} of {placed.requests}, without which it does not begin: add one, "
                f"or declare `{MADE_ELSEWHERE}: [{Elsewhere.DEFAULT_POOL.value}]`"
            )


def _may_take(shape: Shape, pool: PoolFacts) -> bool:
    return not any(isinstance(each, Failed) for each in check_pool(shape, pool))


def _is_suited(
    job: DeclaredJob, followers: Sequence[PodTemplate], ladder: DeclaredLadder, pools: LadderPools
) -> bool:
    """Whether admission lets a job without the label follow: it requests GPUs if the ladder's machines have some."""
    machines = [
        each
        for name in ladder.pools
        for pool in pools.named(name)
        if pool.facts.machines is not UNKNOWN
        for each in pool.facts.machines
    ]
    if job.label or not machines:
        return True
    wants = any(each.requests is not UNKNOWN and each.requests.gpus for each in followers)
    return wants == any(machine.capacity.gpus for machine in machines)


def _not_following(followers: Sequence[PodTemplate], names: Sequence[str]) -> str:
    wants = any(each.requests is not UNKNOWN and each.requests.gpus for each in followers)
    why = messages.NO_GPUS_ON_LADDER if wants else messages.ONLY_GPUS_ON_LADDER
    return messages.NOT_FOLLOWING.sentence.format(pools=", ".join(names), why=why)
