"""The component that keeps jobs out which cannot follow the ladder of their namespace."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from pulumi import ComponentResource, ResourceOptions
from pulumi_kubernetes.admissionregistration.v1 import (
    ValidatingAdmissionPolicy,
    ValidatingAdmissionPolicyBinding,
)

from holdfast.components.admission.job_validations import job_validations

if TYPE_CHECKING:
    from pulumi_kubernetes.admissionregistration.v1 import (
        ValidatingAdmissionPolicyBindingSpecArgsDict,
        ValidatingAdmissionPolicySpecArgsDict,
    )

    from holdfast.components.admission.rules import AdmissionRule, NodeSelection


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
