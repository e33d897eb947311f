"""GKE clusters: computed outputs such as endpoints, and refused changes."""

import base64
import re
from collections.abc import Mapping
from typing import Final

from pulumi_holdfast.config import versions
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping
from pulumi_holdfast.rehearsal.clouds.catalogue import Call, Deletion, Invoke, ResourceRequest, Rules
from pulumi_holdfast.rehearsal.clouds.gcp.names import (
    PROJECT_NUMBER,
    asked_project,
    may_encrypt,
    no_account,
    project,
)
from pulumi_holdfast.rehearsal.clouds.gcp.nodes import IMMUTABLE_NODE_FIELDS, NODE_POOL
from pulumi_holdfast.rehearsal.errors import RehearsalError


def location(request: ResourceRequest) -> str:
    """Return the location of a cluster: its own, or its provider's zone or region."""
    named = (request.inputs.get("location"), *(request.configuration.get(key) for key in ("zone", "region")))
    return next((str(one) for one in named if one), "")


def _has_addresses(request: ResourceRequest) -> bool:
    return _endpoints(request, "ipEndpointsConfig").get("enabled") is not False


def _endpoints(request: ResourceRequest, which: str) -> Json:
    return mapping(mapping(request.inputs.get("controlPlaneEndpointsConfig")).get(which))


def control_plane_endpoints(request: ResourceRequest) -> JsonValue:
    """Return the endpoints of a cluster: the DNS endpoint always exists, but may refuse external traffic."""
    name = f"gke-{request.digest[:36]}-{PROJECT_NUMBER}.{location(request)}.gke.goog"
    defaults: Json = {"allowExternalTraffic": False}
    return {
        "dnsEndpointConfig": {**defaults, **_endpoints(request, "dnsEndpointConfig"), "endpoint": name},
        "ipEndpointsConfig": {"enabled": _has_addresses(request)},
    }


def private_cluster(request: ResourceRequest) -> JsonValue:
    """Return the private cluster configuration with the IP addresses."""
    given = mapping(request.inputs.get("privateClusterConfig"))
    addresses: Json = (
        {"privateEndpoint": _private_address(request), "publicEndpoint": _public_address(request)}
        if _has_addresses(request)
        else {}
    )
    return {**given, **addresses}


def endpoint(request: ResourceRequest) -> JsonValue:
    """Return the IP address for clients: the public one where it exists."""
    if not _has_addresses(request):
        return ""
    private = mapping(request.inputs.get("privateClusterConfig")).get("enablePrivateEndpoint") is True
    return _private_address(request) if private else _public_address(request)


def _public_address(request: ResourceRequest) -> str:
    # 203.0.113.0/24 is reserved for documentation.
    return f"203.0.113.{int(request.digest[:2], 16)}"


def _private_address(request: ResourceRequest) -> str:
    return f"172.16.{int(request.digest[2:4], 16)}.{int(request.digest[4:6], 16) % 14 + 2}"


def master_auth(request: ResourceRequest) -> JsonValue:
    """Return the cluster's certificate authority; there are no client certificates."""
    authority = base64.b64encode(request.digest[:40].encode()).decode()
    given = mapping(request.inputs.get("masterAuth"))
    return {**given, "clientCertificate": "", "clientKey": "", "clusterCaCertificate": authority}


CLUSTER: Final = "gcp:container/cluster:Cluster"
_AGENT: Final = f"service-{PROJECT_NUMBER}@container-engine-robot.iam.gserviceaccount.com"
_ZONE: Final = re.compile(r"[a-z]+-[a-z]+\d+-[a-z]")
_LONGEST_NAME: Final = 40


def _identify(request: ResourceRequest) -> str:
    return f"projects/{project(request)}/locations/{location(request)}/clusters/{request.name}"


def _link(request: ResourceRequest) -> str:
    kind = "zones" if _ZONE.fullmatch(location(request)) else "locations"
    return (
        "https://container.googleapis.com/v1/"
        f"projects/{project(request)}/{kind}/{location(request)}/clusters/{request.name}"
    )


def _master_version(request: ResourceRequest) -> JsonValue:
    """The highest minimum version so far: a cluster is never downgraded."""
    current = request.inventory.find(request.type, request.id)
    kept = str(current.outputs.get("masterVersion")) if current else ""
    asked = str(request.inputs.get("minMasterVersion") or versions.KUBERNETES)
    newest = max(asked, kept, key=_numbers)
    return newest if "-gke." in newest else f"{newest}{'.0' if newest.count('.') == 1 else ''}-gke.1000000"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


def _labels(request: ResourceRequest) -> JsonValue:
    defaults, own = request.configuration.get("defaultLabels"), request.inputs.get("resourceLabels")
    return {"goog-pulumi-provisioned": "true", **mapping(defaults), **mapping(own)}


def _key_not_granted(request: ResourceRequest) -> str | None:
    key = mapping(request.inputs.get("databaseEncryption")).get("keyName")
    if not key or may_encrypt(request, key, _AGENT):
        return None
    return (
        "googleapi: Error 403: Permission 'cloudkms.cryptoKeyVersions.useToEncrypt' denied on resource "
        f"'{key}' (or it may not exist)., forbidden"
    )


def _protected(deletion: Deletion) -> str | None:
    if deletion.target.inputs.get("deletionProtection") is False:
        return None
    return (
        "Cannot destroy cluster because deletion_protection is set to true. Set it to false to proceed with cluster "
        "deletion."
    )


RESOURCES: Mapping[str, Rules] = {
    CLUSTER: Rules(
        unique_within=("project", "location"),
        longest_name=_LONGEST_NAME,
        identify=_identify,
        immutable=frozenset(
            {
                "clusterIpv4Cidr",
                "confidentialNodes",
                "datapathProvider",
                "dataplaneOptimizationMode",
                "defaultMaxPodsPerNode",
                "description",
                "enableAutopilot",
                "enableKubernetesAlpha",
                "enableTpu",
                "initialNodeCount",
                "ipAllocationPolicy.clusterIpv4CidrBlock",
                "ipAllocationPolicy.clusterSecondaryRangeName",
                "ipAllocationPolicy.servicesIpv4CidrBlock",
                "ipAllocationPolicy.servicesSecondaryRangeName",
                "masterAuth.clientCertificateConfig",
                "network",
                "networkingMode",
                "nodePools",
                "privateClusterConfig.masterIpv4CidrBlock",
                "privateClusterConfig.privateEndpointSubnetwork",
                "subnetwork",
                *IMMUTABLE_NODE_FIELDS,
            }
        ),
        computed={
            "controlPlaneEndpointsConfig": control_plane_endpoints,
            "effectiveLabels": _labels,
            "endpoint": endpoint,
            "location": location,
            "masterAuth": master_auth,
            "masterVersion": _master_version,
            "nodeVersion": _master_version,
            "privateClusterConfig": private_cluster,
            "pulumiLabels": _labels,
            "selfLink": _link,
        },
        taken="googleapi: Error 409: Already exists: {name}., alreadyExists",
        refuse_create=(no_account, _key_not_granted),
        refuse_update=(_key_not_granted,),
        refuse_delete=(_protected,),
    )
}


def _get_cluster(call: Call) -> Json:
    """A cluster in the plural forms of the provider's function."""
    name, where = call.arguments.get("name"), call.arguments.get("location")
    for cluster in call.inventory.of_type(CLUSTER):
        found = cluster.outputs
        if (found.get("name"), found.get("location"), found.get("project")) == (
            name,
            where,
            asked_project(call),
        ):
            return _shown(cluster.outputs, call)
    raise RehearsalError(f"googleapi: Error 404: Not found: projects/…/clusters/{name}., notFound")


def _shown(found: Json, call: Call) -> Json:
    endpoints = mapping(found.get("controlPlaneEndpointsConfig"))
    workload = found.get("workloadIdentityConfig")
    pools = [
        {
            "name": pool.outputs.get("name"),
            "autoscalings": [pool.inputs["autoscaling"]] if pool.inputs.get("autoscaling") else [],
            "nodeConfigs": [_node_config(mapping(pool.outputs.get("nodeConfig")))],
            "nodeCount": pool.inputs.get("nodeCount"),
        }
        for pool in call.inventory.of_type(NODE_POOL)
        if pool.inputs.get("cluster") == found.get("name")
    ]
    return {
        **{key: found.get(key) for key in ("name", "location", "project", "endpoint", "masterVersion")},
        "id": found.get("name"),
        "enableAutopilot": found.get("enableAutopilot") is True,
        "nodeLocations": found.get("nodeLocations") or [],
        "masterAuths": [found.get("masterAuth")],
        "controlPlaneEndpointsConfigs": [
            {"dnsEndpointConfigs": [endpoints.get("dnsEndpointConfig")], "ipEndpointsConfigs": []}
        ],
        "workloadIdentityConfigs": [workload] if workload else [],
        "nodePools": pools,
    }


def _node_config(config: Json) -> Json:
    return {**config, "labels": config.get("labels") or {}, "taints": config.get("taints") or []}


INVOKES: Mapping[str, Invoke] = {"gcp:container/getCluster:getCluster": _get_cluster}
