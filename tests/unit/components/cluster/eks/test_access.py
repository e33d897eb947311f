"""Access to EKS: access entries and the kubeconfig."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.components.cluster.eks.access import ApiServer, NodeAccess, NodeAccessArgs, kubeconfig
from tests.support.builders.aws_components import ADMIN, recorded_cluster
from tests.support.fakes.cloud_outputs import AUTHORITY, ENDPOINT
from tests.support.fakes.pulumi_engine import record
from tests.support.inputs import mapping, objects, text

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json


_NODE_ROLE = "arn:aws:iam::123456789012:role/karpenter-nodes"


def test_administrators_have_entries_with_the_admin_policy_before_the_clusters_contents() -> None:
    recording = recorded_cluster()
    entry, policy = recording.one(":AccessEntry"), recording.one(":AccessPolicyAssociation")
    assert entry.inputs["principalArn"] == ADMIN, "the administrator's entry"
    assert (
        policy.inputs["policyArn"] == "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
    ), "an entry alone gives no permissions"
    assert policy.inputs["accessScope"] == {"type": "cluster"}, "not only in some namespaces"
    assert entry.name in policy.depends_on, "EKS rejects a policy for a principal without an entry"
    kinds = {text(one, "type") for one in recording.of(":AccessEntry")}
    assert kinds == {"STANDARD"}, "EKS creates the entry of a managed group itself and rejects a second one"
    before = recording.everything_before(recording.one(":kubernetes"))
    entries = {one.name for one in recording if "access" in one.type.lower()}
    assert entries, "there is an administrator"
    assert entries <= before, "destroy must keep its own access until it is done"


def test_administrators_of_the_same_name_in_two_accounts_are_distinct() -> None:
    admins = [ADMIN, ADMIN.replace("123456789012", "210987654321")]
    entries = recorded_cluster(lambda args: replace(args, admins=admins)).of(":AccessEntry")
    assert {text(one, "principalArn") for one in entries} == set(admins), "each has an entry"
    assert len({one.urn for one in entries}) == 2, "logical names must be unique"


def test_nodes_of_another_role_have_a_node_entry() -> None:
    recording = record(
        lambda: NodeAccess("karpenter", NodeAccessArgs(cluster_name="holdfast-dev", role_arn=_NODE_ROLE))
    )
    entry = recording.one(":AccessEntry")
    assert entry.inputs == {"clusterName": "holdfast-dev", "principalArn": _NODE_ROLE, "type": "EC2_LINUX"}, (
        "without it a node starts and never joins"
    )


_NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", fullmatch=True)


def document(aws_profile: str | None = None) -> Json:
    recording = recorded_cluster(lambda args: replace(args, aws_profile=aws_profile))
    return json.loads(text(recording.one(":kubernetes"), "kubeconfig"))


def command(kubeconfig: Json) -> Json:
    (user,) = objects(kubeconfig, "users")
    return mapping(user, "user", "exec")


def test_the_kubeconfig_calls_the_aws_cli_for_a_token_of_this_cluster() -> None:
    asked = command(document())
    assert asked["command"] == "aws", "the CLI of the user that runs Pulumi"
    assert asked["args"] == [
        "eks",
        "get-token",
        "--cluster-name",
        "holdfast-dev",
        "--region",
        "us-east-1",
        "--output",
        "json",
    ], "the CLI's default region may be another"
    assert asked["interactiveMode"] == "Never", "a prompt would block an unattended run"
    (cluster,) = objects(document(), "clusters")
    assert mapping(cluster, "cluster") == {"server": ENDPOINT, "certificate-authority-data": AUTHORITY}, (
        "not the cluster of the user's kubectl context"
    )
    assert command(document("production"))["env"] == [{"name": "AWS_PROFILE", "value": "production"}], (
        "Pulumi and the command must be the same principal"
    )
    assert "env" not in command(document()), "the CLI's default"


def test_on_preview_of_a_new_cluster_the_kubeconfig_is_unknown() -> None:
    provider = recorded_cluster(preview=True).one(":kubernetes")
    assert "https://" not in str(provider.inputs.get("kubeconfig")), "an address was made up"


@given(name=_NAMES, region=_NAMES, profile=st.none() | _NAMES)
def test_every_kubeconfig_is_complete_and_holds_no_credential(
    name: str, region: str, profile: str | None
) -> None:
    server = ApiServer(cluster_name=name, region=region, endpoint=ENDPOINT, certificate_authority=AUTHORITY)
    made = json.loads(kubeconfig(server, profile))
    context = next(one for one in made["contexts"] if one["name"] == made["current-context"])["context"]
    (cluster,), (user,) = made["clusters"], made["users"]
    assert (cluster["name"], user["name"]) == (context["cluster"], context["user"]), "references must resolve"
    assert set(user["user"]) == {"exec"}, "a kubeconfig in the state must hold no credential"


@pytest.mark.parametrize("preview", [False, True])
def test_all_kubernetes_resources_use_the_clusters_provider(preview: bool) -> None:
    recording = recorded_cluster(preview=preview)
    assert len(recording.of("pulumi:providers:kubernetes")) == 1, "there is only one"
