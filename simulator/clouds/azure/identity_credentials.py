"""The credentials by which Kubernetes' service accounts become identities of Azure's: what it adds and refuses.

Not played: that two which are written at the same moment for one identity are refused. Here each is written at once.
"""

from collections.abc import Mapping
from typing import Final

from holdfast.scheduling.json import JsonValue
from holdfast.simulator.clouds.azure.errors import said
from holdfast.simulator.clouds.azure.identity import IDENTITY
from holdfast.simulator.clouds.azure.names import group_id, same_id
from holdfast.simulator.clouds.catalogue import Invoke, Making, Rules
from holdfast.simulator.clouds.state import CloudObject

_CREDENTIAL: Final = "azure-native:managedidentity:FederatedIdentityCredential"

_MOST: Final = 20


_PARENT: Final = ("resourceGroupName", "resourceName")


def _identity(making: Making) -> CloudObject | None:
    """The identity that a credential is one of."""
    return next((one for one in making.inventory.of_type(IDENTITY) if _is_beside(making, one)), None)


def _credential_id(making: Making) -> str:
    identity = _identity(making)
    path = f"{group_id(making)}/providers/Microsoft.ManagedIdentity/userAssignedIdentities"
    home = identity.id if identity else f"{path}/{making.inputs.get('resourceName')}"
    return f"{home}/federatedIdentityCredentials/{making.name}"


def _no_identity(making: Making) -> str | None:
    if _identity(making) is not None:
        return None
    return said(
        "ParentResourceNotFound",
        f"The parent user-assigned identity '{making.inputs.get('resourceName')}' does not exist.",
    )


def _one_too_many(making: Making) -> str | None:
    if len(_beside(making)) < _MOST:
        return None
    return said(
        "BadRequest",
        f"A maximum of {_MOST} federated identity credentials can be added to a managed identity.",
    )


def _same_subject(making: Making) -> str | None:
    asked = tuple(making.inputs.get(field) for field in ("issuer", "subject"))
    if asked not in _beside(making):
        return None
    return said("BadRequest", "Issuer and subject combination already exists for this Managed Identity.")


def _beside(making: Making) -> list[tuple[JsonValue, ...]]:
    """Issuer and subject of each other credential of an identity."""
    return [
        tuple(one.inputs.get(field) for field in ("issuer", "subject"))
        for one in making.inventory.of_type(_CREDENTIAL)
        if _is_beside(making, one) and one.id != making.id
    ]


def _is_beside(making: Making, other: CloudObject) -> bool:
    return all(same_id(other.inputs.get(field), making.inputs.get(field)) for field in _PARENT)


RESOURCES: Mapping[str, Rules] = {
    _CREDENTIAL: Rules(
        name_property="federatedIdentityCredentialResourceName",
        unique_within=_PARENT,
        longest_name=120,
        identify=_credential_id,
        refuse_create=(_no_identity, _one_too_many, _same_subject),
        refuse_update=(_same_subject,),
    ),
}

INVOKES: Mapping[str, Invoke] = {}
