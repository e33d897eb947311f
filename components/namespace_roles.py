"""What users may do in training namespaces: a Role and a RoleBinding for each namespace and kind of user."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pulumi import ComponentResource, ResourceOptions
from pulumi_kubernetes.rbac.v1 import Role, RoleBinding

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi_kubernetes.rbac.v1 import PolicyRuleArgsDict


class NamespaceRole(StrEnum):
    """The kinds of users of a training namespace."""

    SUBMIT = "submit"
    VIEW = "view"


_READ: Final = ("get", "list", "watch")
_WRITE: Final = ("create", "update", "patch", "delete")
_JOBS: Final[Mapping[str, Sequence[str]]] = {"jobset.x-k8s.io": ("jobsets",), "ray.io": ("rayjobs",)}
_SHOWN: Final[Mapping[str, Sequence[str]]] = {
    "": ("configmaps", "events", "pods", "pods/log", "resourcequotas", "services"),
    "batch": ("jobs",),
    "fallback.holdfast.dev": ("fallbackpolicies",),
    "ray.io": ("rayclusters",),
}


def namespace_rules(role: NamespaceRole) -> Sequence[PolicyRuleArgsDict]:
    """Return the rules of a role.

    `view` reads jobs, their pods and logs. `submit` also creates, changes and deletes jobs and the ConfigMaps
    with their programs, and deletes pods. Neither reads secrets or changes the namespace's ladder and quota.
    """
    reads: list[PolicyRuleArgsDict] = [
        {"api_groups": [group], "resources": list(resources), "verbs": list(_READ)}
        for group, resources in (*_SHOWN.items(), *_JOBS.items())
    ]
    if role is NamespaceRole.VIEW:
        return reads
    return [
        *reads,
        *(
            {"api_groups": [group], "resources": list(resources), "verbs": list(_WRITE)}
            for group, resources in _JOBS.items()
        ),
        {"api_groups": [""], "resources": ["configmaps"], "verbs": list(_WRITE)},
        {"api_groups": [""], "resources": ["pods"], "verbs": ["delete"]},
    ]


def group_of(namespace: str, role: NamespaceRole) -> str:
    """Return the group whose members have a role in a namespace."""
    return f"holdfast:{namespace}:{role}"


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
            made = Role(
                f"{name}-{role}",
                metadata={"name": f"holdfast-{role}", "namespace": args.namespace},
                rules=list(namespace_rules(role)),
                opts=ResourceOptions(parent=self),
            )
            RoleBinding(
                f"{name}-{role}-binding",
                metadata={"name": f"holdfast-{role}", "namespace": args.namespace},
                role_ref={
                    "api_group": "rbac.authorization.k8s.io",
                    "kind": "Role",
                    "name": f"holdfast-{role}",
                },
                subjects=[
                    {
                        "api_group": "rbac.authorization.k8s.io",
                        "kind": "Group",
                        "name": group_of(args.namespace, role),
                    }
                ],
                opts=ResourceOptions(parent=self, depends_on=[made]),
            )
        self.register_outputs({})
