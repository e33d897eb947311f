"""Access to GKE: by a DNS name with IAM or by address from named ranges, and the kubeconfig."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.components.cluster.gke.access import (
    ApiServer,
    AuthorizedNetworks,
    ControlPlaneAccess,
    DnsEndpoint,
    kubeconfig,
)
from tests.support.builders.gke_components import recorded_cluster
from tests.support.fakes.cloud_outputs import AUTHORITY, DNS_ENDPOINT, GKE_ADDRESS
from tests.support.inputs import mapping, objects, text, value

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json
    from tests.support.fakes.pulumi_engine import Recorded

_NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,38}[a-z0-9]", fullmatch=True)


def cluster(access: ControlPlaneAccess) -> Recorded:
    return recorded_cluster(lambda args: replace(args, access=access)).one(":Cluster")


def document(access: ControlPlaneAccess) -> Json:
    recording = recorded_cluster(lambda args: replace(args, access=access))
    return json.loads(text(recording.one("pulumi:providers:kubernetes"), "kubeconfig"))


def server(document: Json) -> Json:
    (found,) = objects(document, "clusters")
    return mapping(found, "cluster")


def test_with_a_dns_endpoint_there_is_no_ip_endpoint() -> None:
    made = cluster(DnsEndpoint(allow_external=True))
    assert mapping(made, "controlPlaneEndpointsConfig") == {
        "dnsEndpointConfig": {"allowExternalTraffic": True},
        "ipEndpointsConfig": {"enabled": False},
    }, "an address would be reachable without IAM"
    assert mapping(made, "privateClusterConfig") == {"enablePrivateNodes": True}, (
        "GKE sets it itself, and a value would always show a difference"
    )
    assert value(made, "masterAuthorizedNetworksConfig") is None, "ranges apply to addresses"


def test_access_that_is_closed_to_all_or_without_a_range_is_rejected() -> None:
    with pytest.raises(ValueError, match="use AuthorizedNetworks"):
        DnsEndpoint(allow_external=False)
    with pytest.raises(ValueError, match="add a range"):
        AuthorizedNetworks(cidrs=[])


def test_public_ranges_have_a_public_endpoint_for_them_only() -> None:
    made = cluster(AuthorizedNetworks(cidrs=["203.0.113.0/24", "10.0.0.0/8"]))
    assert value(made, "controlPlaneEndpointsConfig", "dnsEndpointConfig", "allowExternalTraffic") is False, (
        "the DNS name would be open to the internet"
    )
    assert mapping(made, "privateClusterConfig") == {
        "enablePrivateNodes": True,
        "enablePrivateEndpoint": False,
    }, "the ranges need the public address"
    networks = mapping(made, "masterAuthorizedNetworksConfig")
    assert [text(one, "cidrBlock") for one in objects(networks, "cidrBlocks")] == [
        "203.0.113.0/24",
        "10.0.0.0/8",
    ], "only these ranges"
    assert networks["gcpPublicCidrsAccessEnabled"] is False, "it would allow all of Google Cloud's addresses"
    assert networks["privateEndpointEnforcementEnabled"] is True, "otherwise every pod is allowed"


def test_private_ranges_have_no_public_endpoint() -> None:
    made = cluster(AuthorizedNetworks(cidrs=["10.0.0.0/8", "100.64.0.0/10"]))
    assert value(made, "privateClusterConfig", "enablePrivateEndpoint") is True, "it is not reachable outside"
    assert "gcpPublicCidrsAccessEnabled" not in mapping(made, "masterAuthorizedNetworksConfig"), (
        "there is no public address"
    )


@pytest.mark.parametrize(
    "access", [DnsEndpoint(allow_external=True), AuthorizedNetworks(cidrs=["10.0.0.0/8"])]
)
def test_nodes_have_no_public_addresses(access: ControlPlaneAccess) -> None:
    assert value(cluster(access), "privateClusterConfig", "enablePrivateNodes") is True, "nodes are private"


def test_the_kubeconfig_of_a_dns_endpoint_has_no_authority() -> None:
    found = server(document(DnsEndpoint(allow_external=True)))
    assert found == {"server": f"https://{DNS_ENDPOINT}"}, (
        "a client with the cluster's authority rejects Google's certificate"
    )


def test_the_kubeconfig_of_an_ip_endpoint_has_the_clusters_authority() -> None:
    found = server(document(AuthorizedNetworks(cidrs=["203.0.113.0/24"])))
    assert found == {"server": f"https://{GKE_ADDRESS}", "certificate-authority-data": AUTHORITY}, (
        "no public authority signed its certificate"
    )


def test_the_kubeconfig_uses_pulumis_credentials() -> None:
    (user,) = objects(document(DnsEndpoint(allow_external=True)), "users")
    command = mapping(user, "user", "exec")
    assert command["command"] == "gke-gcloud-auth-plugin", "a static token expires within an hour"
    assert command["args"] == ["--use_application_default_credentials"], (
        "otherwise the plugin uses gcloud's account, which may be another"
    )
    assert command["interactiveMode"] == "Never", "a prompt would block an unattended run"
    assert "gcloud components install" in text(command, "installHint"), (
        "the hint describes the installation of the plugin"
    )


@given(name=_NAMES, host=_NAMES, authority=st.none() | _NAMES)
def test_every_kubeconfig_is_complete_and_holds_no_credential(
    name: str, host: str, authority: str | None
) -> None:
    made = json.loads(kubeconfig(ApiServer(cluster_name=name, host=host, certificate_authority=authority)))
    context = next(one for one in made["contexts"] if one["name"] == made["current-context"])["context"]
    (cluster,), (user,) = made["clusters"], made["users"]
    assert (cluster["name"], user["name"]) == (context["cluster"], context["user"]), "references must resolve"
    assert set(user["user"]) == {"exec"}, "a kubeconfig in the state must hold no credential"
    assert "insecure-skip-tls-verify" not in cluster["cluster"], "TLS must be verified"


@pytest.mark.parametrize("preview", [False, True])
def test_all_kubernetes_resources_use_the_clusters_provider(preview: bool) -> None:
    recording = recorded_cluster(preview=preview)
    assert len(recording.of("pulumi:providers:kubernetes")) == 1, "there is only one"
