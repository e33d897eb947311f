"""The admission policies for JobSets and RayJobs as Kubernetes objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holdfast.components.admission.job_expressions import JobKind, variables
from holdfast.components.admission.job_patches import as_json_patches
from holdfast.components.admission.job_reapplication import reapplication_variables
from holdfast.components.admission.jobset_rules import JOBSET, jobset_patches, jobset_repairs
from holdfast.components.admission.rayjob_rules import RAYJOB, rayjob_patches, rayjob_repairs
from holdfast.components.fallback_policy.definition import API_VERSION, KIND
from holdfast.scheduling.labels import LADDER, TRAINING, TRAINING_VALUE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from holdfast.components.admission.rules import NodeSelection
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
