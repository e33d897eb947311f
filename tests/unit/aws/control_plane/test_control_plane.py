"""The control plane of EKS: access mode, encryption, logs, endpoints, role and deletion."""

from dataclasses import replace

from pulumi_holdfast.aws.control_plane.control_plane import ControlPlaneLogs
from tests.support.builders.aws_components import recorded_cluster
from tests.support.fakes.cloud_outputs import GROUP
from tests.support.inputs import text, value

_CLUSTER = ":Cluster"


def test_access_is_by_entries_and_nothing_is_installed_by_eks() -> None:
    cluster = recorded_cluster().one(_CLUSTER)
    access = value(cluster, "accessConfig")
    assert access == {"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": True}, (
        "a ConfigMap would be a second source, and without an entry the creator is locked out"
    )
    assert cluster.inputs["bootstrapSelfManagedAddons"] is False, "the program installs the add-ons"
    assert "computeConfig" not in cluster.inputs, "the program and Karpenter create the nodes"
    for setting in ("accessConfig", "bootstrapSelfManagedAddons"):
        assert any(path.startswith(setting) for path in cluster.ignore_changes), (
            f"EKS reads {setting} once: a later difference would replace the cluster with everything in it"
        )
    network = value(cluster, "kubernetesNetworkConfig")
    assert network == {"ipFamily": "ipv4", "serviceIpv4Cidr": "172.20.0.0/16"}, (
        "EKS's choice depends on the VPC, so an overlap could not be checked in advance"
    )


def test_secrets_are_encrypted_with_a_rotated_customer_key() -> None:
    recording = recorded_cluster()
    key, cluster = recording.one(":Key"), recording.one(_CLUSTER)
    assert key.inputs["enableKeyRotation"] is True, "KMS rotates a key only if it is enabled"
    assert text(cluster, "encryptionConfig", "provider", "keyArn").endswith(key.name), "another key is used"
    assert value(cluster, "encryptionConfig", "resources") == ["secrets"], "EKS accepts nothing else"
    assert key.name in cluster.depends_on, "without its key the cluster cannot read its own state"


def test_all_control_plane_logs_go_to_a_group_with_retention() -> None:
    recording = recorded_cluster(lambda args: replace(args, logs=ControlPlaneLogs(retention_days=30)))
    logs, cluster = recording.one(":LogGroup"), recording.one(_CLUSTER)
    assert cluster.inputs["enabledClusterLogTypes"] == [
        "api",
        "audit",
        "authenticator",
        "controllerManager",
        "scheduler",
    ], "logs are needed after an incident"
    assert logs.inputs["name"] == "/aws/eks/holdfast-dev/cluster", "EKS writes to this group only"
    assert logs.inputs["retentionInDays"] == 30, "a group that EKS creates has no retention"
    assert logs.name in cluster.depends_on, "EKS creates the group if it does not exist"


def test_the_private_endpoint_is_on_and_the_public_one_is_restricted_or_off() -> None:
    network = value(recorded_cluster().one(_CLUSTER), "vpcConfig")
    assert network == {
        "subnetIds": ["subnet-1", "subnet-2"],
        "endpointPrivateAccess": True,
        "endpointPublicAccess": True,
        "publicAccessCidrs": ["203.0.113.0/24"],
    }, "only the named ranges may connect over the internet"
    network = value(
        recorded_cluster(lambda args: replace(args, public_access_cidrs=())).one(_CLUSTER), "vpcConfig"
    )
    assert network == {
        "subnetIds": ["subnet-1", "subnet-2"],
        "endpointPrivateAccess": True,
        "endpointPublicAccess": False,
    }, "without publicAccessCidrs EKS allows the whole internet"


def test_private_clients_in_the_given_subnets_have_security_group_rules() -> None:
    recording = recorded_cluster(lambda args: replace(args, private_access_cidrs=["10.40.0.0/16"]))
    rule = recording.one(":SecurityGroupIngressRule")
    asked = {name: rule.inputs[name] for name in ("securityGroupId", "cidrIpv4", "fromPort", "toPort")}
    assert asked == {"securityGroupId": GROUP, "cidrIpv4": "10.40.0.0/16", "fromPort": 443, "toPort": 443}, (
        "the cluster's security group allows only its members, not a build runner"
    )
    assert rule.name in recording.one(":kubernetes").depends_on, "deployments there need it until the end"
    recording = recorded_cluster(lambda args: replace(args, private_subnet_ids=["subnet-a", "subnet-b"]))
    assert value(recording.one(_CLUSTER), "vpcConfig", "subnetIds") == ["subnet-a", "subnet-b"], (
        "and no other"
    )
    assert not recording.of(":Subnet"), "no subnet is created"
    assert not recording.of(":Tag"), "the user's subnets are never tagged"


def test_a_protected_clusters_key_can_be_restored_for_a_month() -> None:
    recording = recorded_cluster(lambda args: replace(args, protected=True))
    window = recording.one(":Key").inputs["deletionWindowInDays"]
    assert window == 30, "the deletion of the key can be canceled for 30 days"


def test_the_cluster_depends_on_its_role_with_policies_of_its_partition() -> None:
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
    recording = recorded_cluster(lambda args: replace(args, partition="aws-us-gov", region="us-gov-west-1"))
    arns = [text(one, "policyArn") for one in recording if "policyArn" in one.inputs]
    assert arns, "policies are referenced by ARN"
    assert all(arn.startswith("arn:aws-us-gov:") for arn in arns), f"{arns}: of another partition"
