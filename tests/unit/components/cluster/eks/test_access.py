"""Who is let into the cluster."""

from __future__ import annotations

from dataclasses import replace

from holdfast.components.cluster.eks.access import NodeAccess, NodeAccessArgs
from tests.support.eks_cluster import ADMIN, recorded_cluster
from tests.support.fakes.pulumi_engine import record
from tests.support.inputs import text

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
