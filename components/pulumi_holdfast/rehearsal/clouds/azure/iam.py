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
    subscription_of,
)
from pulumi_holdfast.rehearsal.clouds.catalogue import Call, Invoke, ResourceRequest, Rules
from pulumi_holdfast.rehearsal.clouds.relations import find, needs_at, once, only_real, same_id
from pulumi_holdfast.rehearsal.clouds.state import Inventory

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


def _identity_path(request: ResourceRequest, name: JsonValue) -> str:
    # Azure returns this part of the ids of managed identities in lower case.
    group = group_id(request).replace("/resourceGroups/", "/resourcegroups/")
    return f"{group}/providers/Microsoft.ManagedIdentity/userAssignedIdentities/{name}"


def _assignment_id(request: ResourceRequest) -> str:
    return f"{request.inputs.get('scope')}/providers/Microsoft.Authorization/roleAssignments/{request.name}"


def _principal_type(request: ResourceRequest) -> JsonValue:
    given = request.inputs.get("principalType")
    return given or ("ServicePrincipal" if _is_identity(request) else "User")


def _is_identity(request: ResourceRequest) -> bool:
    return find(request.inventory, IDENTITY, request.inputs.get("principalId"), by="principalId") is not None


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


_IN_IDENTITY: Final = ("resourceGroupName", "resourceName")


def _identity_of(request: ResourceRequest) -> str:
    return _identity_path(request, request.inputs.get("resourceName"))


_same_subject: Final = once(
    said("BadRequest", "Issuer and subject combination already exists for this Managed Identity."),
    *(*_IN_IDENTITY, "issuer", "subject"),
)

RESOURCES: Mapping[str, Rules] = {
    IDENTITY: Rules(
        name_property="resourceName",
        unique_within=("resourceGroupName",),
        longest_name=128,
        identify=lambda request: _identity_path(request, request.name),
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
        refuse_create=(
            _not_found,
            once(
                said("RoleAssignmentExists", "The role assignment already exists."),
                *("scope", "principalId", "roleDefinitionId"),
            ),
        ),
        refuse_update=(_other_role,),
    ),
    "azure-native:managedidentity:FederatedIdentityCredential": Rules(
        name_property="federatedIdentityCredentialResourceName",
        unique_within=_IN_IDENTITY,
        longest_name=120,
        identify=lambda request: f"{_identity_of(request)}/federatedIdentityCredentials/{request.name}",
        refuse_create=(
            needs_at(
                IDENTITY,
                _identity_of,
                said(
                    "ParentResourceNotFound",
                    "The parent user-assigned identity '{inputs[resourceName]}' does not exist.",
                ),
            ),
            _same_subject,
        ),
        refuse_update=(_same_subject,),
    ),
}

INVOKES: Mapping[str, Invoke] = {
    "azure-native:authorization:getClientConfig": _client_config,
    "azure-native:authorization:getClientToken": only_real("the limits of a location are"),
}
