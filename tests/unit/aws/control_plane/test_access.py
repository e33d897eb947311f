"""Access to EKS: access entries and the kubeconfig."""

import json
from dataclasses import replace

from pulumi_holdfast.aws.control_plane.access import Caller, NodeAccess, NodeAccessArgs
from pulumi_holdfast.ladder.json import Json
from tests.support.builders.aws_components import ADMIN, recorded_cluster
from tests.support.fakes.pulumi_engine import record
from tests.support.inputs import mapping, objects, text

_NODE_ROLE = "arn:aws:iam::123456789012:role/karpenter-nodes"


def test_administrators_have_entries_with_the_admin_policy_before_the_clusters_contents() -> None:
    recording = recorded_cluster()
    entry, policy = recording.one(":AccessEntry"), recording.one(":AccessPolicyAssociation")
    assert entry.inputs["principalArn"] == ADMIN
    assert policy.inputs["policyArn"] == "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
    assert policy.inputs["accessScope"] == {"type": "cluster"}
    assert entry.name in policy.depends_on
    kinds = {text(one, "type") for one in recording.of(":AccessEntry")}
    assert kinds == {"STANDARD"}
    before = recording.everything_before(recording.one(":kubernetes"))
    entries = {one.name for one in recording if "access" in one.type.lower()}
    assert entries
    assert entries <= before, "destroy must keep its own access until it is done"


def test_administrators_of_the_same_name_in_two_accounts_are_distinct() -> None:
    admins = [ADMIN, ADMIN.replace("123456789012", "210987654321")]
    entries = recorded_cluster(lambda args: replace(args, admins=admins)).of(":AccessEntry")
    assert {text(one, "principalArn") for one in entries} == set(admins)
    assert len({one.urn for one in entries}) == 2, "logical names must be unique"


def test_nodes_of_another_role_have_a_node_entry() -> None:
    recording = record(
        lambda: NodeAccess("karpenter", NodeAccessArgs(cluster_name="holdfast-dev", role_arn=_NODE_ROLE))
    )
    entry = recording.one(":AccessEntry")
    assert entry.inputs == {"clusterName": "holdfast-dev", "principalArn": _NODE_ROLE, "type": "EC2_LINUX"}


def test_the_kubeconfig_uses_the_configured_aws_profile() -> None:
    def command(aws_profile: str | None) -> Json:
        recording = recorded_cluster(lambda args: replace(args, caller=Caller(profile=aws_profile)))
        document: Json = json.loads(text(recording.one(":kubernetes"), "kubeconfig"))
        return mapping(objects(document, "users")[0], "user", "exec")

    assert command("production")["env"] == [{"name": "AWS_PROFILE", "value": "production"}]
    assert "env" not in command(None)
