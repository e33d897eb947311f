"""What AKS says of a cluster to whoever asks: how it is, and how to get in."""

import base64
import json
from collections.abc import Mapping
from typing import Final

from holdfast.scheduling.json import Json
from holdfast.simulator.clouds.azure.errors import said
from holdfast.simulator.clouds.azure.names import same_id, subscription_of
from holdfast.simulator.clouds.catalogue import Call, Invoke
from holdfast.simulator.clouds.state import CloudObject
from holdfast.simulator.errors import RehearsalError

_CLUSTER: Final = "azure-native:containerservice:ManagedCluster"


def authority_of(cluster: CloudObject) -> str:
    """Return the certificate authority of a cluster, in base64."""
    return base64.b64encode(cluster.digest[:40].encode()).decode()


def addresses_of(cluster: CloudObject) -> dict[str, str]:
    """Return the names that a cluster has, by which they are: `private`, `public`."""
    names = {"private": cluster.outputs.get("privateFQDN"), "public": cluster.outputs.get("fqdn")}
    return {which: str(name) for which, name in names.items() if name}


def _asked(call: Call) -> CloudObject:
    group, name = (call.arguments.get(field) for field in ("resourceGroupName", "resourceName"))
    path = (
        f"/subscriptions/{subscription_of(call.configuration)}/resourceGroups/{group}/providers/"
        f"Microsoft.ContainerService/managedClusters/{name}"
    )
    for cluster in call.inventory.of_type(_CLUSTER):
        if same_id(cluster.id, path):
            return cluster
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
    # JSON is YAML too. The user's entry asks for a code in a browser, unless who reads it knows better.
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
