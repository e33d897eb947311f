"""Who reaches the API server of an AKS cluster, and whom it lets in."""

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from holdfast.simulator.clouds.azure.aks import CLUSTER
from holdfast.simulator.clouds.azure.cluster_views import addresses_of, authority_of
from holdfast.simulator.clouds.azure.identity import has_role
from holdfast.simulator.clouds.azure.names import CALLER
from holdfast.simulator.clouds.catalogue import Reaching
from holdfast.simulator.clouds.state import CloudObject, Inventory
from holdfast.simulator.kubernetes_client.objects import mapping

_CLUSTER_ADMIN: Final = "b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b"
_UNTRUSTED: Final = "tls: failed to verify certificate: x509: certificate signed by unknown authority"


def refuse_connection(reaching: Reaching) -> str | None:
    """Return why the cluster at an address cannot be called, None where it can."""
    server = reaching.connection.server
    host = urlsplit(server).hostname or ""
    for cluster in reaching.inventory.of_type(CLUSTER):
        if host in addresses_of(cluster).values():
            if reaching.connection.cluster.get("certificate-authority-data") != authority_of(cluster):
                return f'Get "{server}/openapi/v2?timeout=32s": {_UNTRUSTED}'
            return _refuse_caller(cluster, reaching.inventory)
    return f'Get "{server}/openapi/v2?timeout=32s": dial tcp: lookup {host}: no such host'


def _refuse_caller(cluster: CloudObject, inventory: Inventory) -> str | None:
    if has_role(inventory, principal_id=CALLER, role=_CLUSTER_ADMIN, scope=cluster.id):
        return None
    return (
        f'namespaces is forbidden: User "{CALLER}" cannot list resource "namespaces" in API group "" at the cluster '
        "scope: User does not have access to the resource in Azure. Update role assignment to allow access."
    )


def where_from(inventory: Inventory) -> list[str]:
    """Return a remark for each cluster that is reached from within its network alone."""
    return [
        f"the API server of {cluster.outputs.get('name')} has a private address only: run `pulumi up` where its network "
        f"is reached (a VPN, a runner in the network){_names(cluster)}. A rehearsal reaches it from anywhere"
        for cluster in _private(inventory)
    ]


def _private(inventory: Inventory) -> Iterator[CloudObject]:
    for cluster in inventory.of_type(CLUSTER):
        access = mapping(cluster.inputs.get("apiServerAccessProfile"))
        if access.get("enablePrivateCluster") is True:
            yield cluster


def _names(cluster: CloudObject) -> str:
    if "public" in addresses_of(cluster):
        return ""
    return " and where its name is known (AKS links its private DNS zone to its own network alone)"
