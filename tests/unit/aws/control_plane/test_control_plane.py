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
    assert access == {"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": True}
    assert cluster.inputs["bootstrapSelfManagedAddons"] is False
    assert "computeConfig" not in cluster.inputs
    for setting in ("accessConfig", "bootstrapSelfManagedAddons"):
        assert any(path.startswith(setting) for path in cluster.ignore_changes), (
            f"EKS reads {setting} once: a later difference would replace the cluster with everything in it"
        )
    network = value(cluster, "kubernetesNetworkConfig")
    assert network == {"ipFamily": "ipv4", "serviceIpv4Cidr": "172.20.0.0/16"}


def test_secrets_are_encrypted_with_a_rotated_customer_key() -> None:
    recording = recorded_cluster()
    key, cluster = recording.one(":Key"), recording.one(_CLUSTER)
    assert key.inputs["enableKeyRotation"] is True
    assert text(cluster, "encryptionConfig", "provider", "keyArn").endswith(key.name)
    assert value(cluster, "encryptionConfig", "resources") == ["secrets"]
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
    ]
    assert logs.inputs["name"] == "/aws/eks/holdfast-dev/cluster"
    assert logs.inputs["retentionInDays"] == 30
    assert logs.name in cluster.depends_on


def test_the_private_endpoint_is_on_and_the_public_one_is_restricted_or_off() -> None:
    network = value(recorded_cluster().one(_CLUSTER), "vpcConfig")
    assert network == {
        "subnetIds": ["subnet-1", "subnet-2"],
        "endpointPrivateAccess": True,
        "endpointPublicAccess": True,
        "publicAccessCidrs": ["203.0.113.0/24"],
    }
    network = value(
        recorded_cluster(lambda args: replace(args, public_access_cidrs=())).one(_CLUSTER), "vpcConfig"
    )
    assert network == {
        "subnetIds": ["subnet-1", "subnet-2"],
        "endpointPrivateAccess": True,
        "endpointPublicAccess": False,
    }


def test_private_clients_in_the_given_subnets_have_security_group_rules() -> None:
    recording = recorded_cluster(lambda args: replace(args, private_access_cidrs=["10.40.0.0/16"]))
    rule = recording.one(":SecurityGroupIngressRule")
    asked = {name: rule.inputs[name] for name in ("securityGroupId", "cidrIpv4", "fromPort", "toPort")}
    assert asked == {"securityGroupId": GROUP, "cidrIpv4": "10.40.0.0/16", "fromPort": 443, "toPort": 443}
    assert rule.name in recording.one(":kubernetes").depends_on, "deployments there need it until the end"
    recording = recorded_cluster(lambda args: replace(args, private_subnet_ids=["subnet-a", "subnet-b"]))
    assert value(recording.one(_CLUSTER), "vpcConfig", "subnetIds") == ["subnet-a", "subnet-b"]
    assert not recording.of(":Subnet")
    assert not recording.of(":Tag")


def test_a_protected_clusters_key_can_be_restored_for_a_month() -> None:
    recording = recorded_cluster(lambda args: replace(args, protected=True))
    window = recording.one(":Key").inputs["deletionWindowInDays"]
    assert window == 30


def test_the_cluster_depends_on_its_role_with_policies_of_its_partition() -> None:
    recording = recorded_cluster()
    cluster = recording.one(_CLUSTER)
    policies = {
        text(one, "policyArn")
        for one in recording.of(":RolePolicyAttachment")
        if one.name in cluster.depends_on
    }
    assert policies == {"arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"}
    role = recording.one(":Role", "cluster-control-plane-iam-role")
    assert '"eks.amazonaws.com"' in text(role, "assumeRolePolicy")
    recording = recorded_cluster(lambda args: replace(args, partition="aws-us-gov", region="us-gov-west-1"))
    arns = [text(one, "policyArn") for one in recording if "policyArn" in one.inputs]
    assert arns
    assert all(arn.startswith("arn:aws-us-gov:") for arn in arns)
