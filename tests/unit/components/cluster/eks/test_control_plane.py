"""The control plane: what it keeps secret, whom it answers, what it writes down."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.eks_cluster import recorded_cluster
from tests.support.eks_outputs import GROUP
from tests.support.inputs import text, value

_CLUSTER = ":Cluster"


def test_only_access_entries_say_who_gets_in_and_the_creators_is_the_clusters_own() -> None:
    access = value(recorded_cluster().one(_CLUSTER), "accessConfig")
    assert access == {"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": True}, (
        "a ConfigMap beside the entries would be a second truth; without its own entry the creator is locked out"
    )


def test_secrets_are_encrypted_with_a_customer_key_that_is_rotated() -> None:
    recording = recorded_cluster()
    key, cluster = recording.one(":Key"), recording.one(_CLUSTER)
    assert key.inputs["enableKeyRotation"] is True, "KMS rotates only the keys it is told to"
    assert text(cluster, "encryptionConfig", "provider", "keyArn").endswith(key.name), "another key is used"
    assert value(cluster, "encryptionConfig", "resources") == ["secrets"], "EKS takes nothing else"
    assert key.name in cluster.depends_on, "without its key the cluster cannot read its own state"


def test_the_control_plane_logs_everything_to_a_group_that_does_not_keep_it_for_ever() -> None:
    recording = recorded_cluster(lambda args: replace(args, log_retention_days=30))
    logs, cluster = recording.one(":LogGroup"), recording.one(_CLUSTER)
    assert cluster.inputs["enabledClusterLogTypes"] == [
        "api",
        "audit",
        "authenticator",
        "controllerManager",
        "scheduler",
    ], "what happened is asked for after it happened"
    assert logs.inputs["name"] == "/aws/eks/holdfast-dev/cluster", "EKS writes to this group and to no other"
    assert logs.inputs["retentionInDays"] == 30, "a group that EKS makes itself is kept for ever"
    assert logs.name in cluster.depends_on, "EKS makes the group itself where it does not find it"


def test_the_private_endpoint_is_on_and_the_public_one_answers_named_ranges_only() -> None:
    network = value(recorded_cluster().one(_CLUSTER), "vpcConfig")
    assert network == {
        "subnetIds": ["subnet-1", "subnet-2"],
        "endpointPrivateAccess": True,
        "endpointPublicAccess": True,
        "publicAccessCidrs": ["203.0.113.0/24"],
    }, "nobody but the named ranges is answered over the internet"


def test_without_a_named_range_there_is_no_public_endpoint() -> None:
    network = value(
        recorded_cluster(lambda args: replace(args, public_access_cidrs=())).one(_CLUSTER), "vpcConfig"
    )
    assert network == {
        "subnetIds": ["subnet-1", "subnet-2"],
        "endpointPrivateAccess": True,
        "endpointPublicAccess": False,
    }, "left out, publicAccessCidrs means the whole internet to EKS"


def test_clients_in_the_vpc_are_let_in_by_name() -> None:
    recording = recorded_cluster(lambda args: replace(args, private_access_cidrs=["10.40.0.0/16"]))
    rule = recording.one(":SecurityGroupIngressRule")
    asked = {name: rule.inputs[name] for name in ("securityGroupId", "cidrIpv4", "fromPort", "toPort")}
    assert asked == {"securityGroupId": GROUP, "cidrIpv4": "10.40.0.0/16", "fromPort": 443, "toPort": 443}, (
        "the cluster's security group lets in only those who carry it: a build runner does not"
    )
    assert rule.name in recording.one(":kubernetes").depends_on, "who deploys from there needs it to the end"


def test_eks_installs_no_add_on_and_no_node_of_its_own() -> None:
    cluster = recorded_cluster().one(_CLUSTER)
    assert cluster.inputs["bootstrapSelfManagedAddons"] is False, (
        "an add-on that EKS put there first is in the way of the program's"
    )
    assert "computeConfig" not in cluster.inputs, "nodes are the program's and Karpenter's business"


@pytest.mark.parametrize("setting", ["accessConfig", "bootstrapSelfManagedAddons"])
def test_what_eks_reads_only_once_never_replaces_the_cluster(setting: str) -> None:
    ignored = recorded_cluster().one(_CLUSTER).ignore_changes
    assert any(path.startswith(setting) for path in ignored), (
        f"a later difference in {setting} would replace the cluster with everything in it"
    )


def test_the_service_range_is_chosen_by_the_program() -> None:
    network = value(recorded_cluster().one(_CLUSTER), "kubernetesNetworkConfig")
    assert network == {"ipFamily": "ipv4", "serviceIpv4Cidr": "172.20.0.0/16"}, (
        "left to EKS it depends on the VPC, and whether it overlaps can no longer be said beforehand"
    )


def test_a_protected_cluster_and_its_key_cannot_be_deleted_by_pulumi_or_by_hand() -> None:
    recording = recorded_cluster(lambda args: replace(args, protected=True))
    cluster, key = recording.one(_CLUSTER), recording.one(":Key")
    assert cluster.protect, "pulumi destroy must refuse it"
    assert key.protect, "the key is worth as much as the cluster"
    assert cluster.inputs["deletionProtection"] is True, "the console must refuse it too"
    assert key.inputs["deletionWindowInDays"] == 30, "there is a month to undo a deletion"


def test_an_unprotected_cluster_goes_without_further_ado() -> None:
    recording = recorded_cluster()
    assert not [one.name for one in recording if one.protect], "nothing is in the way of a destroy"
    assert recording.one(_CLUSTER).inputs["deletionProtection"] is False, "nor is EKS"


def test_the_role_of_the_control_plane_is_eks_alone_and_whole_before_the_cluster() -> None:
    recording = recorded_cluster()
    cluster = recording.one(_CLUSTER)
    policies = {
        text(one, "policyArn")
        for one in recording.of(":RolePolicyAttachment")
        if one.name in cluster.depends_on
    }
    assert policies == {"arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"}, (
        "a cluster whose role loses its policy first leaves network interfaces behind"
    )
    role = recording.one(":Role", "cluster-control-plane-iam-role")
    assert '"eks.amazonaws.com"' in text(role, "assumeRolePolicy"), "EKS assumes it"


def test_names_in_another_partition_are_that_partitions() -> None:
    recording = recorded_cluster(lambda args: replace(args, partition="aws-us-gov", region="us-gov-west-1"))
    arns = [text(one, "policyArn") for one in recording if "policyArn" in one.inputs]
    assert arns, "policies are named by ARN"
    assert all(arn.startswith("arn:aws-us-gov:") for arn in arns), f"{arns}: of a partition that is not there"


def test_the_cluster_is_in_the_subnets_it_is_given() -> None:
    recording = recorded_cluster(lambda args: replace(args, private_subnet_ids=["subnet-a", "subnet-b"]))
    assert value(recording.one(_CLUSTER), "vpcConfig", "subnetIds") == ["subnet-a", "subnet-b"], (
        "and no other"
    )
    assert not recording.of(":Subnet"), "no subnet is made here"
    assert not recording.of(":Tag"), "a subnet of the user's own is never tagged"
