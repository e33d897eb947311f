"""Azure's built-in roles, and the names of their assignments. Pure."""

from __future__ import annotations

from typing import Final
from uuid import UUID, uuid5

#: Reads, writes, deletes and lists blobs; not their older versions, and not who else may.
STORAGE_BLOB_DATA_CONTRIBUTOR: Final = "ba92f5b4-2d11-453d-a403-e96b0029c9fe"

#: Puts machines and load balancers into a subnet, when it is given there.
NETWORK_CONTRIBUTOR: Final = "4d97b98b-1d4f-4787-a291-c67834d212e7"
#: Sees, and changes nothing.
READER: Final = "acdd72a7-3385-48ef-bd42-f606fba81ae7"
#: Does everything in a cluster that takes Azure's roles for its own: "Azure Kubernetes Service RBAC Cluster Admin".
AKS_RBAC_CLUSTER_ADMIN: Final = "b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b"

# Any one will do, as long as it is always the same.
_NAMES: Final = UUID("8f5ac1b2-0f7c-5a53-9d7e-3f2f0c2f6d11")


def role_definition_id(subscription_id: str, role: str) -> str:
    """The id of a built-in role, as Azure shows it in an assignment: within the subscription."""
    return f"/subscriptions/{subscription_id}/providers/Microsoft.Authorization/roleDefinitions/{role}"


def assignment_name(*, scope: str, principal_id: str, role: str) -> str:
    """The name of the assignment of a role to a principal at a scope, the same each time it is asked for.

    Azure tells assignments apart by these names alone, whatever the subscription, and changes neither principal nor
    scope of one that is there (`RoleAssignmentUpdateNotPermitted`): so all three are in it.
    """
    return str(uuid5(_NAMES, f"{scope.lower()}|{principal_id}|{role}"))
