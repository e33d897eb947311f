"""Access to GKE: by a DNS name with IAM or by address from named ranges, and the kubeconfig."""

import json
from dataclasses import replace

import pytest

from pulumi_holdfast.gcp.control_plane.access import AuthorizedNetworks, ControlPlaneAccess, DnsEndpoint
from pulumi_holdfast.ladder.json import Json
from tests.support.builders.gke_components import recorded_cluster
from tests.support.fakes.cloud_outputs import AUTHORITY, GKE_ADDRESS
from tests.support.fakes.pulumi_engine import Recorded
from tests.support.inputs import mapping, objects, text, value


def cluster(access: ControlPlaneAccess) -> Recorded:
    return recorded_cluster(lambda args: replace(args, access=access)).one(":Cluster")


def test_with_a_dns_endpoint_there_is_no_ip_endpoint() -> None:
    made = cluster(DnsEndpoint(allow_external=True))
    assert mapping(made, "controlPlaneEndpointsConfig") == {
        "dnsEndpointConfig": {"allowExternalTraffic": True},
        "ipEndpointsConfig": {"enabled": False},
    }
    assert mapping(made, "privateClusterConfig") == {"enablePrivateNodes": True}
    assert value(made, "masterAuthorizedNetworksConfig") is None


def test_access_that_is_closed_to_all_or_without_a_range_is_rejected() -> None:
    with pytest.raises(ValueError, match="use AuthorizedNetworks"):
        DnsEndpoint(allow_external=False)
    with pytest.raises(ValueError, match="add a range"):
        AuthorizedNetworks(cidrs=[])


def test_public_ranges_have_a_public_endpoint_for_them_only() -> None:
    made = cluster(AuthorizedNetworks(cidrs=["203.0.113.0/24", "10.0.0.0/8"]))
    assert value(made, "controlPlaneEndpointsConfig", "dnsEndpointConfig", "allowExternalTraffic") is False
    assert mapping(made, "privateClusterConfig") == {
        "enablePrivateNodes": True,
        "enablePrivateEndpoint": False,
    }
    networks = mapping(made, "masterAuthorizedNetworksConfig")
    assert [text(one, "cidrBlock") for one in objects(networks, "cidrBlocks")] == [
        "203.0.113.0/24",
        "10.0.0.0/8",
    ]
    assert networks["gcpPublicCidrsAccessEnabled"] is False, "it would allow all of Google Cloud's addresses"
    assert networks["privateEndpointEnforcementEnabled"] is True, "otherwise every pod is allowed"


def test_private_ranges_have_no_public_endpoint_and_the_clusters_own_authority() -> None:
    made = cluster(AuthorizedNetworks(cidrs=["10.0.0.0/8", "100.64.0.0/10"]))
    assert value(made, "privateClusterConfig", "enablePrivateEndpoint") is True
    assert "gcpPublicCidrsAccessEnabled" not in mapping(made, "masterAuthorizedNetworksConfig")
    recording = recorded_cluster(lambda args: replace(args, access=AuthorizedNetworks(cidrs=["10.0.0.0/8"])))
    document: Json = json.loads(text(recording.one("pulumi:providers:kubernetes"), "kubeconfig"))
    (found,), (user,) = objects(document, "clusters"), objects(document, "users")
    assert mapping(found, "cluster") == {
        "server": f"https://{GKE_ADDRESS}",
        "certificate-authority-data": AUTHORITY,
    }
    hint = text(user, "user", "exec", "installHint")
    assert "gcloud components install" in hint


@pytest.mark.parametrize(
    "access", [DnsEndpoint(allow_external=True), AuthorizedNetworks(cidrs=["10.0.0.0/8"])]
)
def test_in_a_preview_the_api_server_of_a_new_cluster_is_unknown(access: ControlPlaneAccess) -> None:
    recording = recorded_cluster(lambda args: replace(args, access=access), preview=True)
    provider = recording.one("pulumi:providers:kubernetes")
    unknown = {name: provider.inputs.get(name) for name in ("kubeconfig", "clusterIdentifier")}
    assert not any(isinstance(each, str) and "None" in each for each in unknown.values())
