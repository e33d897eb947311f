"""From where the API server of GKE is reached: by a name behind IAM, or by address from named ranges."""

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
from tests.support.gke_component import recorded_cluster
from tests.support.gke_outputs import ADDRESS, AUTHORITY, DNS_ENDPOINT
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


def test_by_name_there_is_no_address_to_reach() -> None:
    made = cluster(DnsEndpoint(allow_external=True))
    assert mapping(made, "controlPlaneEndpointsConfig") == {
        "dnsEndpointConfig": {"allowExternalTraffic": True},
        "ipEndpointsConfig": {"enabled": False},
    }, "an address beside the name is reached without IAM in between"
    assert mapping(made, "privateClusterConfig") == {"enablePrivateNodes": True}, (
        "whether there is a private endpoint GKE says itself then; a wish is a difference for ever"
    )
    assert value(made, "masterAuthorizedNetworksConfig") is None, "ranges are for addresses"


def test_a_name_that_answers_nobody_is_refused() -> None:
    with pytest.raises(ValueError, match="use AuthorizedNetworks"):
        DnsEndpoint(allow_external=False)


def test_addresses_that_nobody_is_let_in_to_are_refused() -> None:
    with pytest.raises(ValueError, match="add a range"):
        AuthorizedNetworks(cidrs=[])


def test_from_ranges_of_the_internet_there_is_a_public_address_for_them_alone() -> None:
    made = cluster(AuthorizedNetworks(cidrs=["203.0.113.0/24", "10.0.0.0/8"]))
    assert value(made, "controlPlaneEndpointsConfig", "dnsEndpointConfig", "allowExternalTraffic") is False, (
        "the name would answer the whole internet"
    )
    assert mapping(made, "privateClusterConfig") == {
        "enablePrivateNodes": True,
        "enablePrivateEndpoint": False,
    }, "without the public address the ranges reach nothing"
    networks = mapping(made, "masterAuthorizedNetworksConfig")
    assert [text(one, "cidrBlock") for one in objects(networks, "cidrBlocks")] == [
        "203.0.113.0/24",
        "10.0.0.0/8",
    ], "nobody but these"
    assert networks["gcpPublicCidrsAccessEnabled"] is False, (
        "every machine on Google Cloud with a public address is let in otherwise"
    )
    assert networks["privateEndpointEnforcementEnabled"] is True, "every pod is let in otherwise"


def test_from_private_ranges_alone_there_is_no_public_address() -> None:
    made = cluster(AuthorizedNetworks(cidrs=["10.0.0.0/8", "100.64.0.0/10"]))
    assert value(made, "privateClusterConfig", "enablePrivateEndpoint") is True, (
        "nobody reaches it from outside"
    )
    assert "gcpPublicCidrsAccessEnabled" not in mapping(made, "masterAuthorizedNetworksConfig"), (
        "there is no public address to let in to"
    )


@pytest.mark.parametrize(
    "access", [DnsEndpoint(allow_external=True), AuthorizedNetworks(cidrs=["10.0.0.0/8"])]
)
def test_no_node_has_a_public_address(access: ControlPlaneAccess) -> None:
    assert value(cluster(access), "privateClusterConfig", "enablePrivateNodes") is True, "nodes are private"


def test_by_name_the_clusters_own_authority_is_left_out() -> None:
    found = server(document(DnsEndpoint(allow_external=True)))
    assert found == {"server": f"https://{DNS_ENDPOINT}"}, (
        "a client that is told the cluster's authority refuses the certificate of Google's name"
    )


def test_by_address_the_clusters_own_authority_is_needed() -> None:
    found = server(document(AuthorizedNetworks(cidrs=["203.0.113.0/24"])))
    assert found == {"server": f"https://{ADDRESS}", "certificate-authority-data": AUTHORITY}, (
        "nobody else signed its certificate"
    )


def test_a_token_is_asked_for_with_pulumis_own_credentials() -> None:
    (user,) = objects(document(DnsEndpoint(allow_external=True)), "users")
    command = mapping(user, "user", "exec")
    assert command["command"] == "gke-gcloud-auth-plugin", "a token in its place expires within the hour"
    assert command["args"] == ["--use_application_default_credentials"], (
        "else the caller is gcloud's account, which may be another than Pulumi's"
    )
    assert command["interactiveMode"] == "Never", "a prompt hangs an unattended run"
    assert "gcloud components install" in text(command, "installHint"), (
        "whoever lacks it is told how to get it"
    )


@given(name=_NAMES, host=_NAMES, authority=st.none() | _NAMES)
def test_no_kubeconfig_holds_a_credential_and_each_is_complete(
    name: str, host: str, authority: str | None
) -> None:
    made = json.loads(kubeconfig(ApiServer(cluster_name=name, host=host, certificate_authority=authority)))
    context = next(one for one in made["contexts"] if one["name"] == made["current-context"])["context"]
    (cluster,), (user,) = made["clusters"], made["users"]
    assert (cluster["name"], user["name"]) == (context["cluster"], context["user"]), (
        "a reference leads nowhere"
    )
    assert set(user["user"]) == {"exec"}, "a kubeconfig that is stored with the stack must hold no credential"
    assert "insecure-skip-tls-verify" not in cluster["cluster"], (
        "whoever is in between reads all that is sent"
    )


@pytest.mark.parametrize("preview", [False, True])
def test_nothing_is_reached_through_any_other_provider(preview: bool) -> None:
    recording = recorded_cluster(preview=preview)
    assert len(recording.of("pulumi:providers:kubernetes")) == 1, "there is one way into the cluster"
