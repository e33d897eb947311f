"""What users may do in training namespaces: a Role and a RoleBinding for each namespace and kind of user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pulumi import ComponentResource, ResourceOptions

from pulumi_holdfast.kubernetes.kubernetes_object import RBAC, KubernetesObject


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


if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulumi_holdfast.ladder.json import Json


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
    "holdfast.dev": ("fallbackpolicies",),
    "ray.io": ("rayclusters",),
}


def namespace_rules(role: NamespaceRole) -> Sequence[Json]:
    """Return the rules of a role.

    `view` reads jobs, their pods and logs. `submit` also creates, changes and deletes jobs and the ConfigMaps
    with their programs, and deletes pods. Neither reads secrets or changes the namespace's ladder and quota.
    """
    reads: list[Json] = [
        {"apiGroups": [group], "resources": list(resources), "verbs": list(_READ)}
        for group, resources in (*_SHOWN.items(), *_JOBS.items())
    ]
    if role is NamespaceRole.VIEW:
        return reads
    return [
        *reads,
        *(
            {"apiGroups": [group], "resources": list(resources), "verbs": list(_WRITE)}
            for group, resources in _JOBS.items()
        ),
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": list(_WRITE)},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["delete"]},
    ]


def group_of(namespace: str, role: NamespaceRole) -> str:
    """Return the group whose members have a role in a namespace."""
    return f"holdfast:{namespace}:{role}"
