"""The component that makes jobs able to follow the ladder of their namespace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

from pulumi import ComponentResource, ResourceOptions
from pulumi_kubernetes.admissionregistration.v1 import MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding

from holdfast.components.admission.job_expressions import JobKind, variables
from holdfast.components.admission.job_patches import as_json_patches, reapplication_variables
from holdfast.components.admission.jobset import JOBSET, jobset_patches, jobset_repairs
from holdfast.components.admission.rayjob import RAYJOB, rayjob_patches, rayjob_repairs
from holdfast.components.admission.rules import TolerationRule
from holdfast.components.fallback_policy.definition import API_VERSION, KIND
from holdfast.scheduling.labels import LADDER, POOL, TRAINING, TRAINING_VALUE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from pulumi_kubernetes.admissionregistration.v1 import (
        MutatingAdmissionPolicyBindingSpecArgsDict,
        MutatingAdmissionPolicySpecArgsDict,
    )

    from holdfast.components.admission.rules import AdmissionRule, NodeSelection
    from holdfast.scheduling.json import Json


_PATCHES: Final = "patches"


@dataclass(frozen=True, kw_only=True)
class JobPolicy:
    """What is done to a kind of job.

    When it is created, by `patches`, which see the ladder of its namespace; and when its manifest is applied again over
    it, by `repairs`. Both are told by what pods ask for spot.
    """

    kind: JobKind
    patches: Callable[[Sequence[NodeSelection]], str]
    repairs: Callable[[Sequence[NodeSelection]], str]


JOB_POLICIES: Final = (
    JobPolicy(kind=JOBSET, patches=jobset_patches, repairs=jobset_repairs),
    JobPolicy(kind=RAYJOB, patches=rayjob_patches, repairs=rayjob_repairs),
)


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """A policy's name, which its binding has too, and both specifications."""

    name: str
    policy: Json
    binding: Json


def job_manifests(capacity: Sequence[NodeSelection]) -> Sequence[Manifest]:
    """Return every policy for jobs with its binding; `capacity` is by what pods ask for spot."""
    return [
        manifest
        for each in JOB_POLICIES
        for manifest in (_on_creation(each, capacity), _on_reapplication(each, capacity))
    ]


def _on_creation(policy: JobPolicy, capacity: Sequence[NodeSelection]) -> Manifest:
    """A job that comes before its ladder is refused: let in as it is, it could never follow one."""
    name = f"training-{policy.kind.resource}"
    spec = _spec(policy.kind, "CREATE", variables(policy.kind, capacity), policy.patches(capacity))
    return Manifest(
        name=name,
        policy={"failurePolicy": "Fail", "paramKind": {"apiVersion": API_VERSION, "kind": KIND}, **spec},
        binding={"policyName": name, "paramRef": {"name": LADDER, "parameterNotFoundAction": "Deny"}},
    )


def _on_reapplication(policy: JobPolicy, capacity: Sequence[NodeSelection]) -> Manifest:
    """It sees no ladder, and never refuses: a job must be able to go, finalizers and all, when its ladder has gone."""
    name = f"training-{policy.kind.resource}-reapplied"
    spec = _spec(policy.kind, "UPDATE", reapplication_variables(policy.kind), policy.repairs(capacity))
    return Manifest(name=name, policy={"failurePolicy": "Ignore", **spec}, binding={"policyName": name})


def _spec(kind: JobKind, operation: str, named: Mapping[str, str], patches: str) -> Json:
    """Return what both policies have.

    One mutation, since its patches speak of places in the object as it came. It runs again when something after it
    changes the job, and finds its own work done.
    """
    return {
        "reinvocationPolicy": "IfNeeded",
        "matchConstraints": {
            "namespaceSelector": {"matchLabels": {TRAINING: TRAINING_VALUE}},
            "resourceRules": [
                {
                    "apiGroups": [kind.group],
                    "apiVersions": [kind.version],
                    "operations": [operation],
                    "resources": [kind.resource],
                }
            ],
        },
        # The patches are a variable too: the API server repeats a mutation's own expression, all of it, to whoever created
        # an object on which it fails.
        "variables": [
            {"name": name, "expression": expression}
            for name, expression in {**named, _PATCHES: patches}.items()
        ],
        "mutations": [
            {"patchType": "JSONPatch", "jsonPatch": {"expression": as_json_patches(f"variables.{_PATCHES}")}}
        ],
    }


def capacity_selections(rules: Iterable[AdmissionRule]) -> tuple[NodeSelection, ...]:
    """By what pods ask for spot under these rules, other than by a pool's name."""
    found = [
        selection
        for rule in rules
        if isinstance(rule, TolerationRule)
        for selection in rule.selections
        if selection.key != POOL
    ]
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True, kw_only=True)
class JobAdmissionArgs:
    """What admission of jobs is told: the selections by which pods ask for spot, one or more."""

    capacity: tuple[NodeSelection, ...]


class JobAdmission(ComponentResource):
    """Admission of JobSets and RayJobs in the training namespaces of one cluster.

    Creates a MutatingAdmissionPolicy and its binding for jobs of each of the two kinds that are created, `training-jobsets`
    and `training-rayjobs`, and for such whose manifest is applied again (`…-reapplied`). A job that asks for spot, or has
    the label `holdfast.dev/fallback: "true"`, is made one that the fallback controller can move; what it said before is kept
    in an annotation. It needs the cluster's FallbackPolicyDefinition, whose objects the policies read: depend on it.
    """

    def __init__(self, name: str, args: JobAdmissionArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:JobAdmission", name, None, opts)
        for each in job_manifests(args.capacity):
            policy = MutatingAdmissionPolicy(
                f"{name}-{each.name}",
                metadata={"name": each.name},
                spec=cast("MutatingAdmissionPolicySpecArgsDict", each.policy),
                opts=ResourceOptions(parent=self),
            )
            MutatingAdmissionPolicyBinding(
                f"{name}-{each.name}-binding",
                metadata={"name": each.name},
                spec=cast("MutatingAdmissionPolicyBindingSpecArgsDict", each.binding),
                opts=ResourceOptions(parent=self, depends_on=[policy]),
            )
        self.register_outputs({})
