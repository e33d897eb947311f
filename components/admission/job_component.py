"""The component that makes jobs able to follow the ladder of their namespace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from pulumi import ComponentResource, ResourceOptions
from pulumi_kubernetes.admissionregistration.v1 import MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding

from holdfast.components.admission.job_manifests import job_manifests
from holdfast.components.admission.rules import TolerationRule
from holdfast.scheduling.labels import POOL

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pulumi_kubernetes.admissionregistration.v1 import (
        MutatingAdmissionPolicyBindingSpecArgsDict,
        MutatingAdmissionPolicySpecArgsDict,
    )

    from holdfast.components.admission.rules import AdmissionRule, NodeSelection


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
