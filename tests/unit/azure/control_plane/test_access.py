"""Access to AKS: the network access of the API server, role assignments and the kubeconfig."""

import base64
import json
from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.azure.control_plane.access import (
    ApiServer,
    ApiServerAccess,
    Login,
    PrivateAccess,
    PublicAccess,
    api_server,
    kubeconfig,
)
from pulumi_holdfast.azure.role_assignments import ACR_PULL
from pulumi_holdfast.ladder.json import Json
from tests.support.builders.aks_components import (
    ADMINS,
    DEPLOYER,
    GROUP,
    SUBSCRIPTION,
    TENANT,
    UID,
    credentials,
    recorded_cluster,
)
from tests.support.inputs import mapping, objects, text, value

_CLUSTER = ":ManagedCluster"
_GRANT = ":RoleAssignment"
_PROVIDER = "pulumi:providers:kubernetes"
_ADMIN = f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b"

_REGISTRY = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/shared/providers/Microsoft.ContainerRegistry/registries/images"


def profile(access: ApiServerAccess) -> Json:
    made = recorded_cluster(lambda args: replace(args, access=access)).one(_CLUSTER)
    return mapping(made, "apiServerAccessProfile")


def test_a_public_address_allows_the_named_ranges_and_the_nodes_egress() -> None:
    assert profile(PublicAccess(cidrs=["203.0.113.0/24"])) == {
        "enablePrivateCluster": False,
        "authorizedIPRanges": ["203.0.113.0/24", "198.51.100.7/32"],
    }
    with pytest.raises(ValueError, match="the whole internet: add a range"):
        PublicAccess(cidrs=[])


def test_a_private_address_has_no_ranges_and_its_public_name_is_optional() -> None:
    assert profile(PrivateAccess()) == {
        "enablePrivateCluster": True,
        "enablePrivateClusterPublicFQDN": False,
        "privateDNSZone": "system",
    }
    assert profile(PrivateAccess(public_name=True))["enablePrivateClusterPublicFQDN"] is True


@pytest.mark.parametrize(
    ("access", "asked"),
    [
        (PublicAccess(cidrs=["203.0.113.0/24"]), None),
        (PrivateAccess(), None),
        (PrivateAccess(public_name=True), "public"),
    ],
)
def test_clients_use_the_name_that_they_can_resolve(access: ApiServerAccess, asked: str | None) -> None:
    assert access.name_to_use == asked, "AKS returns the private name of a private cluster by default"


def test_access_requires_entra_id_and_an_azure_role() -> None:
    cluster = recorded_cluster().one(_CLUSTER)
    assert value(cluster, "disableLocalAccounts") is True
    assert mapping(cluster, "aadProfile") == {"managed": True, "enableAzureRBAC": True, "tenantID": TENANT}


def test_the_deployers_role_outlives_the_cluster_and_is_not_replaced() -> None:
    recording = recorded_cluster(lambda args: replace(args, admins=ADMINS))
    deployers = recording.one(_GRANT, "cluster-deployer-role-assignment")
    assert {name: deployers.inputs[name] for name in ("scope", "principalId", "roleDefinitionId")} == {
        "scope": f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}",
        "principalId": DEPLOYER,
        "roleDefinitionId": _ADMIN,
    }
    for later in (recording.one(_CLUSTER), recording.one(_PROVIDER)):
        assert deployers.name in recording.everything_before(later)
    for grant in recording.of(_GRANT):
        if grant.inputs["roleDefinitionId"] == _ADMIN:
            assert "principalType" not in grant.inputs
    assert deployers.ignore_changes == {"principalId", "principalType", "roleAssignmentName"}
    for admin in ADMINS:
        grant = recording.one(_GRANT, f"cluster-administrators-{admin}-assignment")
        assert not grant.ignore_changes


def test_administrators_have_a_role_on_the_cluster_before_its_contents() -> None:
    recording = recorded_cluster(lambda args: replace(args, admins=[*ADMINS, DEPLOYER]))
    grants = [one for one in recording.of(_GRANT) if one.name.startswith("cluster-administrators-")]
    assert sorted(str(one.inputs["principalId"]) for one in grants) == sorted([*ADMINS, DEPLOYER])
    assert len({str(one.inputs["roleAssignmentName"]) for one in recording.of(_GRANT)}) == len(
        recording.of(_GRANT)
    )
    before = recording.everything_before(recording.one(_PROVIDER))
    for one in grants:
        assert one.inputs["scope"] == "cluster-control-plane-aks-id"
        assert one.name in before


def test_nodes_may_pull_from_a_named_registry_before_anything_is_in_the_cluster() -> None:
    recording = recorded_cluster(lambda args: replace(args, registry_id=_REGISTRY))
    (grant,) = [one for one in recording.of(_GRANT) if one.inputs["scope"] == _REGISTRY]
    assert str(grant.inputs["roleDefinitionId"]).endswith(ACR_PULL)
    assert grant.inputs["principalId"] == "nodes-principal"
    assert grant.inputs["principalType"] == "ServicePrincipal"
    assert grant.name in recording.everything_before(recording.one(_PROVIDER))


@pytest.mark.parametrize("login", get_args(Login))
def test_a_pipeline_uses_another_login_method(login: Login) -> None:
    recording = recorded_cluster(lambda args: replace(args, login=login))
    document: Json = json.loads(text(recording.one(_PROVIDER), "kubeconfig"))
    args = objects(objects(document, "users")[0], "user", "exec", "args")
    assert str(args[2]) == login


def test_the_provider_identifies_the_cluster_by_its_uid() -> None:
    provider = recorded_cluster(
        lambda args: replace(args, login="spn", access=PrivateAccess(public_name=True))
    ).one(_PROVIDER)
    assert provider.inputs["clusterIdentifier"] == UID


@given(st.from_regex(r"https://[a-z0-9.-]{1,60}:443", fullmatch=True), st.binary(min_size=1, max_size=60))
def test_the_api_server_and_its_authority_are_read_from_akss_credentials(url: str, authority: bytes) -> None:
    encoded = base64.b64encode(authority).decode()
    found = api_server(credentials(url, encoded))
    assert found == ApiServer(url=url, certificate_authority=encoded)
    document: Json = json.loads(kubeconfig(found, cluster_name="c", tenant_id="t", login="spn"))
    assert document["current-context"] == "c"
    assert "token" not in json.dumps(document).replace("get-token", "")


@pytest.mark.parametrize(
    "broken",
    [
        "",
        "no base64!",
        base64.b64encode(b"\xff\xfe").decode(),
        base64.b64encode(b"- a\n- b").decode(),
        base64.b64encode(b"clusters: []").decode(),
        base64.b64encode(b"clusters: [{cluster: {server: https://x}}]").decode(),
        base64.b64encode(b"clusters: [{cluster: {server: 1, certificate-authority-data: Q0E=}}]").decode(),
        base64.b64encode(b"clusters: {a: ").decode(),
    ],
)
def test_credentials_without_an_api_server_are_rejected(broken: str) -> None:
    with pytest.raises(ValueError, match="without the API server"):
        api_server(broken)


@given(st.text(max_size=200))
def test_malformed_credentials_are_rejected_with_a_message(handed_out: str) -> None:
    with pytest.raises(ValueError, match="AKS returned credentials"):
        api_server(base64.b64encode(handed_out.encode(errors="replace")).decode())
