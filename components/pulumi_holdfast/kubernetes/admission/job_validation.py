"""Validation of jobs: policies that reject a job whose own fields keep it from following any ladder, and that warn about others.

Whether a job reaches on-demand capacity, and whether its pods can be created, the fallback controller judges
(docs/adr/0048-verdict-judged-by-the-controller.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pulumi import ComponentResource, ResourceOptions

from pulumi_holdfast.kubernetes.admission import job_faults as faults
from pulumi_holdfast.kubernetes.admission.expressions import text
from pulumi_holdfast.kubernetes.admission.job_admission import Manifest, match_constraints
from pulumi_holdfast.kubernetes.admission.job_expressions import QUEUE_NAME, JobKind, variables
from pulumi_holdfast.kubernetes.admission.job_warnings import job_warning
from pulumi_holdfast.kubernetes.admission.jobset import JOBSET
from pulumi_holdfast.kubernetes.admission.rayjob import RAYJOB
from pulumi_holdfast.kubernetes.admission.rules import NodeSelection
from pulumi_holdfast.kubernetes.fallback_policy.definition import API_VERSION, KIND
from pulumi_holdfast.kubernetes.kubernetes_object import ADMISSION, KubernetesObject
from pulumi_holdfast.ladder.json import Json
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


def job_validations(capacity: Sequence[NodeSelection], claims: Sequence[str] = ()) -> Sequence[Manifest]:
    """Return the policies and bindings for each kind of job: those that reject it, and those that warn about it.

    `capacity` are the labels with which pods select spot. `claims` are the stack's volume claims that are not bound to a zone.
    """
    return [
        manifest
        for kind in (JOBSET, RAYJOB)
        for manifest in (_manifest(kind, capacity, claims), job_warning(kind, capacity))
    ]


def _own_faults(kind: JobKind) -> Mapping[str, str]:
    """Return the faults that only jobs of one kind have, by the name of the policy variable."""
    if kind is RAYJOB:
        return {
            "unstoppable": faults.cannot_suspend(kind),
            "nothingFollows": f"size(variables.unstoppable) > 0 ? [] : ({faults.nothing_follows()})",
            "terminal": faults.rayjob_ends_on_failure(RECREATE),
        }
    return {
        "nothingFollows": faults.nothing_follows(),
        "ownClaims": faults.jobset_claims(),
        "terminal": faults.jobset_ends_on_eviction(),
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
        "offLadder": faults.outside_ladder(kind),
        "apart": faults.different_tiers(),
        "mixed": faults.mixed_capacity(kind, capacity),
        "pinned": faults.pinned_by_affinity(kind),
        "zonal": faults.zonal_claims(kind),
        "maxCost": faults.unusable_max_cost(),
    }
    named = {
        **{each: known[each] for each in ("tiers", "pools", "spotPools", "items", "specs")},
        "following": "lists.range(size(variables.items))"
        f".filter(i, {kind.template_of('variables.items[i]')}.?{marked})",
        "chosen": faults.selected_pools(),
        "claims": faults.allowed_claims(claims),
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
        "not-by-the-ladder": f"request.userInfo.username != {text(_CONTROLLER)}",
        "follows": f"object.metadata.?labels[?{text(FOLLOWS)}].orValue({text('')}) == {text(FOLLOWS_VALUE)}",
        "not-queued": f"object.metadata.?labels[?{text(QUEUE_NAME)}].orValue({text('')}) == {text('')}",
        "of-its-own-operator": operator,
        "new-pods": f'request.operation == "CREATE" || {new} != {old}',
    }


@dataclass(frozen=True, kw_only=True)
class JobValidationArgs:
    """The properties of the cluster that the validation uses.

    `capacity` are the labels with which pods select spot, one or more. `claims` are the names of volume claims that are not
    bound to a zone.
    """

    capacity: tuple[NodeSelection, ...]
    claims: tuple[str, ...] = ()


class JobValidation(ComponentResource):
    """Validation of JobSets and RayJobs that follow a ladder (`holdfast:index:JobValidation`).

    Creates ValidatingAdmissionPolicies and their bindings for each kind. `training-jobsets-can-fall-back` and
    `training-rayjobs-can-fall-back` reject a job whose own fields keep it from following a ladder, with the fix, on creation and
    when a user other than the fallback controller changes its pod templates. `training-jobsets-warnings` and
    `training-rayjobs-warnings` warn about jobs that select spot and do not follow.
    They check jobs as JobAdmission has adjusted them, with the namespace's FallbackPolicy: depend
    on JobAdmission and on the FallbackPolicyDefinition.
    """

    def __init__(self, name: str, args: JobValidationArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:JobValidation", name, None, opts)
        for each in job_validations(args.capacity, args.claims):
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
