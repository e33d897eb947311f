"""Access to the API server of an EKS cluster: the cluster must exist and admit the caller."""

from typing import Final
from urllib.parse import urlsplit

from pulumi_holdfast.ladder.json import mapping
from pulumi_holdfast.rehearsal.clouds.aws.cluster import ACCESS_ENTRY, CLUSTER, cluster_named
from pulumi_holdfast.rehearsal.clouds.aws.names import ACCOUNT, PARTITION
from pulumi_holdfast.rehearsal.clouds.catalogue import ConnectionAttempt
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, Inventory

_ASSOCIATION: Final = "aws:eks/accessPolicyAssociation:AccessPolicyAssociation"
CALLER: Final = f"arn:{PARTITION}:iam::{ACCOUNT}:user/rehearsal"
# The API server's answer to a caller without an access entry.
_UNKNOWN_CALLER: Final = "the server has asked for the client to provide credentials"


def refuse_connection(attempt: ConnectionAttempt) -> str | None:
    """Return why the cluster of `aws eks get-token --cluster-name NAME` is unreachable, None where it is reachable."""
    connection, inventory = attempt.connection, attempt.inventory
    name = connection.option("--cluster-name")
    if connection.arguments[:2] != ("eks", "get-token") or name is None:
        return None
    cluster = cluster_named(name, inventory)
    # Each cluster has its own address, also after a replacement under the same name.
    if cluster is None or cluster.outputs.get("endpoint") not in (None, connection.server):
        host = urlsplit(connection.server).netloc.partition(":")[0] or name
        return f'Get "{connection.server}/openapi/v2?timeout=32s": dial tcp: lookup {host}: no such host'
    caller = connection.option("--role-arn") or CALLER
    return None if _lets_in(cluster, caller, inventory) else _UNKNOWN_CALLER


def private_endpoints(inventory: Inventory) -> list[str]:
    """Return a remark for each cluster that is reachable only from its network."""
    return [
        f"the API server of {one.outputs.get('name')} has a private endpoint only: run `pulumi up` where its network "
        "is reached (a VPN, a peered network, a runner inside the VPC). A rehearsal reaches it from anywhere"
        for one in inventory.of_type(CLUSTER)
        if mapping(one.outputs.get("vpcConfig")).get("endpointPublicAccess") is False
    ]


def _lets_in(cluster: CloudObject, caller: str, inventory: Inventory) -> bool:
    access = mapping(cluster.outputs.get("accessConfig"))
    # EKS makes the creator an administrator by default.
    if access.get("bootstrapClusterCreatorAdminPermissions") is not False and caller == CALLER:
        return True
    name = cluster.outputs.get("name")

    def concerns(one: CloudObject) -> bool:
        return one.inputs.get("clusterName") == name and one.inputs.get("principalArn") == caller

    return any(map(concerns, inventory.of_type(ACCESS_ENTRY))) and any(
        map(concerns, inventory.of_type(_ASSOCIATION))
    )
