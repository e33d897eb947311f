"""Where the control plane of a GKE cluster answers."""

import base64

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.clouds.catalogue import Making
from holdfast.simulator.clouds.gcp.names import PROJECT_NUMBER
from holdfast.simulator.kubernetes_client.objects import mapping


def location(making: Making) -> str:
    """Return the region or zone of a cluster: its own, else its provider's zone or region."""
    named = (making.inputs.get("location"), *(making.configuration.get(key) for key in ("zone", "region")))
    return next((str(one) for one in named if one), "")


def _has_addresses(making: Making) -> bool:
    return _endpoints(making, "ipEndpointsConfig").get("enabled") is not False


def _endpoints(making: Making, which: str) -> Json:
    return mapping(mapping(making.inputs.get("controlPlaneEndpointsConfig")).get(which))


def control_plane_endpoints(making: Making) -> JsonValue:
    """Return the endpoints of a cluster: every one has a name; whether it answers users is another matter."""
    name = f"gke-{making.digest[:36]}-{PROJECT_NUMBER}.{location(making)}.gke.goog"
    defaults: Json = {"allowExternalTraffic": False}
    return {
        "dnsEndpointConfig": {**defaults, **_endpoints(making, "dnsEndpointConfig"), "endpoint": name},
        "ipEndpointsConfig": {"enabled": _has_addresses(making)},
    }


def private_cluster(making: Making) -> JsonValue:
    """Return the addresses of a cluster, beside what was asked for."""
    given = mapping(making.inputs.get("privateClusterConfig"))
    addresses: Json = (
        {"privateEndpoint": _private_address(making), "publicEndpoint": _public_address(making)}
        if _has_addresses(making)
        else {}
    )
    return {**given, **addresses}


def endpoint(making: Making) -> JsonValue:
    """Return the address that clients are told: the public one where there is one."""
    if not _has_addresses(making):
        return ""
    private = mapping(making.inputs.get("privateClusterConfig")).get("enablePrivateEndpoint") is True
    return _private_address(making) if private else _public_address(making)


def _public_address(making: Making) -> str:
    # 203.0.113.0/24 is for documentation: nobody's.
    return f"203.0.113.{int(making.digest[:2], 16)}"


def _private_address(making: Making) -> str:
    return f"172.16.{int(making.digest[2:4], 16)}.{int(making.digest[4:6], 16) % 14 + 2}"


def master_auth(making: Making) -> JsonValue:
    """Return the cluster's certificate authority; no client has a certificate."""
    authority = base64.b64encode(making.digest[:40].encode()).decode()
    given = mapping(making.inputs.get("masterAuth"))
    return {**given, "clientCertificate": "", "clientKey": "", "clusterCaCertificate": authority}
