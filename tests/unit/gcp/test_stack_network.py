"""The networks that a GCP stack can stand in, how it is reached, and where its charts and images come from."""

import json

import pytest

from pulumi_holdfast.ladder.json import Json
from tests.support.builders.gcp_stacks import BROUGHT, PLATFORMS, stack
from tests.support.fakes.cloud_outputs import AUTHORITY, DNS_ENDPOINT, GKE_ADDRESS
from tests.support.inputs import mapping, objects, text, value

MADE = [name for name in PLATFORMS if name != "brought"]


def test_an_existing_network_is_used_by_id_and_not_changed() -> None:
    recording = stack("brought")
    assert not [found.name for found in recording if found.type.startswith("gcp:compute/")]
    cluster = recording.one(":Cluster")
    assert text(cluster, "network") == BROUGHT["network"]
    assert text(cluster, "subnetwork") == BROUGHT["subnetwork"]
    assert mapping(cluster, "ipAllocationPolicy") == {
        "clusterSecondaryRangeName": BROUGHT["podsRange"],
        "servicesSecondaryRangeName": BROUGHT["servicesRange"],
    }


@pytest.mark.parametrize("name", MADE)
def test_a_new_network_has_the_configured_ranges(name: str) -> None:
    recording, asked = stack(name), PLATFORMS[name]().network
    subnetwork, cluster = recording.one(":Subnetwork"), recording.one(":Cluster")
    ranges = {text(found, "rangeName"): found for found in objects(subnetwork, "secondaryIpRanges")}
    policy = mapping(cluster, "ipAllocationPolicy")
    found = [
        text(subnetwork, "ipCidrRange"),
        *(
            text(ranges[text(policy, key)], "ipCidrRange")
            for key in ("clusterSecondaryRangeName", "servicesSecondaryRangeName")
        ),
    ]
    assert found == [getattr(asked, field) for field in ("cidr", "pods_cidr", "services_cidr")], (
        "nodes, pods and Services, each where they are looked for"
    )
    assert text(cluster, "subnetwork") == f"{subnetwork.name}-id"
    assert value(subnetwork, "privateIpGoogleAccess") is True


@pytest.mark.parametrize("name", PLATFORMS)
def test_no_node_has_a_public_address(name: str) -> None:
    recording = stack(name)
    assert value(recording.one(":Cluster"), "privateClusterConfig", "enablePrivateNodes") is True
    for pool in recording.of(":NodePool"):
        assert value(pool, "networkConfig", "enablePrivateNodes") is True, f"{pool.name} can say otherwise"


def api_server(name: str) -> Json:
    """Where a stack's Kubernetes provider finds its API server."""
    document = json.loads(text(stack(name).one("providers:kubernetes"), "kubeconfig"))
    (cluster,) = objects(document, "clusters")
    return mapping(cluster, "cluster")


def test_a_cluster_with_a_dns_endpoint_has_no_other_endpoint() -> None:
    cluster = stack("brought").one(":Cluster")
    assert value(cluster, "controlPlaneEndpointsConfig") == {
        "dnsEndpointConfig": {"allowExternalTraffic": True},
        "ipEndpointsConfig": {"enabled": False},
    }
    assert value(cluster, "masterAuthorizedNetworksConfig") is None
    assert api_server("brought") == {"server": f"https://{DNS_ENDPOINT}"}


def test_a_cluster_with_authorized_networks_has_an_ip_endpoint() -> None:
    assert api_server("gcp-dev") == {
        "server": f"https://{GKE_ADDRESS}",
        "certificate-authority-data": AUTHORITY,
    }
