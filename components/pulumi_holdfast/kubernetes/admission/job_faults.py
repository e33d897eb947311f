"""CEL expressions for faults of a job that prevent moves on any ladder: each is a list of sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pulumi_holdfast.kubernetes.admission.expressions import affinity_terms, fill_sentence, text, texts
from pulumi_holdfast.ladder.labels import (
    AFTER_MAX_COST,
    CAPACITY_KEYS,
    MAX_COST,
    POOL,
    VOLUME_CLAIMS,
    CapacityType,
)
from pulumi_holdfast.ladder.ladder import AFTER_MAX_COST_VALUES, MAX_COST_PATTERN, WAIT_AFTER_MAX_COST
from pulumi_holdfast.ladder.reachability import messages

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi_holdfast.kubernetes.admission.job_expressions import JobKind
    from pulumi_holdfast.kubernetes.admission.rules import NodeSelection

_POOLS: Final = f"variables.pools.join({text(', ')})"
_SPEC: Final = "variables.specs[i]"
_CREATION: Final = 'request.operation == "CREATE"'
#: The failure reason of a Job whose pod was evicted, and the text that its message then contains.
_EVICTED: Final = "PodFailurePolicy"
_DISRUPTED: Final = "DisruptionTarget"


def selected_pools() -> str:
    """Return the distinct pools that the following templates select."""
    return f"variables.following.map(i, {_pool('i')}).distinct()"


def nothing_follows() -> str:
    """The job has the label, but admission found no template that can follow the ladder."""
    why = fill_sentence(messages.NOTHING_FOLLOWS, pools=_POOLS)
    return f"{_CREATION} && size(variables.following) == 0 ? [{why}] : []"


def outside_ladder(kind: JobKind) -> str:
    """Templates that select a pool outside the ladder."""
    pool = f"({_pool('i')} == {text('')} ? {text('(none)')} : {_pool('i')})"
    why = fill_sentence(messages.NOT_ON_LADDER, name=_name(kind), pool=pool, pools=_POOLS)
    return f"variables.following.filter(i, !({_pool('i')} in variables.pools)).map(i, {why})"


def different_tiers() -> str:
    """Templates that start on different tiers."""
    why = fill_sentence(messages.APART, pools=f"variables.chosen.join({text(', ')})")
    return f"size(variables.chosen) > 1 ? [{why}] : []"


def mixed_capacity(kind: JobKind, capacity: Sequence[NodeSelection]) -> str:
    """Templates beside workers on spot that select another capacity by a label."""
    at = f"{_SPEC}.?nodeSelector"
    found: list[str] = []
    for selection in capacity:
        value = f"{at}[?{text(selection.key)}].orValue({text('')})"
        why = fill_sentence(
            messages.MIXED, name=_name(kind), key=text(selection.key), value=f"string({value})"
        )
        found.append(f"(!({value} in {texts(['', *selection.values])}) ? [{why}] : [])")
    why = fill_sentence(messages.MIXED, name=_name(kind), key=text(POOL), value=_pool("i"))
    of_ladder = f"{_pool('i')} in variables.pools && !({_pool('i')} in variables.spotPools)"
    found.append(f"({of_ladder} ? [{why}] : [])")
    beside = "lists.range(size(variables.items)).filter(i, !(i in variables.following))"
    on_spot = "size(variables.chosen) == 1 && variables.chosen[0] in variables.spotPools"
    return f"{on_spot} ? {beside}.map(i, {' + '.join(found)}).flatten() : []"


def pinned_by_affinity(kind: JobKind) -> str:
    """Templates with a required node affinity on a label that a move would have to change."""
    keys = (
        f"{affinity_terms(_SPEC)}.map(a, a.?matchExpressions.orValue([]).map(e, string(e.key))).flatten()"
        f".filter(k, k in {texts([POOL, *sorted(CAPACITY_KEYS)])}).distinct().sort()"
    )
    why = fill_sentence(messages.PINNED, name=_name(kind), keys=f"w.join({text(', ')})")
    return f"variables.following.map(i, [{keys}].filter(w, size(w) > 0).map(w, {why})).flatten()"


def allowed_claims(claims: Sequence[str]) -> str:
    """Return the volume claims that jobs may mount: those of the stack and those that the namespace lists."""
    listed = f"namespaceObject.metadata.?annotations[?{text(VOLUME_CLAIMS)}].orValue({text('')})"
    # The empty name gives an empty list a type.
    return f"{texts(['', *claims])} + {listed}.split({text(',')}).map(c, c.trim())"


def zonal_claims(kind: JobKind) -> str:
    """Templates that mount a volume claim that may be bound to a zone."""
    claim = "v.?persistentVolumeClaim.?claimName"
    why = fill_sentence(messages.CLAIM, name=_name(kind), claim=f"string({claim}.orValue({text('')}))")
    mounted = f"{_SPEC}.?volumes.orValue([]).filter(v, !({claim}.orValue({text('')}) in variables.claims))"
    return f"variables.following.map(i, {mounted}.map(v, {why})).flatten()"


def jobset_claims() -> str:
    """Claims that a JobSet creates from its own templates."""
    name = f"string(t.?metadata.?name.orValue({text('?')}))"
    why = fill_sentence(messages.CLAIM, name=text("the job"), claim=name)
    return (
        "object.?spec.?volumeClaimPolicies.orValue([]).map(p, p.?templates.orValue([])"
        f".filter(t, !({name} in variables.claims)).map(t, {why})).flatten()"
    )


def jobset_ends_on_eviction() -> str:
    """A JobSet that fails permanently when its first pod is evicted, despite the rule that admission adds.

    The first matching rule applies. A rule for only some of the jobs, or for other messages, does not match
    an eviction.
    """
    policy = "object.?spec.?failurePolicy"
    patterns = "r.?onJobFailureMessagePatterns.orValue([])"
    reasons = "r.?onJobFailureReasons.orValue([])"
    matches = (
        f"({reasons} == [] || {text(_EVICTED)} in {reasons}) && "
        f"({patterns} == [] || {patterns}.exists(p, p.contains({text(_DISRUPTED)}))) && "
        "r.?targetReplicatedJobs.orValue([]) == []"
    )
    actions = f"{policy}.?rules.orValue([]).filter(r, {matches}).map(r, string(r.action))"
    counted = f"{policy}.?maxRestarts.orValue(0) == 0"
    uncounted = "a[0].endsWith(" + text("AndIgnoreMaxRestarts") + ")"
    ends = f"size(a) > 0 ? (a[0] == {text('FailJobSet')} || {counted} && !{uncounted}) : {counted}"
    why = fill_sentence(messages.ENDS_AT_ONCE)
    return f"{_CREATION} && [{actions}].exists(a, {ends}) ? [{why}] : []"


def rayjob_ends_on_failure(recreate: str) -> str:
    """A RayJob without retries, unless the annotation `recreate` allows to create it again.

    Interactive RayJobs cannot have retries.
    """
    none = "object.?spec.?backoffLimit.orValue(0) == 0"
    by_hand = f"object.?spec.?submissionMode.orValue({text('')}) == {text('InteractiveMode')}"
    recreated = f"object.metadata.?annotations[?{text(recreate)}].orValue({text('')}) == {text('true')}"
    why = fill_sentence(messages.ENDS_ON_FAILURE)
    return f"{_CREATION} && {none} && !({by_hand}) && !({recreated}) ? [{why}] : []"


def unusable_max_cost() -> str:
    """Annotations about `max-cost` that are invalid, or that contradict the ladder."""
    written, after = (
        f"object.metadata.?annotations[?{text(name)}].orValue({text('')})"
        for name in (MAX_COST, AFTER_MAX_COST)
    )
    has_limit = f"object.metadata.?annotations[?{text(MAX_COST)}].hasValue()"
    is_amount = f"({written}.matches({text(MAX_COST_PATTERN)}) && double({written}) > 0.0)"
    all_on_demand = f"variables.tiers.all(t, t.?facts.?capacity.orValue({text('')}) == {text(CapacityType.ON_DEMAND.value)})"
    found = {
        f"{has_limit} && !{is_amount}": fill_sentence(messages.MAX_COST_AMOUNT, written=written),
        f"{after} != {text('')} && !({has_limit})": fill_sentence(messages.AFTER_MAX_COST_ALONE),
        f"!({after} in {texts(['', *AFTER_MAX_COST_VALUES])})": fill_sentence(
            messages.AFTER_MAX_COST_VALUE, written=after
        ),
        f"{after} == {text(WAIT_AFTER_MAX_COST)} && {all_on_demand}": fill_sentence(messages.NOWHERE_TO_WAIT),
    }
    return " + ".join(f"({fault} ? [{why}] : [])" for fault, why in found.items())


def cannot_suspend(kind: JobKind) -> str:
    """Fields with which the job's operator does not suspend it."""
    found = [
        f"({is_set} ? [{fill_sentence(messages.CANNOT_STOP, field=text(name))}] : [])"
        for name, is_set in kind.unstoppable.items()
    ]
    return " + ".join(found)


def _pool(index: str) -> str:
    return f"string(variables.specs[{index}].?nodeSelector[?{text(POOL)}].orValue({text('')}))"


def _name(kind: JobKind) -> str:
    return f"string(variables.items[i].{kind.name})"
