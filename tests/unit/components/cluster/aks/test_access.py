"""From where the API server of AKS is reached, and who gets in once it is."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import TYPE_CHECKING, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.components.cluster.aks.access import (
    ApiServer,
    ApiServerAccess,
    Login,
    PrivateAccess,
    PublicAccess,
    api_server,
    kubeconfig,
)
from tests.support.aks_component import (
    ADMINS,
    AUTHORITY,
    DEPLOYER,
    GROUP,
    SERVER,
    SUBSCRIPTION,
    TENANT,
    UID,
    credentials,
    recorded_cluster,
)
from tests.support.inputs import mapping, objects, text, value

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json

_CLUSTER = ":ManagedCluster"
_GRANT = ":RoleAssignment"
_PROVIDER = "pulumi:providers:kubernetes"
_ADMIN = f"/subscriptions/{SUBSCRIPTION}/providers/Microsoft.Authorization/roleDefinitions/b1ff04bb-8a4e-4dc4-8eb5-8693973ce19b"


def profile(access: ApiServerAccess) -> Json:
    made = recorded_cluster(lambda args: replace(args, access=access)).one(_CLUSTER)
    return mapping(made, "apiServerAccessProfile")


def token_command(login: Login = "azurecli") -> Json:
    recording = recorded_cluster(lambda args: replace(args, login=login))
    document: Json = json.loads(text(recording.one(_PROVIDER), "kubeconfig"))
    (user,) = objects(document, "users")
    return mapping(user, "user", "exec")


# --- from where -----------------------------------------------------------------------------------


def test_a_public_address_answers_named_ranges_and_the_nodes_own() -> None:
    assert profile(PublicAccess(cidrs=["203.0.113.0/24"])) == {
        "enablePrivateCluster": False,
        "authorizedIPRanges": ["203.0.113.0/24", "198.51.100.7/32"],
    }, "nodes come by their NAT gateway, which AKS does not add: they would never join"


def test_a_public_address_for_nobody_is_refused() -> None:
    with pytest.raises(ValueError, match="the whole internet: add a range"):
        PublicAccess(cidrs=[])


def test_a_private_address_takes_no_ranges_and_its_name_is_no_secret_if_that_is_asked_for() -> None:
    assert profile(PrivateAccess()) == {
        "enablePrivateCluster": True,
        "enablePrivateClusterPublicFQDN": False,
        "privateDNSZone": "system",
    }, "AKS refuses ranges here, and shows the name to everybody unless it is told not to"
    assert profile(PrivateAccess(public_name=True))["enablePrivateClusterPublicFQDN"] is True, (
        "it was asked for"
    )


@pytest.mark.parametrize(
    ("access", "asked"),
    [
        (PublicAccess(cidrs=["203.0.113.0/24"]), None),
        (PrivateAccess(), None),
        (PrivateAccess(public_name=True), "public"),
    ],
)
def test_clients_are_given_the_name_that_they_can_look_up(access: ApiServerAccess, asked: str | None) -> None:
    assert access.name_to_use == asked, "AKS gives the private name of a private cluster by itself"


# --- who ------------------------------------------------------------------------------------------


def test_nobody_gets_in_who_is_not_somebody_in_entra_id_with_a_role_of_azures() -> None:
    cluster = recorded_cluster().one(_CLUSTER)
    assert value(cluster, "disableLocalAccounts") is True, "admin credentials never expire and name nobody"
    assert mapping(cluster, "aadProfile") == {
        "managed": True,
        "enableAzureRBAC": True,
        "tenantID": TENANT,
    }, "Azure's roles are asked, in the tenant of the stack"


def test_the_deployer_has_a_role_before_the_cluster_is_made_and_until_it_is_gone() -> None:
    recording = recorded_cluster()
    grant = recording.one(_GRANT, "cluster-deployer-role-assignment")
    assert {name: grant.inputs[name] for name in ("scope", "principalId", "roleDefinitionId")} == {
        "scope": f"/subscriptions/{SUBSCRIPTION}/resourceGroups/{GROUP}",
        "principalId": DEPLOYER,
        "roleDefinitionId": _ADMIN,
    }, "on the group, which is there before the cluster"
    for later in (recording.one(_CLUSTER), recording.one(_PROVIDER)):
        assert grant.name in recording.everything_before(later), (
            "Azure takes minutes to heed a role; and whoever loses it first cannot delete what is in the cluster"
        )


def test_azure_looks_by_itself_what_kind_of_principal_the_deployer_is() -> None:
    recording = recorded_cluster(lambda args: replace(args, admins=ADMINS))
    for grant in recording.of(_GRANT):
        if grant.inputs["roleDefinitionId"] == _ADMIN:
            assert "principalType" not in grant.inputs, (
                "the SDK says `User` where nothing is said, and Azure refuses groups and pipelines for that"
            )


def test_who_comes_after_the_deployer_does_not_take_their_role() -> None:
    recording = recorded_cluster(lambda args: replace(args, admins=ADMINS))
    assert recording.one(_GRANT, "cluster-deployer-role-assignment").ignore_changes == {
        "principalId",
        "principalType",
        "roleAssignmentName",
    }, "two who take turns would take it from each other"
    for admin in ADMINS:
        grant = recording.one(_GRANT, f"cluster-administrators-{admin}-assignment")
        assert not grant.ignore_changes, "who is named is let in, and nobody else"


def test_administrators_have_a_role_on_the_cluster_before_anything_is_in_it() -> None:
    recording = recorded_cluster(lambda args: replace(args, admins=[*ADMINS, DEPLOYER]))
    grants = [one for one in recording.of(_GRANT) if one.name.startswith("cluster-administrators-")]
    assert sorted(str(one.inputs["principalId"]) for one in grants) == sorted([*ADMINS, DEPLOYER]), (
        "the deployer may be among them: theirs is on the group, and Azure takes no role twice on one thing"
    )
    assert len({str(one.inputs["roleAssignmentName"]) for one in recording.of(_GRANT)}) == len(
        recording.of(_GRANT)
    ), "Azure tells assignments apart by their names"
    before = recording.everything_before(recording.one(_PROVIDER))
    for one in grants:
        assert one.inputs["scope"] == "cluster-control-plane-aks-id", "on the cluster alone"
        assert one.name in before, "another administrator may be who runs `up`"


# --- how ------------------------------------------------------------------------------------------


def test_clients_ask_kubelogin_for_a_token_and_hold_none() -> None:
    command = token_command()
    assert command["command"] == "kubelogin", "whoever has the kubeconfig needs this program"
    assert command["args"] == [
        "get-token",
        "--login",
        "azurecli",
        "--environment",
        "AzurePublicCloud",
        "--server-id",
        "6dae42f8-4368-4678-94ff-3960e28e3630",
        "--tenant-id",
        TENANT,
    ], "a token for AKS's own application in the stack's tenant"
    assert command["interactiveMode"] == "Never", "a prompt would hang a pipeline"


@pytest.mark.parametrize("login", get_args(Login))
def test_a_pipeline_logs_in_its_own_way(login: Login) -> None:
    assert list(map(str, objects(token_command(login), "args")))[2] == login, "its credentials are its own"


def test_the_cluster_is_known_by_its_own_id_however_it_is_reached() -> None:
    provider = recorded_cluster(
        lambda args: replace(args, login="spn", access=PrivateAccess(public_name=True))
    ).one(_PROVIDER)
    assert provider.inputs["clusterIdentifier"] == UID, (
        "by its address alone, another way in would replace everything in the cluster"
    )


def test_on_preview_of_a_new_cluster_the_way_in_is_unknown_and_nothing_is_asked() -> None:
    provider = recorded_cluster(preview=True).one(_PROVIDER)
    assert not isinstance(provider.inputs["kubeconfig"], str), "there is no cluster to ask for"


@given(st.from_regex(r"https://[a-z0-9.-]{1,60}:443", fullmatch=True), st.binary(min_size=1, max_size=60))
def test_of_akss_credentials_the_api_server_and_its_authority_are_kept(url: str, authority: bytes) -> None:
    encoded = base64.b64encode(authority).decode()
    found = api_server(credentials(url, encoded))
    assert found == ApiServer(url=url, certificate_authority=encoded), "the rest is whoever asked"
    document: Json = json.loads(kubeconfig(found, cluster_name="c", tenant_id="t", login="spn"))
    assert document["current-context"] == "c", "a client needs no further setting"
    assert "token" not in json.dumps(document).replace("get-token", ""), "no credential is written down"


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
def test_credentials_that_name_no_api_server_are_refused(broken: str) -> None:
    with pytest.raises(ValueError, match="without the API server"):
        api_server(broken)


@given(st.text(max_size=200))
def test_what_is_no_kubeconfig_is_refused_in_words(handed_out: str) -> None:
    with pytest.raises(ValueError, match="AKS returned credentials"):
        api_server(base64.b64encode(handed_out.encode(errors="replace")).decode())


def test_what_aks_is_asked_for_is_the_stacks_own_address() -> None:
    recording = recorded_cluster()
    document: Json = json.loads(text(recording.one(_PROVIDER), "kubeconfig"))
    (server,) = objects(document, "clusters")
    assert mapping(server, "cluster") == {
        "server": SERVER,
        "certificate-authority-data": AUTHORITY,
    }, "what AKS says, and nothing guessed"
