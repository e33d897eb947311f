"""What belongs to which cluster."""

from typing import Final

from holdfast.scheduling.json import JsonValue
from holdfast.simulator.clouds.catalogue import Making
from holdfast.simulator.clouds.state import CloudObject, Inventory

CLUSTER: Final = "aws:eks/cluster:Cluster"
NODE_GROUP: Final = "aws:eks/nodeGroup:NodeGroup"
ADDON: Final = "aws:eks/addon:Addon"
ACCESS_ENTRY: Final = "aws:eks/accessEntry:AccessEntry"
IDENTITY: Final = "aws:eks/podIdentityAssociation:PodIdentityAssociation"
ROLE: Final = "aws:iam/role:Role"


def cluster_of(making: Making) -> CloudObject | None:
    """Return the cluster an object is made in, None where there is none of that name."""
    name = making.inputs.get("clusterName")
    return next((one for one in making.inventory.of_type(CLUSTER) if one.outputs.get("name") == name), None)


def no_cluster(making: Making) -> str | None:
    """Refuse what is made in a cluster that is not there."""
    if cluster_of(making) is not None:
        return None
    return f"ResourceNotFoundException: No cluster found for name: {making.inputs.get('clusterName')}."


def belonging_to(cluster: JsonValue, token: str, inventory: Inventory) -> list[CloudObject]:
    """Return the objects of a type that are in the cluster of a name."""
    return [one for one in inventory.of_type(token) if one.inputs.get("clusterName") == cluster]


def role_of(arn: JsonValue, inventory: Inventory) -> CloudObject | None:
    """Return the role of an ARN."""
    return next((one for one in inventory.of_type(ROLE) if one.outputs.get("arn") == arn), None)


def trusts(role: CloudObject | None, service: str) -> bool:
    """Tell whether a service (`eks`) may assume a role."""
    return role is not None and f"{service}.amazonaws.com" in str(role.inputs.get("assumeRolePolicy"))


def policies_of(role: CloudObject, inventory: Inventory) -> set[str]:
    """Return the names of the policies that a role holds."""
    return {
        str(one.inputs.get("policyArn")).rpartition("/")[2]
        for one in inventory.of_type("aws:iam/rolePolicyAttachment:RolePolicyAttachment")
        if one.inputs.get("role") in (role.outputs.get("name"), role.id)
    }
