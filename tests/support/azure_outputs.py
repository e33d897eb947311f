"""What Azure adds to a resource beyond its inputs, for the mocks to answer with. Nothing of it is known in a preview."""

from __future__ import annotations

from typing import cast

PRINCIPAL = "00000000-0000-0000-0000-00000000aaaa"
CLIENT = "00000000-0000-0000-0000-00000000cccc"
ADDRESS = "198.51.100.7"

# Where a resource's own name is among its inputs; the group's comes last, since all others name it too.
_NAMES = (
    "federatedIdentityCredentialResourceName",
    "roleAssignmentName",
    "agentPoolName",
    "containerName",
    "accountName",
    "natGatewayName",
    "publicIpAddressName",
    "subnetName",
    "virtualNetworkName",
    "configName",
    "resourceName",
    "resourceGroupName",
)


def computed_outputs(kind: str, name: str, inputs: dict[str, object]) -> dict[str, object]:
    """The outputs that a created resource of a type has and its inputs do not; `name` is its logical one."""
    if not kind.startswith("azure-native:"):
        return {}
    found = {"name": _physical_name(kind, name, inputs)}
    if kind.endswith(":UserAssignedIdentity"):
        return {**found, "principalId": PRINCIPAL, "clientId": CLIENT}
    if kind.endswith(":PublicIPAddress"):
        return {**found, "ipAddress": ADDRESS}
    return found


def shown(kind: str, inputs: dict[str, object]) -> dict[str, object]:
    """The inputs of a type as its outputs spell them, where that is another way; also in a preview."""
    if not kind.endswith(":ManagedCluster") or "identity" not in inputs:
        return inputs
    return {**inputs, "identity": _identity(inputs)}


def _identity(inputs: dict[str, object]) -> dict[str, object]:
    """Identities are asked for by a list of ids, and shown by id."""
    asked = cast("dict[str, object]", inputs["identity"])
    ids = [one for one in cast("list[object]", asked["userAssignedIdentities"]) if isinstance(one, str)]
    by_id = {one: {"principalId": PRINCIPAL, "clientId": CLIENT} for one in ids}
    return {**asked, "userAssignedIdentities": by_id}


def _physical_name(kind: str, name: str, inputs: dict[str, object]) -> object:
    own = _NAMES if kind.endswith(":ResourceGroup") else _NAMES[:-1]
    return next((inputs[one] for one in own if one in inputs), f"{name}0a1b2c3d")
