"""Reports for each training namespace what is proved, broken, assumed and not judged: its ladder, each tier and each shape.

Passes are reported, too: otherwise a run in which nothing was judged would look like a proof.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.ladder.labels import TRAINING_VALUE
from pulumi_holdfast.ladder.ladder import UNLIMITED
from pulumi_holdfast.ladder.reachability import messages
from pulumi_holdfast.ladder.reachability.checks import CheckResult, Failed, Undetermined
from pulumi_holdfast.ladder.reachability.elsewhere import IMAGES_ASSUMED, check_checkpoints, check_elsewhere
from pulumi_holdfast.ladder.reachability.facts import Exported, TierFacts
from pulumi_holdfast.ladder.reachability.machine_capacity import Provisioner
from pulumi_holdfast.ladder.reachability.walk import Outcome, Step, Walk
from pulumi_holdfast.ladder.windows import CapacityWindow, format_time
from pulumi_holdfast.program.namespaces.ladder_pools import LadderPools
from pulumi_holdfast.program.namespaces.ladders import (
    DeclaredLadder,
    DeclaredTier,
    TrainingNamespace,
    candidates,
    first_tier_pools,
    ladders_of,
    shapes_of,
    training_namespaces,
)
from pulumi_holdfast.program.pools.all_pools import DeclaredPool, all_pools
from pulumi_holdfast.program.pools.differences import differences
from pulumi_holdfast.program.pools.eks import NODE_GROUP, is_fixed
from pulumi_holdfast.program.resources import StackResource, unshown_components
from pulumi_holdfast.program.settings import Settings
from rule import PACK_SETTINGS, Finding, Level, Rule, RuleSeverity
from rules import accelerators, aks_scaling, quotas
from rules.ladder_end import KNOWN_LATER, fault_at_end, tier_title, waits_indefinitely, without_label
from rules.program_jobs import JobVerdict, job_verdicts
from rules.reachability import kind_and_name, refused_objects, walks


class Word(StrEnum):
    """The verdicts on a namespace, a ladder, a tier or a shape, best first."""

    PROVED = "proved"
    ASSUMED = "assumed"
    NOT_JUDGED = "not judged"
    BROKEN = "broken"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A word about one thing: what proves it, which check breaks it, what is taken for granted, or what is unknown."""

    about: str
    word: Word
    reason: str

    def __str__(self) -> str:
        """The line of a report."""
        return f"{self.about}: {self.word}, {self.reason}"


@dataclass(frozen=True, kw_only=True)
class NamespaceVerdict:
    """The verdict on a namespace: the worst of its parts. `scaled_by` are the autoscalers that add nodes to the pools of its ladders."""

    namespace: TrainingNamespace
    parts: tuple[Verdict, ...]
    scaled_by: tuple[str, ...] = ()

    @property
    def word(self) -> Word:
        """The worst word of its parts."""
        return max((part.word for part in self.parts), key=list(Word).index)

    def __str__(self) -> str:
        """The report: one line for the namespace, and one for each part."""
        lines = "".join(f"\n  {part}" for part in self.parts)
        return f"{self.namespace.title}: {self.word}{lines}\n  {_granted(self.scaled_by)}"


#: What no verdict checks, because only a running cluster and the account decide it.
_GRANTED: Final = (
    "taken for granted: the account's quotas and capacity of the on-demand market; that machines join the cluster (roles, routes, "
    "firewalls, addresses); that the API server accepts the objects and admits the pods (Pod Security, quotas of other resources, LimitRanges, webhooks, service accounts, classes, volumes); and that "
    "{operators}JobSet, KubeRay, Holdfast's admission and the fallback controller run."
)


def _granted(scaled_by: Sequence[str]) -> str:
    return _GRANTED.format(operators="".join(f"{each}, " for each in scaled_by or ["the node provisioner"]))


UNSHOWN: Final = (
    "not judged: this preview does not show the objects of {name!r}, because the configuration of its provider is unknown. "
    "The update shows and judges them. To judge them before, make them as CustomResources."
)
_DIRECTORY: Final = "file:"
_LATER: Final = "the update will know it and judge again"
_NEVER: Final = "the update will not know it either"
#: Those that are not Karpenter, which itself has confirmed verdicts, are modeled from their documentation.
_MODELED: Final = {
    Provisioner.GKE: "GKE's cluster autoscaler (modeled from its documentation)",
    Provisioner.AKS: "AKS' cluster autoscaler (modeled from its documentation)",
}


#: Rules that are not about a walk down a ladder, but whose violations keep jobs from falling back.
_OTHERS: Final = {"accelerators": accelerators.RULE, "autoscaling": aks_scaling.RULE}


def verdicts(resources: Sequence[StackResource], settings: Settings) -> tuple[NamespaceVerdict, ...]:
    """Return the verdict on each training namespace of the stack."""
    others = [
        (finding.urn, Verdict(about=what, word=Word.BROKEN, reason=finding.message.rstrip(".")))
        for what, rule in _OTHERS.items()
        for finding in rule.find(resources, settings)
        if finding.proven
    ]
    others += [
        (
            problem.urn,
            Verdict(
                about="quota",
                word=Word.BROKEN if problem.strands is True else Word.NOT_JUDGED,
                reason=problem.message.rstrip("."),
            ),
        )
        for problem in quotas.quota_problems(resources)
        if problem.strands is not False
    ]
    return tuple(
        NamespaceVerdict(
            namespace=namespace,
            parts=tuple(_parts(namespace, resources, settings, others)),
            scaled_by=_autoscalers(namespace, resources, settings),
        )
        for namespace in training_namespaces(resources)
    )


def _parts(
    namespace: TrainingNamespace,
    resources: Sequence[StackResource],
    settings: Settings,
    others: Sequence[tuple[str, Verdict]],
) -> Iterator[Verdict]:
    """Yield the verdicts on a namespace; `others` are what other rules prove, with the resource that it is about."""
    if not namespace.proven:
        yield Verdict(
            about="label", word=Word.NOT_JUDGED, reason=f"whether it is for training is unknown: {_LATER}"
        )
    if namespace.label != TRAINING_VALUE:
        word = Word.NOT_JUDGED if namespace.label is None else Word.BROKEN
        yield Verdict(about="label", word=word, reason=without_label(namespace))
    ladders = candidates(namespace, resources)
    if not ladders.certain:
        later = ladders.possible or unshown_components(resources)
        word = Word.NOT_JUDGED if later else Word.BROKEN
        reason = f"which one it has is unknown: {_LATER}" if later else "it has none"
        yield Verdict(about="ladder", word=word, reason=reason)
    for ladder in ladders.certain:
        pools = LadderPools.of(ladder, resources, settings)
        yield from _of_ladder(ladder, pools)
        for refused, reason in refused_objects(namespace, ladder, pools):
            yield Verdict(about=kind_and_name(refused), word=Word.BROKEN, reason=reason)
        for job in job_verdicts(ladder, pools, resources):
            yield _of_job(job, ladder, pools)
            if job.elsewhere:
                yield Verdict(
                    about=f"{job.job.title} elsewhere",
                    word=Word.NOT_JUDGED,
                    reason=f"{'; '.join(job.elsewhere)}: {_NEVER}",
                )
        about = {namespace.resource.urn, ladder.resource.urn}
        about |= {pool.resource.urn for name in ladder.pools for pool in pools.named(name)}
        yield from (verdict for urn, verdict in others if urn in about)


def _autoscalers(
    namespace: TrainingNamespace, resources: Sequence[StackResource], settings: Settings
) -> tuple[str, ...]:
    """Return what adds nodes to the pools of a namespace's ladders, as a report names it."""
    found: dict[str, None] = {}
    for ladder in candidates(namespace, resources).certain:
        pools = LadderPools.of(ladder, resources, settings)
        for pool in (each for name in ladder.pools for each in pools.named(name)):
            is_group = pool.resource.type == NODE_GROUP
            if not is_group or not is_fixed(pool.resource):
                found[
                    "a cluster autoscaler of the node groups"
                    if is_group
                    else _MODELED.get(pool.provisioner, "Karpenter")
                ] = None
    return tuple(found)


def _of_ladder(ladder: DeclaredLadder, pools: LadderPools) -> Iterator[Verdict]:
    yield _of_end(ladder, pools)
    tiers = () if ladder.tiers is UNKNOWN else ladder.tiers
    walked = tuple(walks(ladder, pools))
    for number, tier in enumerate(tiers, start=1):
        is_last = number == len(tiers)
        if tier.is_elsewhere:
            steps = [step for found in walked for step in found.steps if step.tier.number == number]
            yield _of_tier_elsewhere(number, tier, pools, steps, is_last=is_last)
        else:
            yield _of_tier(number, tier, pools, is_last=is_last)
    endless = [number for number, tier in enumerate(tiers[:-1], start=1) if waits_indefinitely(tier, pools)]
    for found in walked:
        yield _of_walk(found, ladder, pools, endless)
    if shapes_of(ladder, first_tier_pools(ladder, pools.of_stack)) is UNKNOWN:
        yield Verdict(about="other shapes", word=Word.NOT_JUDGED, reason=f"some values are unknown: {_LATER}")


def _of_end(ladder: DeclaredLadder, pools: LadderPools) -> Verdict:
    fault = fault_at_end(ladder, pools)
    last = ladder.tiers[-1] if ladder.tiers is not UNKNOWN and ladder.tiers else None
    if fault is not None:
        later = _LATER if KNOWN_LATER in fault.message else _NEVER
        word = Word.BROKEN if fault.proven else Word.NOT_JUDGED
        reason = fault.message if fault.proven else f"{fault.message.replace(f' {KNOWN_LATER}', '')}: {later}"
    elif last is None or not isinstance(last.pool, str) or not pools.named(last.pool):
        word, reason = Word.ASSUMED, "another program makes the on-demand pool that it ends on"
    elif any(each.facts.is_on_demand is not True for each in pools.named(last.pool)):
        word, reason = Word.ASSUMED, f"`maxFailures: {UNLIMITED}` declares that its jobs stay there"
    else:
        word, reason = Word.PROVED, f"it ends on on-demand pool {last.pool!r}"
    return Verdict(about="ladder", word=word, reason=reason)


def _of_tier(number: int, tier: DeclaredTier, pools: LadderPools, *, is_last: bool) -> Verdict:
    named = pools.named(tier.pool) if isinstance(tier.pool, str) else ()
    if not is_last and waits_indefinitely(tier, pools):
        word, reason = (
            Word.BROKEN,
            "without procurementTimeout a job waits for a sold-out market indefinitely",
        )
    elif tier.pool is UNKNOWN:
        word, reason = Word.NOT_JUDGED, f"which pool it names is unknown: {_LATER}"
    elif (not named and tier.pool in pools.on_demand_elsewhere) or (not named and pools.others_elsewhere):
        word, reason = Word.ASSUMED, "another program makes the pool"
    elif not named and (
        pools.with_unknown_label() or (tier.pool is not None and pools.may_be_elsewhere(tier.pool))
    ):
        later = _LATER if pools.with_unknown_label() or pools.unshown else _NEVER
        here = f" (this program makes: {pools.names() or 'none'})"
        word, reason = Word.NOT_JUDGED, f"whether the pool exists is unknown{here}: {later}"
    elif not named:
        word, reason = Word.BROKEN, "this program makes no such pool"
    elif (timed := _of_window(tier.window, datetime.now(UTC))) is not None:
        word, reason = timed
    elif is_last:
        word, reason = Word.PROVED, f"made by {named[0].title}"
    elif tier.has_timeout is UNKNOWN:
        word, reason = Word.NOT_JUDGED, f"whether it has a procurementTimeout is unknown: {_LATER}"
    elif tier.has_timeout:
        word, reason = Word.PROVED, "procurementTimeout ends the wait for its capacity"
    else:
        word, reason = Word.PROVED, f"made by {named[0].title}, which is on-demand"
    return Verdict(about=tier_title(number, tier), word=word, reason=reason)


def _of_tier_elsewhere(
    number: int, tier: DeclaredTier, pools: LadderPools, steps: Sequence[Step], *, is_last: bool
) -> Verdict:
    """Return the verdict on a tier in another cluster, by what its stack exported; `steps` are those of each shape on it."""
    facts = pools.tier(number, tier)
    exported = facts.exported if isinstance(facts.exported, Exported) else None
    # A tier that takes one shape is of use.
    best = min((step.results for step in steps), key=_count_failed, default=None)
    checks = (
        *(tuple(check_elsewhere(facts, is_last=is_last)) if best is None else best),
        *(check_checkpoints(exported) if exported else ()),
    )
    failed = "; ".join(each.reason for each in checks if isinstance(each, Failed))
    unknown = [each.reason for each in checks if isinstance(each, Undetermined)]
    timed = _of_window(tier.window, datetime.now(UTC))
    if failed:
        word, reason = Word.BROKEN, failed
    elif tier.has_timeout is UNKNOWN:
        word, reason = Word.NOT_JUDGED, f"whether it has a procurementTimeout is unknown: {_LATER}"
    elif unknown:
        is_later = UNKNOWN in (tier.facts, tier.exported, pools.checkpoints)
        reasons = "; ".join(unknown)
        word, reason = (
            Word.NOT_JUDGED,
            f"{reasons}: {_LATER}" if is_later else f"{reasons.replace('known yet', 'known')}: {_NEVER}",
        )
    elif timed is not None:
        word, reason = timed
    elif exported is None:
        word, reason = Word.ASSUMED, "the FallbackPolicy says what its cluster has"
    elif (exported.checkpoints or "").startswith(_DIRECTORY):
        word, reason = Word.ASSUMED, f"both clusters mount the same directory at {exported.checkpoints}"
    elif exported.registry is not None:
        values = {"stack": exported.stack, "registry": exported.registry.removeprefix(".")}
        word, reason = Word.ASSUMED, IMAGES_ASSUMED.format(**values)
    else:
        word, reason = (
            Word.PROVED,
            f"stack {exported.stack} exports it, and procurementTimeout ends the wait for it",
        )
    return Verdict(about=tier_title(number, tier), word=word, reason=reason)


def _count_failed(results: Sequence[CheckResult]) -> tuple[int, int]:
    return sum(isinstance(each, Failed) for each in results), len(results)


def _of_window(window: CapacityWindow, now: datetime) -> tuple[Word, str] | None:
    """Return the word about a tier whose reserved capacity is over or has not begun; None for one that has it now."""
    if window.ends is not None and window.is_over(now):
        return Word.BROKEN, messages.ENDED.reason.format(time=format_time(window.ends))
    if window.begins is not None and not window.has_begun(now):
        return Word.ASSUMED, f"its reserved capacity begins at {format_time(window.begins)}"
    return None


def _of_job(verdict: JobVerdict, ladder: DeclaredLadder, pools: LadderPools) -> Verdict:
    """Return the verdict on a job of the program."""
    found, title = verdict.walk, verdict.job.title
    if verdict.broken:
        return Verdict(about=title, word=Word.BROKEN, reason="; ".join(verdict.broken).rstrip("."))
    if verdict.note:
        return Verdict(about=title, word=Word.ASSUMED, reason=verdict.note.rstrip("."))
    if found is None:
        return Verdict(about=title, word=Word.NOT_JUDGED, reason="; ".join(verdict.open) or "it has no pods")
    first, tiers = found.steps[0].tier.number, () if ladder.tiers is UNKNOWN else ladder.tiers
    endless = [
        number
        for number, tier in enumerate(tiers[:-1], start=1)
        if number >= first and waits_indefinitely(tier, pools)
    ]
    return _of_walk(found, ladder, pools, endless, about=title, beside=verdict.assumed)


def _of_walk(
    found: Walk,
    ladder: DeclaredLadder,
    pools: LadderPools,
    endless: Sequence[int],
    about: str = "",
    beside: Sequence[str] = (),
) -> Verdict:
    """Return the verdict on a walk: of the shape, or of the job that it is `about`; `beside` is what its arrival takes for granted, too."""
    last = found.steps[-1]
    failed = "; ".join(each.reason for each in last.failed)
    undetermined = [
        f"{step.title}: {result.reason}"
        for step in found.steps
        for result in step.results
        if isinstance(result, Undetermined)
    ]
    crossed = [number for number in endless if number < last.tier.number]
    if found.outcome in (Outcome.FALLS_OFF, Outcome.STUCK):
        word, reason = Word.BROKEN, f"{last.title}: {failed or 'nothing leads past it'}"
    elif crossed:
        word, reason = Word.BROKEN, f"nothing ends its wait for capacity on tier {crossed[0]}"
    elif found.outcome is Outcome.UNDETERMINED:
        later = _LATER if any("not known yet" in each for each in undetermined) else _NEVER
        word, reason = (
            Word.NOT_JUDGED,
            f"{'; '.join(undetermined) or 'it may stay on an earlier tier'}: {later}",
        )
    elif found.outcome is Outcome.STAYS:
        word, reason = Word.ASSUMED, f"it stays on {last.title} as its ladder declares"
    else:
        assumed = [*_assumptions(found, pools, is_declared=bool(about or ladder.shapes)), *beside]
        word = Word.ASSUMED if assumed else Word.PROVED
        reason = "; ".join((f"it reaches {last.title}", *assumed))
    return Verdict(about=about or found.shape.title, word=word, reason=reason)


def _pools_of(tier: TierFacts, pools: LadderPools) -> Sequence[DeclaredPool]:
    return pools.named(tier.pool) if isinstance(tier.pool, str) and not tier.cluster else ()


def _assumptions(found: Walk, pools: LadderPools, *, is_declared: bool) -> Iterator[str]:
    """Yield what the arrival of a shape takes for granted."""
    if not is_declared:
        yield "the ladder declares no shapes, so one pod with all GPUs of a machine stands for its jobs"
    if len(found.architectures) > 1 and not found.shape.architectures:
        yield f"the images of its jobs run on {' and '.join(found.architectures)}: its tiers have machines of both"
    last = _pools_of(found.steps[-1].tier, pools)
    first = _pools_of(found.steps[0].tier, pools)
    for pool in last if len(found.steps) > 1 else ():
        yield from (f"{pool.title}: {each}" for each in differences(pool, first, pools.resources))


def find(resources: Sequence[StackResource], settings: Settings) -> tuple[Finding, ...]:
    """Return the verdicts, one finding for each namespace; for pools without any ladder, that nothing is judged."""
    found = verdicts(resources, settings)
    pools = all_pools(resources)
    unshown = tuple(
        Finding(urn=each.urn, message=UNSHOWN.format(name=each.logical_name), proven=False)
        for each in unshown_components(resources)
    )
    if not unshown and not found and pools and not ladders_of(resources):
        nothing = "nothing is judged: this program makes pools, but no namespace for training and no FallbackPolicy."
        return (Finding(urn=pools[0].resource.urn, message=nothing, proven=False),)
    judged = (Finding(urn=each.namespace.resource.urn, message=str(each), proven=False) for each in found)
    return (*judged, *unshown)


RULE: Final = Rule(
    name="training-verdicts",
    title="What is proved about training",
    description="What is proved, broken, assumed and not judged for each training namespace.",
    fix="None for what is proved. Fix what is broken; declare what is assumed or not judged (shapes, `onDemandPools`).",
    level=Level.ADVISORY,
    severity=RuleSeverity.LOW,
    find=find,
    settings=PACK_SETTINGS,
)
