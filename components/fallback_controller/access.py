"""The component that says what the fallback controller may do."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pulumi import ComponentResource, ResourceOptions
from pulumi_kubernetes.core.v1 import ServiceAccount
from pulumi_kubernetes.rbac.v1 import ClusterRole, ClusterRoleBinding, Role, RoleBinding

from holdfast.components.fallback_controller.rights import (
    CLUSTER_RULES,
    HOLDING_RULES,
    JOB_RULES,
    JOBS_ROLE,
    OWN_RULES,
    SUBJECT,
    role_ref,
)
from holdfast.scheduling.labels import CONTROLLER, CONTROLLER_NAMESPACE, RESERVATION_NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi_kubernetes.meta.v1 import ObjectMetaArgsDict
    from pulumi_kubernetes.rbac.v1 import PolicyRuleArgsDict, RoleRefArgsDict, SubjectArgsDict

    from holdfast.scheduling.json import Json


class ControllerAccess(ComponentResource):
    """The fallback controller's service account and its rights.

    Creates the ServiceAccount, the ClusterRole of what it reads with its binding, the ClusterRole of what it does to jobs,
    which is bound in training namespaces alone, and a Role with its binding in its own namespace and in that of
    placeholders. Both namespaces must be there.
    """

    def __init__(self, name: str, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:ControllerAccess", name, None, opts)
        ServiceAccount(
            f"{name}-account",
            metadata={"name": CONTROLLER, "namespace": CONTROLLER_NAMESPACE},
            opts=ResourceOptions(parent=self),
        )
        reading = ClusterRole(
            f"{name}-cluster-role",
            metadata={"name": CONTROLLER},
            rules=_rules(CLUSTER_RULES),
            opts=ResourceOptions(parent=self),
        )
        ClusterRoleBinding(
            f"{name}-cluster-role-binding",
            metadata={"name": CONTROLLER},
            role_ref=_role("ClusterRole", CONTROLLER),
            subjects=_subjects(),
            opts=ResourceOptions(parent=self, depends_on=[reading]),
        )
        ClusterRole(
            f"{name}-jobs-role",
            metadata={"name": JOBS_ROLE},
            rules=_rules(JOB_RULES),
            opts=ResourceOptions(parent=self),
        )
        for namespace, rules in ((CONTROLLER_NAMESPACE, OWN_RULES), (RESERVATION_NAMESPACE, HOLDING_RULES)):
            metadata: ObjectMetaArgsDict = {"name": CONTROLLER, "namespace": namespace}
            role = Role(
                f"{name}-{namespace}-role",
                metadata=metadata,
                rules=_rules(rules),
                opts=ResourceOptions(parent=self),
            )
            RoleBinding(
                f"{name}-{namespace}-role-binding",
                metadata=metadata,
                role_ref=_role("Role", CONTROLLER),
                subjects=_subjects(),
                opts=ResourceOptions(parent=self, depends_on=[role]),
            )
        self.register_outputs({})


def _rules(rules: Sequence[Json]) -> Sequence[PolicyRuleArgsDict]:
    return cast("Sequence[PolicyRuleArgsDict]", rules)


def _role(kind: str, name: str) -> RoleRefArgsDict:
    return cast("RoleRefArgsDict", role_ref(kind, name))


def _subjects() -> Sequence[SubjectArgsDict]:
    return cast("Sequence[SubjectArgsDict]", [SUBJECT])
