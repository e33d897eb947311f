"""The permissions of users in training namespaces, as rules of Roles; `namespace_roles.py` creates the Roles."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
