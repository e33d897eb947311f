"""Admission of jobs: policies that adjust JobSets and RayJobs so that the controller can move them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pulumi import ComponentResource, ResourceOptions

from pulumi_holdfast.kubernetes.admission.job_expressions import JobKind, variables
from pulumi_holdfast.kubernetes.admission.job_patches import as_json_patches, reapplication_variables
from pulumi_holdfast.kubernetes.admission.jobset import JOBSET, jobset_patches, jobset_repairs
from pulumi_holdfast.kubernetes.admission.rayjob import RAYJOB, rayjob_patches, rayjob_repairs
from pulumi_holdfast.kubernetes.admission.rules import AdmissionRule, NodeSelection, TolerationRule
from pulumi_holdfast.kubernetes.fallback_policy import API_VERSION, KIND
from pulumi_holdfast.kubernetes.kubernetes_object import (
    admission_policy,
    in_training_namespaces,
    resource_rule,
)
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import LADDER, POOL

_PATCHES: Final = "patches"


@dataclass(frozen=True, kw_only=True)
class JobPolicy:
    """The patches for one kind of job.

    `patches` apply on creation, with the namespace's ladder as `params`. `repairs` apply when a manifest is
    applied again over the adjusted job. The argument of both are the labels with which pods select spot.
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
    """A policy and its binding: their common name and both specifications."""

    name: str
    policy: Json
    binding: Json


def match_constraints(kind: JobKind, *operations: str) -> Json:
    """Return the field of a policy on jobs of a kind in training namespaces."""
    return in_training_namespaces(
        resource_rule(kind.group, kind.resource, on=operations, version=kind.version)
    )


def job_manifests(capacity: Sequence[NodeSelection]) -> Sequence[Manifest]:
    """Return all policies for jobs; `capacity` are the labels with which pods select spot."""
    return [
        manifest
        for each in JOB_POLICIES
        for manifest in (_on_creation(each, capacity), _on_reapplication(each, capacity))
    ]


def _on_creation(policy: JobPolicy, capacity: Sequence[NodeSelection]) -> Manifest:
    """Rejects a job that is created before its ladder: an unadjusted job could never follow one."""
    name = f"training-{policy.kind.resource}"
    spec = _spec(policy.kind, "CREATE", variables(policy.kind, capacity), policy.patches(capacity))
    return Manifest(
        name=name,
        policy={"failurePolicy": "Fail", "paramKind": {"apiVersion": API_VERSION, "kind": KIND}, **spec},
        binding={"policyName": name, "paramRef": {"name": LADDER, "parameterNotFoundAction": "Deny"}},
    )


def _on_reapplication(policy: JobPolicy, capacity: Sequence[NodeSelection]) -> Manifest:
    """Needs no ladder and never rejects: removing finalizers must work after the ladder is deleted."""
    name = f"training-{policy.kind.resource}-reapplied"
    spec = _spec(policy.kind, "UPDATE", reapplication_variables(policy.kind), policy.repairs(capacity))
    return Manifest(name=name, policy={"failurePolicy": "Ignore", **spec}, binding={"policyName": name})


def _spec(kind: JobKind, operation: str, named: Mapping[str, str], patches: str) -> Json:
    """Return the fields that both policies share.

    There is one mutation because its patches use positions in the original object. A reinvocation finds the
    patches already applied and returns none.
    """
    return {
        "reinvocationPolicy": "IfNeeded",
        "matchConstraints": match_constraints(kind, operation),
        # The patches are a variable because the API server includes a mutation's whole expression in the
        # error that it returns when the mutation fails.
        "variables": [
            {"name": name, "expression": expression}
            for name, expression in {**named, _PATCHES: patches}.items()
        ],
        "mutations": [
            {"patchType": "JSONPatch", "jsonPatch": {"expression": as_json_patches(f"variables.{_PATCHES}")}}
        ],
    }


def capacity_selections(rules: Iterable[AdmissionRule]) -> tuple[NodeSelection, ...]:
    """Return the labels, other than a pool's name, with which pods select spot under these rules."""
    found = [
        selection
        for rule in rules
        if isinstance(rule, TolerationRule)
        for selection in rule.selections
        if selection.key != POOL
    ]
    return tuple(dict.fromkeys(found))


class JobAdmission(ComponentResource):
    """Admission of JobSets and RayJobs in training namespaces (`holdfast:index:JobAdmission`).

    Creates a MutatingAdmissionPolicy and its binding for each kind of job on creation (`training-jobsets`,
    `training-rayjobs`) and on reapplication of a manifest (`training-…-reapplied`). A job that selects spot
    or has the label `holdfast.dev/fallback: "true"` is adjusted so that the fallback controller can move it;
    its original values are kept in an annotation. The policies read FallbackPolicies: depend on
    their definition. `capacity` are the labels with which pods select spot, one or more.
    """

    def __init__(
        self, name: str, opts: ResourceOptions | None = None, *, capacity: Sequence[NodeSelection]
    ) -> None:
        super().__init__("holdfast:index:JobAdmission", name, None, opts)
        for each in job_manifests(capacity):
            metadata = {"name": each.name}
            admission_policy(
                f"{name}-{each.name}", "MutatingAdmissionPolicy", metadata, each.policy, each.binding, self
            )
        self.register_outputs({})
