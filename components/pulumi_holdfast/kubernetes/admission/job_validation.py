"""Validation of jobs: policies that reject a job whose own fields keep it from following any ladder.

Whether a job reaches on-demand capacity, and whether its pods can be created, the fallback controller judges
(docs/adr/0048-verdict-judged-by-the-controller.md). Each fault is a CEL expression for a list of sentences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pulumi import ComponentResource, ResourceOptions

from pulumi_holdfast.kubernetes.admission.expressions import (
    CREATES,
    affinity_terms,
    fill_sentence,
    text,
    texts,
)
from pulumi_holdfast.kubernetes.admission.job_admission import Manifest, match_constraints
from pulumi_holdfast.kubernetes.admission.job_expressions import QUEUE_NAME, JobKind, variables
from pulumi_holdfast.kubernetes.admission.jobset import JOBSET
from pulumi_holdfast.kubernetes.admission.rayjob import RAYJOB
from pulumi_holdfast.kubernetes.admission.rules import NodeSelection
from pulumi_holdfast.kubernetes.fallback_policy import API_VERSION, KIND
from pulumi_holdfast.kubernetes.kubernetes_object import admission_policy
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import (
    AFTER_MAX_COST,
    CAPACITY_KEYS,
    FOLLOWS,
    FOLLOWS_VALUE,
    LADDER,
    MAX_COST,
    POOL,
    RECREATE,
    VOLUME_CLAIMS,
    CapacityType,
)
from pulumi_holdfast.ladder.ladder import AFTER_MAX_COST_VALUES, MAX_COST_PATTERN, WAIT_AFTER_MAX_COST
from pulumi_holdfast.ladder.operators import CONTROLLER_ACCOUNT
from pulumi_holdfast.ladder.reachability import messages

#: The message if the detailed one is too long for the API server or cannot be evaluated.
GENERIC_MESSAGE: Final = "the job cannot follow the ladder of its namespace"

#: The end of the name of the policies that reject jobs. The API server's metric counts the jobs that they admit unchecked.
CAN_FALL_BACK: Final = "-can-fall-back"

#: The API server accepts messages of up to 5 KiB; this many sentences and characters stay below.
MOST_SENTENCES: Final = 3
LONGEST_MESSAGE: Final = 2500

_POOLS: Final = f"variables.pools.join({text(', ')})"
_SPEC: Final = "variables.specs[i]"
#: The failure reason of a Job whose pod was evicted, and the text that its message then contains.
_EVICTED: Final = "PodFailurePolicy"
_DISRUPTED: Final = "DisruptionTarget"


def job_validations(capacity: Sequence[NodeSelection], claims: Sequence[str] = ()) -> Sequence[Manifest]:
    """Return the policy and binding for each kind of job.

    `capacity` are the labels with which pods select spot. `claims` are the stack's volume claims that are not bound to a zone.
    """
    return [_manifest(kind, capacity, claims) for kind in (JOBSET, RAYJOB)]


def _own_faults(kind: JobKind) -> Mapping[str, str]:
    """Return the faults that only jobs of one kind have, by the name of the policy variable."""
    if kind is RAYJOB:
        return {
            "unstoppable": _cannot_suspend(kind),
            "nothingFollows": f"size(variables.unstoppable) > 0 ? [] : ({_nothing_follows()})",
            "terminal": _rayjob_ends_on_failure(RECREATE),
        }
    return {
        "nothingFollows": _nothing_follows(),
        "ownClaims": _jobset_claims(),
        "terminal": _jobset_ends_on_eviction(),
    }


def _manifest(kind: JobKind, capacity: Sequence[NodeSelection], claims: Sequence[str]) -> Manifest:
    """Return a policy and its binding. A job that cannot be checked, or has no ladder, is allowed.

    `JobAdmission` rejects jobs that are created before their ladder. An existing job must be deletable after
    it.
    """
    name = f"training-{kind.resource}{CAN_FALL_BACK}"
    known = variables(kind, capacity)
    marked = f"metadata.?labels[?{text(FOLLOWS)}].orValue({text('')}) == {text(FOLLOWS_VALUE)}"
    found = {
        **_own_faults(kind),
        "offLadder": _outside_ladder(kind),
        "apart": _different_tiers(),
        "pinned": _pinned_by_affinity(kind),
        "zonal": _zonal_claims(kind),
        "maxCost": _unusable_max_cost(),
    }
    named = {
        **{each: known[each] for each in ("tiers", "pools", "spotPools", "items", "specs")},
        "following": "lists.range(size(variables.items))"
        f".filter(i, {kind.template_of('variables.items[i]')}.?{marked})",
        "chosen": _selected_pools(),
        "claims": _allowed_claims(claims),
        **found,
        "faults": " + ".join(f"variables.{each}" for each in found),
    }
    message = f"variables.faults.slice(0, [size(variables.faults), {MOST_SENTENCES}].min()).join({text(' ')})"
    policy: Json = {
        "failurePolicy": "Ignore",
        "paramKind": {"apiVersion": API_VERSION, "kind": KIND},
        "matchConstraints": match_constraints(kind, "CREATE", "UPDATE"),
        "matchConditions": [
            {"name": condition, "expression": expression}
            for condition, expression in conditions(kind).items()
        ],
        "variables": [{"name": each, "expression": expression} for each, expression in named.items()],
        "validations": [
            {
                "expression": "size(variables.faults) == 0",
                "message": GENERIC_MESSAGE,
                "messageExpression": f"[{message}].map(m, size(m) > {LONGEST_MESSAGE} ? "
                f"m.substring(0, {LONGEST_MESSAGE}) + {text('…')} : m)[0]",
            }
        ],
    }
    binding: Json = {
        "policyName": name,
        "paramRef": {"name": LADDER, "parameterNotFoundAction": "Allow"},
        "validationActions": ["Deny"],
    }
    return Manifest(name=name, policy=policy, binding=binding)


def conditions(kind: JobKind) -> Mapping[str, str]:
    """Return the match conditions by name."""
    operator = f"object.?spec.?managedBy.orValue({text(kind.controller)}) == {text(kind.controller)}"
    new, old = (
        f"{kind.items_of(job)}.map(r, {kind.template_of('r')}.orValue({{}}))"
        for job in ("object", "oldObject")
    )
    return {
        # Removing a finalizer is an update.
        "stays": "!has(object.metadata.deletionTimestamp)",
        "not-by-the-ladder": f"request.userInfo.username != {text(CONTROLLER_ACCOUNT)}",
        "follows": f"object.metadata.?labels[?{text(FOLLOWS)}].orValue({text('')}) == {text(FOLLOWS_VALUE)}",
        "not-queued": f"object.metadata.?labels[?{text(QUEUE_NAME)}].orValue({text('')}) == {text('')}",
        "of-its-own-operator": operator,
        "new-pods": f"{CREATES} || {new} != {old}",
    }


def _selected_pools() -> str:
    """Return the distinct pools that the following templates select."""
    return f"variables.following.map(i, {_pool('i')}).distinct()"


def _nothing_follows() -> str:
    """The job has the label, but admission found no template that can follow the ladder."""
    why = fill_sentence(messages.NOTHING_FOLLOWS, pools=_POOLS)
    return f"{CREATES} && size(variables.following) == 0 ? [{why}] : []"


def _outside_ladder(kind: JobKind) -> str:
    """Templates that select a pool outside the ladder."""
    pool = f"({_pool('i')} == {text('')} ? {text('(none)')} : {_pool('i')})"
    why = fill_sentence(messages.NOT_ON_LADDER, name=_name(kind), pool=pool, pools=_POOLS)
    return f"variables.following.filter(i, !({_pool('i')} in variables.pools)).map(i, {why})"


def _different_tiers() -> str:
    """Templates that start on different tiers."""
    why = fill_sentence(messages.APART, pools=f"variables.chosen.join({text(', ')})")
    return f"size(variables.chosen) > 1 ? [{why}] : []"


def _pinned_by_affinity(kind: JobKind) -> str:
    """Templates with a required node affinity on a label that a move would have to change."""
    keys = (
        f"{affinity_terms(_SPEC)}.map(a, a.?matchExpressions.orValue([]).map(e, string(e.key))).flatten()"
        f".filter(k, k in {texts([POOL, *sorted(CAPACITY_KEYS)])}).distinct().sort()"
    )
    why = fill_sentence(messages.PINNED, name=_name(kind), keys=f"w.join({text(', ')})")
    return f"variables.following.map(i, [{keys}].filter(w, size(w) > 0).map(w, {why})).flatten()"


def _allowed_claims(claims: Sequence[str]) -> str:
    """Return the volume claims that jobs may mount: those of the stack and those that the namespace lists."""
    listed = f"namespaceObject.metadata.?annotations[?{text(VOLUME_CLAIMS)}].orValue({text('')})"
    # The empty name gives an empty list a type.
    return f"{texts(['', *claims])} + {listed}.split({text(',')}).map(c, c.trim())"


def _zonal_claims(kind: JobKind) -> str:
    """Templates that mount a volume claim that may be bound to a zone."""
    claim = "v.?persistentVolumeClaim.?claimName"
    why = fill_sentence(messages.CLAIM, name=_name(kind), claim=f"string({claim}.orValue({text('')}))")
    mounted = f"{_SPEC}.?volumes.orValue([]).filter(v, !({claim}.orValue({text('')}) in variables.claims))"
    return f"variables.following.map(i, {mounted}.map(v, {why})).flatten()"


def _jobset_claims() -> str:
    """Claims that a JobSet creates from its own templates."""
    name = f"string(t.?metadata.?name.orValue({text('?')}))"
    why = fill_sentence(messages.CLAIM, name=text("the job"), claim=name)
    return (
        "object.?spec.?volumeClaimPolicies.orValue([]).map(p, p.?templates.orValue([])"
        f".filter(t, !({name} in variables.claims)).map(t, {why})).flatten()"
    )


def _jobset_ends_on_eviction() -> str:
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
    return f"{CREATES} && [{actions}].exists(a, {ends}) ? [{why}] : []"


def _rayjob_ends_on_failure(recreate: str) -> str:
    """A RayJob without retries, unless the annotation `recreate` allows to create it again.

    Interactive RayJobs cannot have retries.
    """
    none = "object.?spec.?backoffLimit.orValue(0) == 0"
    by_hand = f"object.?spec.?submissionMode.orValue({text('')}) == {text('InteractiveMode')}"
    recreated = f"object.metadata.?annotations[?{text(recreate)}].orValue({text('')}) == {text('true')}"
    why = fill_sentence(messages.ENDS_ON_FAILURE)
    return f"{CREATES} && {none} && !({by_hand}) && !({recreated}) ? [{why}] : []"


def _unusable_max_cost() -> str:
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


def _cannot_suspend(kind: JobKind) -> str:
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


class JobValidation(ComponentResource):
    """Validation of JobSets and RayJobs that follow a ladder (`holdfast:index:JobValidation`).

    Creates a ValidatingAdmissionPolicy and its binding for each kind. `training-jobsets-can-fall-back` and
    `training-rayjobs-can-fall-back` reject a job whose own fields keep it from following a ladder, with the fix, on creation and
    when a user other than the fallback controller changes its pod templates.
    They check jobs as JobAdmission has adjusted them, with the namespace's FallbackPolicy: depend
    on JobAdmission and on the definition of FallbackPolicy. `capacity` are the labels with which pods select spot, one or more;
    `claims` the names of volume claims that are not bound to a zone.
    """

    def __init__(
        self,
        name: str,
        opts: ResourceOptions | None = None,
        *,
        capacity: Sequence[NodeSelection],
        claims: Sequence[str] = (),
    ) -> None:
        super().__init__("holdfast:index:JobValidation", name, None, opts)
        for each in job_validations(capacity, claims):
            metadata = {"name": each.name}
            admission_policy(
                f"{name}-{each.name}", "ValidatingAdmissionPolicy", metadata, each.policy, each.binding, self
            )
        self.register_outputs({})
