"""What users may do in training namespaces: a Role and a RoleBinding for each namespace and kind of user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pulumi import ComponentResource, ResourceOptions

from pulumi_holdfast.kubernetes.kubernetes_object import RBAC, KubernetesObject
from pulumi_holdfast.kubernetes.namespace_permissions import NamespaceRole, group_of, namespace_rules


@dataclass(frozen=True, kw_only=True)
class NamespaceRolesArgs:
    """The namespace, which exists, and the roles that its users have."""

    namespace: str
    roles: Sequence[NamespaceRole]


class NamespaceRoles(ComponentResource):
    """The roles of users in one training namespace (`holdfast:index:NamespaceRoles`).

    Creates for each role a Role and the RoleBinding of its group, `holdfast:<namespace>:<role>`. A cloud's
    identities become members of the group by the cloud's own means.
    """

    def __init__(self, name: str, args: NamespaceRolesArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:NamespaceRoles", name, None, opts)
        for role in args.roles:
            metadata = {"name": f"holdfast-{role}", "namespace": args.namespace}
            made = KubernetesObject(
                f"{name}-{role}",
                RBAC,
                "Role",
                {"metadata": metadata, "rules": namespace_rules(role)},
                opts=ResourceOptions(parent=self),
            )
            KubernetesObject(
                f"{name}-{role}-binding",
                RBAC,
                "RoleBinding",
                {
                    "metadata": metadata,
                    "roleRef": {
                        "apiGroup": "rbac.authorization.k8s.io",
                        "kind": "Role",
                        "name": f"holdfast-{role}",
                    },
                    "subjects": [
                        {
                            "apiGroup": "rbac.authorization.k8s.io",
                            "kind": "Group",
                            "name": group_of(args.namespace, role),
                        }
                    ],
                },
                opts=ResourceOptions(parent=self, depends_on=[made]),
            )
        self.register_outputs({})
