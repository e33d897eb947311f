"""Access to the API server of a GKE cluster, by its DNS endpoint or its IP addresses."""

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.rehearsal.clouds.catalogue import ConnectionAttempt
from pulumi_holdfast.rehearsal.clouds.gcp.cluster import CLUSTER
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, Inventory

_UNTRUSTED: Final = "tls: failed to verify certificate: x509: certificate signed by unknown authority"


def refuse_connection(attempt: ConnectionAttempt) -> str | None:
    """Return why the cluster at an address is unreachable, None where it is reachable."""
    server = attempt.connection.server
    host = urlsplit(server).hostname or ""
    request = f'Get "{server}/openapi/v2?timeout=32s"'
    authority = attempt.connection.cluster.get("certificate-authority-data")
    for cluster in attempt.inventory.of_type(CLUSTER):
        if host == _dns(cluster).get("endpoint"):
            if _dns(cluster).get("allowExternalTraffic") is not True:
                return f"{request}: Forbidden"
            # The DNS endpoint has Google's certificate, which the cluster's CA has not signed.
            return f"{request}: {_UNTRUSTED}" if authority else None
        if host in set(_addresses(cluster)):
            known = mapping(cluster.outputs.get("masterAuth")).get("clusterCaCertificate")
            return None if authority == known else f"{request}: {_UNTRUSTED}"
    if host.endswith(".gke.goog"):
        return f"{request}: dial tcp: lookup {host}: no such host"
    return f"{request}: dial tcp {host}:443: i/o timeout"


def where_from(inventory: Inventory) -> list[str]:
    """Return a remark for each cluster that is reachable only from its network."""
    return [
        f"the API server of {one.outputs.get('name')} has private addresses only: run `pulumi up` where its network "
        "is reached (a VPN, a runner in the network), or allow the DNS endpoint. A rehearsal reaches it from anywhere"
        for one in inventory.of_type(CLUSTER)
        if _dns(one).get("allowExternalTraffic") is not True
        and mapping(one.outputs.get("privateClusterConfig")).get("enablePrivateEndpoint") is True
    ]


def _dns(cluster: CloudObject) -> Json:
    endpoints = mapping(cluster.outputs.get("controlPlaneEndpointsConfig"))
    return mapping(endpoints.get("dnsEndpointConfig"))


def _addresses(cluster: CloudObject) -> Iterator[str]:
    """The IP addresses of the API server; a private cluster has no public one."""
    network = mapping(cluster.outputs.get("privateClusterConfig"))
    if network.get("privateEndpoint"):
        yield str(network["privateEndpoint"])
    if network.get("publicEndpoint") and network.get("enablePrivateEndpoint") is not True:
        yield str(network["publicEndpoint"])
