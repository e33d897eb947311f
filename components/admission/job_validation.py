"""The component that keeps jobs out which cannot follow the ladder of their namespace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from pulumi import ComponentResource, ResourceOptions
from pulumi_kubernetes.admissionregistration.v1 import (
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
)

from holdfast.components.admission import job_faults as faults
from holdfast.components.admission import shape_checks as walk
from holdfast.components.admission import tier_checks as links
from holdfast.components.admission.expressions import text
from holdfast.components.admission.job_admission import Manifest
from holdfast.components.admission.job_expressions import QUEUE_NAME, variables
from holdfast.components.admission.jobset import JOBSET
from holdfast.components.admission.rayjob import RAYJOB
from holdfast.components.admission.shape_checks import jobset_pods, rayjob_pods, shapes
from holdfast.components.fallback_policy.definition import API_VERSION, KIND
from holdfast.scheduling.labels import (
    CONTROLLER,
    CONTROLLER_NAMESPACE,
    FOLLOWS,
    FOLLOWS_VALUE,
    LADDER,
    RECREATE,
    TRAINING,
    TRAINING_VALUE,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pulumi_kubernetes.admissionregistration.v1 import (
        ValidatingAdmissionPolicyBindingSpecArgsDict,
        ValidatingAdmissionPolicySpecArgsDict,
    )

    from holdfast.components.admission.job_expressions import JobKind
    from holdfast.components.admission.rules import AdmissionRule, NodeSelection
    from holdfast.scheduling.json import Json


#: What the API server says where a message would be longer than it takes, or could not be made.
CANNOT: Final = "the job cannot follow the ladder of its namespace"

#: The API server takes 5 KiB of a message. So many sentences, and so many characters of them, stay below that.
MOST_SENTENCES: Final = 3
LONGEST_MESSAGE: Final = 2500

_CONTROLLER: Final = f"system:serviceaccount:{CONTROLLER_NAMESPACE}:{CONTROLLER}"


@dataclass(frozen=True, kw_only=True)
class Judgement:
    """What jobs of a kind are judged by: how many pods an item has, and its own faults, whose order is that of a message."""

    kind: JobKind
    pods: Callable[[str], str]
    faults: Mapping[str, str]


def judgements() -> Sequence[Judgement]:
    """Return what is judged of each kind, beside the links to the tiers' pools."""
    return (
        Judgement(
            kind=JOBSET,
            pods=jobset_pods,
            faults={
                "nothingFollows": faults.nothing_follows(),
                "ownClaims": faults.own_claims(),
                "terminal": faults.ends_at_once(),
            },
        ),
        Judgement(
            kind=RAYJOB,
            pods=rayjob_pods,
            faults={
                "unstoppable": faults.cannot_stop(),
                "nothingFollows": f"size(variables.unstoppable) > 0 ? [] : ({faults.nothing_follows()})",
                "terminal": faults.ends_on_failure(RECREATE),
            },
        ),
    )


def job_validations(
    rules: Sequence[AdmissionRule], capacity: Sequence[NodeSelection], claims: Sequence[str] = ()
) -> Sequence[Manifest]:
    """Return the policy for each kind of job with its binding.

    `rules` are those of the pods, whose tolerations count; `capacity` is by what pods ask for spot; `claims` are the volume
    claims of the stack that are tied to no zone.
    """
    return [_manifest(each, rules, capacity, claims) for each in judgements()]


def _manifest(
    judged: Judgement,
    rules: Sequence[AdmissionRule],
    capacity: Sequence[NodeSelection],
    claims: Sequence[str],
) -> Manifest:
    """A policy and its binding. What cannot be judged passes, and so does a job whose ladder is not there.

    `JobAdmission` refuses what comes before its ladder. A job that is there has to be able to go after it.
    """
    kind = judged.kind
    name = f"training-{kind.resource}-can-fall-back"
    named = {**_surroundings(kind, rules, capacity, claims), **_verdict(judged, capacity)}
    message = f"variables.faults.slice(0, [size(variables.faults), {MOST_SENTENCES}].min()).join({text(' ')})"
    policy: Json = {
        "failurePolicy": "Ignore",
        "paramKind": {"apiVersion": API_VERSION, "kind": KIND},
        "matchConstraints": {
            "namespaceSelector": {"matchLabels": {TRAINING: TRAINING_VALUE}},
            "resourceRules": [
                {
                    "apiGroups": [kind.group],
                    "apiVersions": [kind.version],
                    "operations": ["CREATE", "UPDATE"],
                    "resources": [kind.resource],
                }
            ],
        },
        "matchConditions": [
            {"name": condition, "expression": expression}
            for condition, expression in conditions(kind).items()
        ],
        "variables": [{"name": each, "expression": expression} for each, expression in named.items()],
        "validations": [
            {
                "expression": "size(variables.faults) == 0",
                "message": CANNOT,
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
    """Return what must hold for a request to be looked at, each with its name."""
    operator = f"object.spec.?managedBy.orValue({text(kind.controller)}) == {text(kind.controller)}"
    new, old = (
        f"{kind.items_of(job)}.map(r, {kind.template_of('r')}.orValue({{}}))"
        for job in ("object", "oldObject")
    )
    return {
        # Finalizers are taken off by updates.
        "stays": "!has(object.metadata.deletionTimestamp)",
        "not-by-the-ladder": f"request.userInfo.username != {text(_CONTROLLER)}",
        "follows": f"object.metadata.?labels[?{text(FOLLOWS)}].orValue({text('')}) == {text(FOLLOWS_VALUE)}",
        "not-queued": f"object.metadata.?labels[?{text(QUEUE_NAME)}].orValue({text('')}) == {text('')}",
        "of-its-own-operator": operator,
        "new-pods": f'request.operation == "CREATE" || {new} != {old}',
    }


def _surroundings(
    kind: JobKind,
    rules: Sequence[AdmissionRule],
    capacity: Sequence[NodeSelection],
    claims: Sequence[str],
) -> Mapping[str, str]:
    known = variables(kind, capacity)
    marked = f"metadata.?labels[?{text(FOLLOWS)}].orValue({text('')}) == {text(FOLLOWS_VALUE)}"
    template = kind.template_of("variables.items[i]")
    return {
        **{name: known[name] for name in ("tiers", "pools", "spotPools", "items", "specs")},
        "following": f"lists.range(size(variables.items)).filter(i, {template}.?{marked})",
        "chosen": faults.chosen(),
        "claims": faults.allowed_claims(claims),
        "given": links.given(rules),
        "givenToGpus": links.given_to_gpus(rules),
        "labels": links.labels(),
        "rooms": links.rooms(),
        "taints": links.repelling(),
    }


def _verdict(judged: Judgement, capacity: Sequence[NodeSelection]) -> Mapping[str, str]:
    kind = judged.kind
    own = {
        **judged.faults,
        "offLadder": faults.off_the_ladder(kind),
        "apart": faults.apart(),
        "mixed": faults.mixed(kind, capacity),
        "pinned": faults.pinned(kind),
        "zonal": faults.claims(kind),
    }
    walked = {
        "shapes": shapes(kind, judged.pods),
        "beside": "variables.shapes.filter(s, s.beside)",
        "total": links.total(),
        "start": walk.start(),
        **links.links(),
        "broken": walk.broken(),
        "end": walk.end(),
        "ending": walk.ending(),
    }
    every = " + ".join(f"variables.{name}" for name in (*own, "ending"))
    return {**own, **walked, "faults": every}


@dataclass(frozen=True, kw_only=True)
class JobValidationArgs:
    """What is told of the cluster.

    `rules` are those by which its pods are admitted, whose tolerations count; `capacity` the selections by which pods ask for
    spot, one or more; `claims` the names of volume claims that are tied to no zone.
    """

    rules: tuple[AdmissionRule, ...]
    capacity: tuple[NodeSelection, ...]
    claims: tuple[str, ...] = ()


class JobValidation(ComponentResource):
    """Validation of JobSets and RayJobs that follow a ladder, in the training namespaces of one cluster.

    Creates a ValidatingAdmissionPolicy and its binding for each of the two kinds, `training-jobsets-can-fall-back` and
    `training-rayjobs-can-fall-back`. A job that cannot come to its ladder's end is refused when it is created, and when its
    pod templates are changed by anybody but the fallback controller, with the link that is broken and the fix. It judges
    jobs as JobAdmission has made them, by the facts in their namespace's FallbackPolicy: depend on JobAdmission and on the
    FallbackPolicyDefinition.
    """

    def __init__(self, name: str, args: JobValidationArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:JobValidation", name, None, opts)
        for each in job_validations(args.rules, args.capacity, args.claims):
            policy = ValidatingAdmissionPolicy(
                f"{name}-{each.name}",
                metadata={"name": each.name},
                spec=cast("ValidatingAdmissionPolicySpecArgsDict", each.policy),
                opts=ResourceOptions(parent=self),
            )
            ValidatingAdmissionPolicyBinding(
                f"{name}-{each.name}-binding",
                metadata={"name": each.name},
                spec=cast("ValidatingAdmissionPolicyBindingSpecArgsDict", each.binding),
                opts=ResourceOptions(parent=self, depends_on=[policy]),
            )
        self.register_outputs({})
