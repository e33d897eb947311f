"""Access to the API server of an AKS cluster, and the kubeconfigs that AKS returns."""

import base64
import json
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import urlsplit

from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.rehearsal.clouds.azure.cluster import CLUSTER
from pulumi_holdfast.rehearsal.clouds.azure.iam import has_role
from pulumi_holdfast.rehearsal.clouds.azure.names import CALLER, asked_cluster_id, said
from pulumi_holdfast.rehearsal.clouds.catalogue import Call, ConnectionAttempt, Invoke
from pulumi_holdfast.rehearsal.clouds.relations import find
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, Inventory
from pulumi_holdfast.rehearsal.errors import RehearsalError


def authority_of(cluster: CloudObject) -> str:
    """Return the certificate authority of a cluster, in base64."""
    return base64.b64encode(cluster.digest[:40].encode()).decode()


def addresses_of(cluster: CloudObject) -> dict[str, str]:
    """Return the host names of a cluster by kind: `private`, `public`."""
    names = {"private": cluster.outputs.get("privateFQDN"), "public": cluster.outputs.get("fqdn")}
    return {which: str(name) for which, name in names.items() if name}


def _asked(call: Call) -> CloudObject:
    cluster = find(call.inventory, CLUSTER, asked_cluster_id(call))
    if cluster is not None:
        return cluster
    group, name = (call.arguments.get(field) for field in ("resourceGroupName", "resourceName"))
    raise RehearsalError(
        said(
            "ResourceNotFound",
            f"The Resource 'Microsoft.ContainerService/managedClusters/{name}' under resource group '{group}' was not "
            "found. For more details please go to https://aka.ms/ARMResourceNotFoundFix",
        )
    )


def _get(call: Call) -> Json:
    cluster = _asked(call)
    return {**cluster.outputs, "id": cluster.id}


def _user_credentials(call: Call) -> Json:
    cluster = _asked(call)
    names = addresses_of(cluster)
    which = str(call.arguments.get("serverFqdn") or next(iter(names)))
    if which not in names:
        raise RehearsalError(said("BadRequest", f"the cluster has no {which} FQDN"))
    name = cluster.outputs.get("name")
    # JSON is YAML. The real user entry asks for a login in a browser; the program replaces it.
    document: Json = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": name,
                "cluster": {
                    "server": f"https://{names[which]}:443",
                    "certificate-authority-data": authority_of(cluster),
                },
            }
        ],
    }
    return {
        "kubeconfigs": [
            {"name": "clusterUser", "value": base64.b64encode(json.dumps(document).encode()).decode()}
        ]
    }


INVOKES: Mapping[str, Invoke] = {
    "azure-native:containerservice:getManagedCluster": _get,
    "azure-native:containerservice:listManagedClusterUserCredentials": _user_credentials,
}


_CLUSTER_ADMIN: Final = "b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b"
_UNTRUSTED: Final = "tls: failed to verify certificate: x509: certificate signed by unknown authority"


def refuse_connection(attempt: ConnectionAttempt) -> str | None:
    """Return why the cluster at an address is unreachable, None where it is reachable."""
    server = attempt.connection.server
    host = urlsplit(server).hostname or ""
    for cluster in attempt.inventory.of_type(CLUSTER):
        if host in addresses_of(cluster).values():
            if attempt.connection.cluster.get("certificate-authority-data") != authority_of(cluster):
                return f'Get "{server}/openapi/v2?timeout=32s": {_UNTRUSTED}'
            return _refuse_caller(cluster, attempt.inventory)
    return f'Get "{server}/openapi/v2?timeout=32s": dial tcp: lookup {host}: no such host'


def _refuse_caller(cluster: CloudObject, inventory: Inventory) -> str | None:
    if has_role(inventory, principal_id=CALLER, role=_CLUSTER_ADMIN, scope=cluster.id):
        return None
    return (
        f'namespaces is forbidden: User "{CALLER}" cannot list resource "namespaces" in API group "" at the cluster '
        "scope: User does not have access to the resource in Azure. Update role assignment to allow access."
    )


def where_from(inventory: Inventory) -> list[str]:
    """Return a remark for each cluster that is reachable only from its network."""
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
