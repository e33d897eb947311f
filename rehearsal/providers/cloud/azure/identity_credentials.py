"""The credentials by which Kubernetes' service accounts become identities of Azure's: what it adds and refuses.

Not played: that two which are written at the same moment for one identity are refused. Here each is written at once.
"""

from collections.abc import Mapping
from typing import Final

from rehearsal.providers.cloud.azure.names import group_id
from rehearsal.providers.cloud.catalogue import Invoke, Making, Rules
from rehearsal.providers.cloud.state import CloudObject
from scheduling.json import JsonValue

_IDENTITY: Final = "azure-native:managedidentity:UserAssignedIdentity"
_CREDENTIAL: Final = "azure-native:managedidentity:FederatedIdentityCredential"

_MOST: Final = 20


_PARENT: Final = ("resourceGroupName", "resourceName")


def _identity_id(making: Making) -> str:
    path = "providers/Microsoft.ManagedIdentity/userAssignedIdentities"
    return f"{group_id(making)}/{path}/{making.inputs.get('resourceName')}"


def _no_identity(making: Making) -> str | None:
    if any(_is_beside(making, one) for one in making.inventory.of_type(_IDENTITY)):
        return None
    return f"Code=NotFound: The parent user-assigned identity '{_identity_id(making)}' does not exist."


def _one_too_many(making: Making) -> str | None:
    if len(_beside(making)) < _MOST:
        return None
    return f"Code=BadRequest: A maximum of {_MOST} federated identity credentials can be added to a managed identity."


def _same_subject(making: Making) -> str | None:
    asked = tuple(making.inputs.get(field) for field in ("issuer", "subject"))
    if asked not in _beside(making):
        return None
    return "Code=BadRequest: Issuer and subject combination already exists for this Managed Identity."


def _beside(making: Making) -> list[tuple[JsonValue, ...]]:
    """Issuer and subject of each other credential of an identity."""
    return [
        tuple(one.inputs.get(field) for field in ("issuer", "subject"))
        for one in making.inventory.of_type(_CREDENTIAL)
        if _is_beside(making, one) and one.id != making.id
    ]


def _is_beside(making: Making, other: CloudObject) -> bool:
    return all(other.inputs.get(field) == making.inputs.get(field) for field in _PARENT)


RESOURCES: Mapping[str, Rules] = {
    _CREDENTIAL: Rules(
        name_property="federatedIdentityCredentialResourceName",
        unique_within=_PARENT,
        longest_name=120,
        identify=lambda making: f"{_identity_id(making)}/federatedIdentityCredentials/{making.name}",
        refuse_create=(_no_identity, _one_too_many, _same_subject),
        refuse_update=(_same_subject,),
    ),
}

INVOKES: Mapping[str, Invoke] = {}
