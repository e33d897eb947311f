"""Who is let into the cluster."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.components.cluster.eks.access import ApiServer, NodeAccess, NodeAccessArgs, kubeconfig
from tests.support.eks_cluster import ADMIN, recorded_cluster
from tests.support.eks_outputs import AUTHORITY, ENDPOINT
from tests.support.fakes.pulumi_engine import record
from tests.support.inputs import mapping, objects, text

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json


_NODE_ROLE = "arn:aws:iam::123456789012:role/karpenter-nodes"


def test_an_administrator_has_an_entry_and_the_policy_for_the_whole_cluster() -> None:
    recording = recorded_cluster()
    entry, policy = recording.one(":AccessEntry"), recording.one(":AccessPolicyAssociation")
    assert entry.inputs["principalArn"] == ADMIN, "the entry is the administrator's"
    assert (
        policy.inputs["policyArn"] == "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
    ), "an entry alone lets its principal in to do nothing"
    assert policy.inputs["accessScope"] == {"type": "cluster"}, "not only some namespaces"
    assert entry.name in policy.depends_on, "EKS refuses a policy for a principal without an entry"


def test_administrators_of_one_name_in_two_accounts_are_two() -> None:
    admins = [ADMIN, ADMIN.replace("123456789012", "210987654321")]
    entries = recorded_cluster(lambda args: replace(args, admins=admins)).of(":AccessEntry")
    assert {text(one, "principalArn") for one in entries} == set(admins), "each has an entry"
    assert len({one.urn for one in entries}) == 2, "the engine refuses two resources of one name"


def test_the_system_nodes_get_no_entry_from_us() -> None:
    recording = recorded_cluster()
    kinds = {text(one, "type") for one in recording.of(":AccessEntry")}
    assert kinds == {"STANDARD"}, (
        "EKS makes the entry of a managed group's role itself and refuses a second one"
    )


def test_everything_inside_depends_on_who_was_let_in() -> None:
    recording = recorded_cluster()
    before = recording.everything_before(recording.one(":kubernetes"))
    entries = {one.name for one in recording if "access" in one.type.lower()}
    assert entries, "there is an administrator"
    assert entries <= before, "a destroy must not take its own access away before it is done inside"


def test_nodes_of_another_role_are_let_in_as_nodes() -> None:
    recording = record(
        lambda: NodeAccess("karpenter", NodeAccessArgs(cluster_name="holdfast-dev", role_arn=_NODE_ROLE))
    )
    entry = recording.one(":AccessEntry")
    assert entry.inputs == {"clusterName": "holdfast-dev", "principalArn": _NODE_ROLE, "type": "EC2_LINUX"}, (
        "without this entry a node starts, is paid for, and never joins"
    )


_NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", fullmatch=True)


def document(aws_profile: str | None = None) -> Json:
    recording = recorded_cluster(lambda args: replace(args, aws_profile=aws_profile))
    return json.loads(text(recording.one(":kubernetes"), "kubeconfig"))


def command(kubeconfig: Json) -> Json:
    (user,) = objects(kubeconfig, "users")
    return mapping(user, "user", "exec")


def test_the_provider_asks_the_aws_cli_for_a_token_of_this_cluster() -> None:
    asked = command(document())
    assert asked["command"] == "aws", "the CLI that whoever runs Pulumi has configured"
    assert asked["args"] == [
        "eks",
        "get-token",
        "--cluster-name",
        "holdfast-dev",
        "--region",
        "us-east-1",
        "--output",
        "json",
    ], "the cluster's region is not the CLI's default one"
    assert asked["interactiveMode"] == "Never", "a prompt would hang an unattended run"


def test_the_provider_goes_to_the_clusters_own_address_and_trusts_its_own_authority() -> None:
    (cluster,) = objects(document(), "clusters")
    assert mapping(cluster, "cluster") == {
        "server": ENDPOINT,
        "certificate-authority-data": AUTHORITY,
    }, "not whatever cluster the user's kubectl points at"


def test_before_there_is_a_cluster_how_it_is_reached_is_not_known() -> None:
    provider = recorded_cluster(preview=True).one(":kubernetes")
    assert "https://" not in str(provider.inputs.get("kubeconfig")), "an address was made up"


def test_a_profile_of_the_cli_is_asked_as() -> None:
    assert command(document("production"))["env"] == [{"name": "AWS_PROFILE", "value": "production"}], (
        "Pulumi and the command must be the same caller"
    )
    assert "env" not in command(document()), "without one, whatever the surroundings say"


@given(name=_NAMES, region=_NAMES, profile=st.none() | _NAMES)
def test_no_kubeconfig_holds_a_credential_and_each_is_complete(
    name: str, region: str, profile: str | None
) -> None:
    server = ApiServer(cluster_name=name, region=region, endpoint=ENDPOINT, certificate_authority=AUTHORITY)
    made = json.loads(kubeconfig(server, profile))
    context = next(one for one in made["contexts"] if one["name"] == made["current-context"])["context"]
    (cluster,), (user,) = made["clusters"], made["users"]
    assert (cluster["name"], user["name"]) == (context["cluster"], context["user"]), (
        "a reference leads nowhere"
    )
    assert set(user["user"]) == {"exec"}, "a kubeconfig that is stored with the stack must hold no credential"


@pytest.mark.parametrize("preview", [False, True])
def test_nothing_is_reached_through_any_other_provider(preview: bool) -> None:
    recording = recorded_cluster(preview=preview)
    assert len(recording.of("pulumi:providers:kubernetes")) == 1, "there is one way into the cluster"
