"""The component that puts the admission rules into force on one cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from pulumi import ComponentResource, ResourceOptions
from pulumi_kubernetes.admissionregistration.v1 import MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding

from holdfast.components.admission.manifests import annotations_of, binding_spec, policy_name, policy_spec
from holdfast.components.admission.rules import TolerationRule
from holdfast.components.admission.supported_version import version_problem
from holdfast.scheduling.errors import ConfigError

if TYPE_CHECKING:
    from pulumi_kubernetes.admissionregistration.v1 import (
        MutatingAdmissionPolicyBindingSpecArgsDict,
        MutatingAdmissionPolicySpecArgsDict,
    )

    from holdfast.components.admission.rules import AdmissionRule


@dataclass(frozen=True, kw_only=True)
class TrainingAdmissionArgs:
    """What admission is told: the cluster's version, as `1.36`, and one rule for each taint its pods may meet."""

    kubernetes_version: str
    rules: tuple[AdmissionRule, ...]


class TrainingAdmission(ComponentResource):
    """Admission of pods in the training namespaces of one cluster.

    Creates, for each rule, a MutatingAdmissionPolicy and its binding, named `training-<rule>-pods`. They act on pods
    that are created in namespaces labelled `holdfast.dev/training: "true"`, and on nothing else.

    Raises ConfigError on a cluster older than Kubernetes 1.36.
    """

    def __init__(self, name: str, args: TrainingAdmissionArgs, opts: ResourceOptions | None = None) -> None:
        taints = [rule.taint for rule in args.rules if isinstance(rule, TolerationRule)]
        problem = version_problem("kubernetes_version", args.kubernetes_version, taints)
        if problem is not None:
            raise ConfigError([problem])
        super().__init__("holdfast:index:TrainingAdmission", name, None, opts)
        for rule in args.rules:
            policy = MutatingAdmissionPolicy(
                f"{name}-{rule.name}",
                metadata={"name": policy_name(rule), "annotations": annotations_of(rule)},
                spec=cast("MutatingAdmissionPolicySpecArgsDict", policy_spec(rule)),
                opts=ResourceOptions(parent=self),
            )
            MutatingAdmissionPolicyBinding(
                f"{name}-{rule.name}-binding",
                metadata={"name": policy_name(rule)},
                spec=cast("MutatingAdmissionPolicyBindingSpecArgsDict", binding_spec(rule)),
                opts=ResourceOptions(parent=self, depends_on=[policy]),
            )
        self.register_outputs({})
