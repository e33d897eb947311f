"""Validation of jobs: policies that reject a job that cannot follow the ladder of its namespace.

docs/adr/0024-reachability.md describes what is checked, when, and what is allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pulumi import ComponentResource, ResourceOptions

from pulumi_holdfast.kubernetes.admission import job_faults as faults
from pulumi_holdfast.kubernetes.admission import shape_checks as walk
from pulumi_holdfast.kubernetes.admission import tier_checks as links
from pulumi_holdfast.kubernetes.admission.expressions import text
from pulumi_holdfast.kubernetes.admission.job_admission import Manifest, match_constraints
from pulumi_holdfast.kubernetes.admission.job_expressions import QUEUE_NAME, JobKind, variables
from pulumi_holdfast.kubernetes.admission.job_warnings import job_warning
from pulumi_holdfast.kubernetes.admission.jobset import JOBSET
from pulumi_holdfast.kubernetes.admission.pod_placement import (
    jobset_exclusive,
    jobset_labels,
    one_per_node,
    rayjob_labels,
)
from pulumi_holdfast.kubernetes.admission.rayjob import RAYJOB
from pulumi_holdfast.kubernetes.admission.rules import AdmissionRule, NodeSelection
from pulumi_holdfast.kubernetes.admission.shape_checks import jobset_pods, rayjob_pods, shapes
from pulumi_holdfast.kubernetes.fallback_policy.definition import API_VERSION, KIND
from pulumi_holdfast.kubernetes.kubernetes_object import ADMISSION, KubernetesObject
from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.ladder.labels import (
    CONTROLLER,
    CONTROLLER_NAMESPACE,
    FOLLOWS,
    FOLLOWS_VALUE,
    LADDER,
    RECREATE,
)

#: The message if the detailed one is too long for the API server or cannot be evaluated.
GENERIC_MESSAGE: Final = "the job cannot follow the ladder of its namespace"

#: The end of the name of the policies that reject jobs. The API server's metric counts the jobs that they admit unchecked.
CAN_FALL_BACK: Final = "-can-fall-back"

#: The API server accepts messages of up to 5 KiB; this many sentences and characters stay below.
MOST_SENTENCES: Final = 3
LONGEST_MESSAGE: Final = 2500

_CONTROLLER: Final = f"system:serviceaccount:{CONTROLLER_NAMESPACE}:{CONTROLLER}"


@dataclass(frozen=True, kw_only=True)
class JobChecks:
    """The checks of a kind of job: the number of pods of an item, which templates run one pod per node, and its own faults."""

    kind: JobKind
    pods: Callable[[str], str]
    one_per_node: str
    faults: Mapping[str, str]


def job_checks() -> Sequence[JobChecks]:
    """Return the checks of each kind of job, beside those of the tiers."""
    return (
        JobChecks(
            kind=JOBSET,
            pods=jobset_pods,
            one_per_node=one_per_node(JOBSET, jobset_labels(JOBSET), jobset_exclusive()),
            faults={
                "nothingFollows": faults.nothing_follows(),
                "ownClaims": faults.jobset_claims(),
                "terminal": faults.jobset_ends_on_eviction(),
            },
        ),
        JobChecks(
            kind=RAYJOB,
            pods=rayjob_pods,
            one_per_node=one_per_node(RAYJOB, rayjob_labels(RAYJOB)),
            faults={
                "unstoppable": faults.rayjob_cannot_suspend(),
                "nothingFollows": f"size(variables.unstoppable) > 0 ? [] : ({faults.nothing_follows()})",
                "terminal": faults.rayjob_ends_on_failure(RECREATE),
            },
        ),
    )


def job_validations(
    rules: Sequence[AdmissionRule], capacity: Sequence[NodeSelection], claims: Sequence[str] = ()
) -> Sequence[Manifest]:
    """Return the policies and bindings for each kind of job: those that reject it, and those that warn about it.

    A job that cannot be checked is admitted, because a rejected update could keep a job from being deleted. A separate
    policy evaluates the same expressions when a job is created, and warns if the evaluation fails.

    `rules` are the admission rules of pods, whose tolerations count. `capacity` are the labels with which
    pods select spot. `claims` are the stack's volume claims that are not bound to a zone.
    """
    return [
        manifest
        for each in job_checks()
        for manifest in (
            _manifest(each, rules, capacity, claims),
            _warning_if_unchecked(each, rules, capacity, claims),
            job_warning(each.kind, capacity),
        )
    ]


def _manifest(
    judged: JobChecks,
    rules: Sequence[AdmissionRule],
    capacity: Sequence[NodeSelection],
    claims: Sequence[str],
) -> Manifest:
    """Return a policy and its binding. A job that cannot be checked, or has no ladder, is allowed.

    `JobAdmission` rejects jobs that are created before their ladder. An existing job must be deletable after
    it.
    """
    kind = judged.kind
    name = f"training-{kind.resource}{CAN_FALL_BACK}"
    named = {**_context_variables(kind, rules, capacity, claims), **_check_variables(judged, capacity)}
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
    return Manifest(name=name, policy=policy, binding=_binding(name, "Deny"))


def _warning_if_unchecked(
    judged: JobChecks,
    rules: Sequence[AdmissionRule],
    capacity: Sequence[NodeSelection],
    claims: Sequence[str],
) -> Manifest:
    """Return the policy that warns about a job whose check fails, for example at the API server's cost limit.

    It passes for every job whose check succeeds. With `failurePolicy: Fail` an error counts as a violation, and the binding
    warns. It evaluates the message, too, because the API server counts its cost.
    """
    name = f"training-{judged.kind.resource}-not-checked"
    checked = _manifest(judged, rules, capacity, claims).policy
    (validation,) = map(mapping, sequence(checked["validations"]))
    policy: Json = {
        **checked,
        "failurePolicy": "Fail",
        "matchConstraints": match_constraints(judged.kind, "CREATE"),
        "validations": [{**validation, "expression": "size(variables.faults) >= 0"}],
    }
    return Manifest(name=name, policy=policy, binding=_binding(name, "Warn"))


def _binding(name: str, action: str) -> Json:
    return {
        "policyName": name,
        "paramRef": {"name": LADDER, "parameterNotFoundAction": "Allow"},
        "validationActions": [action],
    }


def conditions(kind: JobKind) -> Mapping[str, str]:
    """Return the match conditions by name."""
    operator = f"object.spec.?managedBy.orValue({text(kind.controller)}) == {text(kind.controller)}"
    new, old = (
        f"{kind.items_of(job)}.map(r, {kind.template_of('r')}.orValue({{}}))"
        for job in ("object", "oldObject")
    )
    return {
        # Removing a finalizer is an update.
        "stays": "!has(object.metadata.deletionTimestamp)",
        "not-by-the-ladder": f"request.userInfo.username != {text(_CONTROLLER)}",
        "follows": f"object.metadata.?labels[?{text(FOLLOWS)}].orValue({text('')}) == {text(FOLLOWS_VALUE)}",
        "not-queued": f"object.metadata.?labels[?{text(QUEUE_NAME)}].orValue({text('')}) == {text('')}",
        "of-its-own-operator": operator,
        "new-pods": f'request.operation == "CREATE" || {new} != {old}',
    }


def _context_variables(
    kind: JobKind, rules: Sequence[AdmissionRule], capacity: Sequence[NodeSelection], claims: Sequence[str]
) -> Mapping[str, str]:
    known = variables(kind, capacity)
    marked = f"metadata.?labels[?{text(FOLLOWS)}].orValue({text('')}) == {text(FOLLOWS_VALUE)}"
    template = kind.template_of("variables.items[i]")
    return {
        **{name: known[name] for name in ("tiers", "pools", "spotPools", "items", "specs")},
        "numbers": walk.tier_numbers(),
        "following": f"lists.range(size(variables.items)).filter(i, {template}.?{marked})",
        "chosen": faults.selected_pools(),
        "claims": faults.allowed_claims(claims),
        "given": links.tolerated_taints(rules),
        "givenToGpus": links.tolerated_taints_with_gpus(rules),
        "labels": links.tier_labels(),
        "labelValues": links.tier_label_values(),
        "rooms": links.tier_machines(),
        "taints": links.repelling_taints(),
    }


def _check_variables(judged: JobChecks, capacity: Sequence[NodeSelection]) -> Mapping[str, str]:
    kind = judged.kind
    own = {
        **judged.faults,
        "offLadder": faults.outside_ladder(kind),
        "apart": faults.different_tiers(),
        "mixed": faults.mixed_capacity(kind, capacity),
        "pinned": faults.pinned_by_affinity(kind),
        "zonal": faults.zonal_claims(kind),
        "maxCost": faults.unusable_max_cost(),
    }
    walked = {
        **walk.request_variables(),
        "onePerNode": judged.one_per_node,
        "shapes": shapes(kind, judged.pods),
        "beside": "variables.shapes.filter(s, s.beside)",
        "total": links.total_requests(),
        "start": walk.start_tier(),
        **links.tier_checks(),
        "exceeding": links.total_checks(),
        "broken": walk.failed_checks(),
        "end": walk.end_tier(),
        "ending": walk.rejection_reasons(),
    }
    every = " + ".join(f"variables.{name}" for name in (*own, "ending"))
    return {**own, **walked, "faults": every}


@dataclass(frozen=True, kw_only=True)
class JobValidationArgs:
    """The properties of the cluster that the validation uses.

    `rules` are the admission rules of its pods, whose tolerations count. `capacity` are the labels with which
    pods select spot, one or more. `claims` are the names of volume claims that are not bound to a zone.
    """

    rules: tuple[AdmissionRule, ...]
    capacity: tuple[NodeSelection, ...]
    claims: tuple[str, ...] = ()


class JobValidation(ComponentResource):
    """Validation of JobSets and RayJobs that follow a ladder (`holdfast:index:JobValidation`).

    Creates ValidatingAdmissionPolicies and their bindings for each kind. `training-jobsets-can-fall-back` and
    `training-rayjobs-can-fall-back` reject a job that cannot reach the end of its ladder, with the failed check
    and the fix, on creation and when a user other than the fallback controller changes its pod templates.
    `training-jobsets-not-checked` and `training-rayjobs-not-checked` warn about a job that is created without this check,
    because its evaluation failed. `training-jobsets-warnings` and `training-rayjobs-warnings` warn about jobs that select spot and do not follow.
    They check jobs as JobAdmission has adjusted them, against the facts in the namespace's FallbackPolicy: depend
    on JobAdmission and on the FallbackPolicyDefinition.
    """

    def __init__(self, name: str, args: JobValidationArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:JobValidation", name, None, opts)
        for each in job_validations(args.rules, args.capacity, args.claims):
            policy = KubernetesObject(
                f"{name}-{each.name}",
                ADMISSION,
                "ValidatingAdmissionPolicy",
                {"metadata": {"name": each.name}, "spec": each.policy},
                opts=ResourceOptions(parent=self),
            )
            KubernetesObject(
                f"{name}-{each.name}-binding",
                ADMISSION,
                "ValidatingAdmissionPolicyBinding",
                {"metadata": {"name": each.name}, "spec": each.binding},
                opts=ResourceOptions(parent=self, depends_on=[policy]),
            )
        self.register_outputs({})
