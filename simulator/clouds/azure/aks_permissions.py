"""What a cluster's identity has to be allowed before AKS makes the cluster."""

from typing import Final

from holdfast.simulator.clouds.azure.errors import said
from holdfast.simulator.clouds.azure.identity import IDENTITY, has_role
from holdfast.simulator.clouds.azure.names import group_id, same_id
from holdfast.simulator.clouds.catalogue import Making
from holdfast.simulator.kubernetes_client.objects import mapping, sequence

_NETWORK_CONTRIBUTOR: Final = "4d97b98b-1d4f-4787-a291-c67834d212e7"
_READER: Final = "acdd72a7-3385-48ef-bd42-f606fba81ae7"


def _may_not_join(making: Making) -> str | None:
    """The identity that puts machines into a subnet has to be allowed to."""
    for principal in _principals(making):
        for profile in map(mapping, sequence(making.inputs.get("agentPoolProfiles"))):
            subnet = str(profile.get("vnetSubnetID") or "")
            if subnet and not has_role(
                making.inventory, principal_id=principal, role=_NETWORK_CONTRIBUTOR, scope=subnet
            ):
                return said(
                    "LinkedAuthorizationFailed",
                    f"The client '{principal}' with object id '{principal}' has permission to perform action "
                    f"'Microsoft.Compute/virtualMachineScaleSets/write' on scope '{_machines(making)}'; however, it does "
                    "not have permission to perform action(s) 'Microsoft.Network/virtualNetworks/subnets/join/action' on "
                    f"the linked scope(s) '{subnet}' (respectively) or the linked scope(s) are invalid.",
                )
    return None


def _may_not_encrypt(making: Making) -> str | None:
    """The identity has to be allowed to read the disk encryption set."""
    disks = making.inputs.get("diskEncryptionSetID")
    for principal in _principals(making):
        if disks and not has_role(making.inventory, principal_id=principal, role=_READER, scope=str(disks)):
            return said(
                "AuthorizationFailed",
                f"The client '{principal}' with object id '{principal}' does not have authorization to perform action "
                f"'Microsoft.Compute/diskEncryptionSets/read' over scope '{disks}' or the scope is invalid.",
            )
    return None


def _principals(making: Making) -> list[str]:
    """Who the cluster is, as far as the stack made it."""
    given = sequence(mapping(making.inputs.get("identity")).get("userAssignedIdentities"))
    return [
        str(one.outputs.get("principalId"))
        for one in making.inventory.of_type(IDENTITY)
        if any(same_id(one.id, named) for named in given)
    ]


def _machines(making: Making) -> str:
    group = group_id(making).rpartition("/")[0]
    return f"{group}/{making.inputs.get('nodeResourceGroup')}/providers/Microsoft.Compute/virtualMachineScaleSets"


MISSING_PERMISSIONS: Final = (_may_not_join, _may_not_encrypt)
