"""Azure managed identities, federated credentials and role assignments.

Not simulated: Azure refuses two concurrent writes of federated credentials for one identity.
"""

from collections.abc import Mapping
from typing import Final

from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.rehearsal.clouds.azure.names import (
    CALLER,
    TENANT,
    group_id,
    guid,
    no_group,
    said,
    same_id,
    subscription_of,
)
from pulumi_holdfast.rehearsal.clouds.catalogue import Call, Invoke, ResourceRequest, Rules
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, Inventory
from pulumi_holdfast.rehearsal.errors import RehearsalError

IDENTITY: Final = "azure-native:managedidentity:UserAssignedIdentity"
ASSIGNMENT: Final = "azure-native:authorization:RoleAssignment"


def has_role(inventory: Inventory, *, principal_id: str, role: str, scope: str) -> bool:
    """Whether a principal has a role on a scope or on a parent of it; `role` is the GUID of the role definition."""
    return any(
        same_id(one.inputs.get("principalId"), principal_id)
        and str(one.inputs.get("roleDefinitionId")).lower().endswith(f"/{role.lower()}")
        and f"{scope}/".lower().startswith(f"{one.inputs.get('scope')}/".lower())
        for one in inventory.of_type(ASSIGNMENT)
    )


def _identity_id(request: ResourceRequest) -> str:
    # Azure returns this part of the ids of managed identities in lower case.
    group = group_id(request).replace("/resourceGroups/", "/resourcegroups/")
    return f"{group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{request.name}"


def _assignment_id(request: ResourceRequest) -> str:
    return f"{request.inputs.get('scope')}/providers/Microsoft.Authorization/roleAssignments/{request.name}"


def _principal_type(request: ResourceRequest) -> JsonValue:
    given = request.inputs.get("principalType")
    return given or ("ServicePrincipal" if _is_identity(request) else "User")


def _is_identity(request: ResourceRequest) -> bool:
    asked = request.inputs.get("principalId")
    return any(same_id(one.outputs.get("principalId"), asked) for one in request.inventory.of_type(IDENTITY))


def _not_found(request: ResourceRequest) -> str | None:
    """Entra ID replicates a new identity with a delay; with a `principalType` it is not looked up."""
    given = request.inputs.get("principalType")
    if given == "ServicePrincipal" or not _is_identity(request):
        return None
    if given:
        return said(
            "UnmatchedPrincipalType",
            f"The PrincipalId '{request.inputs.get('principalId')}' has type 'ServicePrincipal' , which is different from "
            f"specified PrinciaplType '{given}'.",
        )
    principal = str(request.inputs.get("principalId")).replace("-", "")
    return said(
        "PrincipalNotFound",
        f"Principal {principal} does not exist in the directory {TENANT}. Check that you have the correct principal ID. "
        "If you are creating this principal and then immediately assigning a role, this error might be related to a "
        "replication delay. In this case, set the role assignment principalType property to a value, such as "
        "ServicePrincipal, User, or Group.",
    )


def _given_already(request: ResourceRequest) -> str | None:
    fields = ("scope", "principalId", "roleDefinitionId")
    for other in request.inventory.of_type(ASSIGNMENT):
        if all(same_id(other.inputs.get(field), request.inputs.get(field)) for field in fields):
            return said("RoleAssignmentExists", "The role assignment already exists.")
    return None


def _other_role(request: ResourceRequest) -> str | None:
    current = request.inventory.find(request.type, request.id)
    if current is None or same_id(
        current.inputs.get("roleDefinitionId"), request.inputs.get("roleDefinitionId")
    ):
        return None
    return said(
        "RoleAssignmentUpdateNotPermitted",
        "Tenant ID, application ID, principal ID, and scope are not allowed to be updated.",
    )


def _client_config(call: Call) -> Json:
    return {
        "clientId": "04b07795-8ddb-461a-bbee-02f9e1bf7b46",
        "objectId": CALLER,
        "subscriptionId": subscription_of(call.configuration),
        "tenantId": str(call.configuration.get("tenantId") or TENANT),
    }


def _client_token(_: Call) -> Json:
    raise RehearsalError("the limits of a location are not simulated; only a real subscription knows them")


RESOURCES: Mapping[str, Rules] = {
    IDENTITY: Rules(
        name_property="resourceName",
        unique_within=("resourceGroupName",),
        longest_name=128,
        identify=_identity_id,
        immutable=frozenset({"location"}),
        computed={
            "clientId": lambda request: guid(request, "client"),
            "principalId": lambda request: guid(request, "principal"),
            "tenantId": lambda request: str(request.configuration.get("tenantId") or TENANT),
        },
        refuse_create=(no_group,),
    ),
    ASSIGNMENT: Rules(
        name_property="roleAssignmentName",
        unique_within=("scope",),
        identify=_assignment_id,
        immutable=frozenset({"principalId", "scope"}),
        computed={"principalType": _principal_type},
        refuse_create=(_not_found, _given_already),
        refuse_update=(_other_role,),
    ),
}
INVOKES: Mapping[str, Invoke] = {
    "azure-native:authorization:getClientConfig": _client_config,
    "azure-native:authorization:getClientToken": _client_token,
}


_CREDENTIAL: Final = "azure-native:managedidentity:FederatedIdentityCredential"


_PARENT: Final = ("resourceGroupName", "resourceName")


def _identity(request: ResourceRequest) -> CloudObject | None:
    """The identity of a credential."""
    return next((one for one in request.inventory.of_type(IDENTITY) if _is_beside(request, one)), None)


def _credential_id(request: ResourceRequest) -> str:
    identity = _identity(request)
    path = f"{group_id(request)}/providers/Microsoft.ManagedIdentity/userAssignedIdentities"
    home = identity.id if identity else f"{path}/{request.inputs.get('resourceName')}"
    return f"{home}/federatedIdentityCredentials/{request.name}"


def _no_identity(request: ResourceRequest) -> str | None:
    if _identity(request) is not None:
        return None
    return said(
        "ParentResourceNotFound",
        f"The parent user-assigned identity '{request.inputs.get('resourceName')}' does not exist.",
    )


def _same_subject(request: ResourceRequest) -> str | None:
    asked = tuple(request.inputs.get(field) for field in ("issuer", "subject"))
    if asked not in _beside(request):
        return None
    return said("BadRequest", "Issuer and subject combination already exists for this Managed Identity.")


def _beside(request: ResourceRequest) -> list[tuple[JsonValue, ...]]:
    """Issuer and subject of the identity's other credentials."""
    return [
        tuple(one.inputs.get(field) for field in ("issuer", "subject"))
        for one in request.inventory.of_type(_CREDENTIAL)
        if _is_beside(request, one) and one.id != request.id
    ]


def _is_beside(request: ResourceRequest, other: CloudObject) -> bool:
    return all(same_id(other.inputs.get(field), request.inputs.get(field)) for field in _PARENT)


CREDENTIALS: Mapping[str, Rules] = {
    _CREDENTIAL: Rules(
        name_property="federatedIdentityCredentialResourceName",
        unique_within=_PARENT,
        longest_name=120,
        identify=_credential_id,
        refuse_create=(_no_identity, _same_subject),
        refuse_update=(_same_subject,),
    )
}
