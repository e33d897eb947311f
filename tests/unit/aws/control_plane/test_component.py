import json
import runpy
from dataclasses import replace
from typing import Final, cast

import pulumi
import pytest
import yaml
from pulumi.runtime import mocks as pulumi_mocks

from pulumi_holdfast.aws.control_plane.access import Caller, NodeAccess, NodeAccessArgs
from pulumi_holdfast.aws.control_plane.component import EksClusterArgs
from pulumi_holdfast.aws.control_plane.control_plane import ControlPlaneLogs
from pulumi_holdfast.ladder.json import Json
from tests.support.builders.aws_components import ADMIN, cluster_args, recorded_cluster
from tests.support.doc_pages import ROOT
from tests.support.fakes.cloud_outputs import AUTHORITY, ENDPOINT, GROUP, ISSUER, eks_outputs
from tests.support.fakes.pulumi_engine import PROJECT, record, run_mocked
from tests.support.inputs import mapping, objects, text, value

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


EXAMPLE: Final = ROOT / "examples/parts/pulumi-eks"
INSIDE: Final = f"urn:pulumi:dev::{PROJECT}::eks:index:Cluster$aws:eks/cluster:Cluster::shared-eksCluster"
#: A resource in an output, as the engine's protocol writes it.
REFERENCE: Final = {
    "4dabf18193072939515e22adb298388d": "5cf8f73096256a8f31e491e813e4eb8e",
    "urn": INSIDE,
    "id": "shared",
}


class PulumiEks(pulumi_mocks.Mocks):
    """A cloud that accepts everything, and a plugin that answers the construction of a cluster with what is in it."""

    def __init__(self) -> None:
        self.made: dict[str, Json] = {}

    def new_resource(self, args: pulumi_mocks.MockResourceArgs) -> tuple[str | None, dict[str, object]]:
        inputs = cast("dict[str, object]", args.inputs)  # pyright: ignore[reportUnknownMemberType] - untyped in the SDK
        self.made[args.name] = cast("Json", inputs)
        if args.typ == "eks:index:Cluster":
            return None, {**inputs, "eksCluster": REFERENCE, "oidcProviderUrl": ISSUER}
        arn = f"arn:aws:iam::123456789012:role/{args.name}"
        return f"{args.name}-id", {"arn": arn, "name": args.name, **inputs, **eks_outputs(args.typ, inputs)}

    def call(self, args: pulumi_mocks.MockCallArgs) -> tuple[dict[str, object], list[tuple[str, str]]]:
        raise AssertionError(f"{args.token}: everything is known from the cluster")


@pytest.fixture
def configured() -> None:
    """The configuration of the example, under the name of the tests' project."""
    document = yaml.safe_load((EXAMPLE / "Pulumi.dev.yaml").read_text("utf-8"))
    pulumi.runtime.set_all_config(
        {
            name.replace("shared:", f"{PROJECT}:"): value if isinstance(value, str) else json.dumps(value)
            for name, value in document["config"].items()
        }
    )


@pytest.mark.usefixtures("configured")
def test_components_use_the_cluster_that_the_package_made() -> None:
    plugin = PulumiEks()
    monitor = pulumi_mocks.MockMonitor(plugin)
    outputs = {"name": "shared", **eks_outputs("aws:eks/cluster:Cluster", {})}
    monitor.resources[INSIDE] = monitor.ResourceRegistration(INSIDE, "shared", outputs)
    run_mocked(lambda: runpy.run_path(str(EXAMPLE / "__main__.py")), plugin, monitor, stack="dev")
    made = plugin.made
    kubeconfig = json.loads(str(made["cluster-kubernetes"]["kubeconfig"]))
    server = {"server": ENDPOINT, "certificate-authority-data": AUTHORITY}
    assert kubeconfig["clusters"][0]["cluster"] == server
    assert made["system-nodes"]["clusterName"] == "shared"
    groups = cast("Json", made["pool-cpu-spot-node-class"]["spec"])["securityGroupSelectorTerms"]
    assert groups == [{"id": GROUP}]


_GROUP = ":NodeGroup"


def test_the_group_has_two_tainted_on_demand_nodes_across_all_subnets() -> None:
    group = recorded_cluster().one(_GROUP)
    assert group.inputs["capacityType"] == "ON_DEMAND", "an interruption would stop the operators"
    assert group.inputs["subnetIds"] == ["subnet-1", "subnet-2"]
    assert value(group, "scalingConfig") == {"desiredSize": 2, "minSize": 2, "maxSize": 2}
    assert objects(group, "taints") == [
        {"key": "CriticalAddonsOnly", "value": "true", "effect": "NO_SCHEDULE"}
    ]
    assert value(group, "labels") == {"holdfast.dev/system": "true"}
    assert "nodeGroupName" not in group.inputs


def test_the_launch_template_has_the_configured_volume_tags_and_metadata_options() -> None:
    nodes = replace(cluster_args().system_nodes, volume_gib=80, tags={"team": "ml"})
    template = recorded_cluster(lambda args: replace(args, system_nodes=nodes)).one(":LaunchTemplate")
    (device,) = objects(template, "blockDeviceMappings")
    assert device["deviceName"] == "/dev/xvda"
    assert text(device, "ebs", "encrypted") == "true"
    assert value(device, "ebs", "volumeSize") == 80
    specifications = objects(template, "tagSpecifications")
    assert {text(one, "resourceType"): value(one, "tags") for one in specifications} == {
        "instance": {"Name": "holdfast-dev-system", "team": "ml"},
        "volume": {"Name": "holdfast-dev-system", "team": "ml"},
    }
    options = mapping(template, "metadataOptions")
    assert options == {"httpEndpoint": "enabled", "httpTokens": "required", "httpPutResponseHopLimit": 1}


def test_the_group_has_the_clusters_version_and_a_version_number_of_its_template() -> None:
    recording = recorded_cluster()
    group = recording.one(_GROUP)
    template = recording.one(":LaunchTemplate")
    assert value(group, "launchTemplate", "version") == "1"
    assert template.urn in group.made_of["launchTemplate"]
    assert "diskSize" not in group.inputs
    assert group.inputs["version"] == recording.one(":Cluster").inputs["version"]
    for one in (group, template):
        assert "karpenter.sh/" not in str(one.inputs), f"{one.name}: Karpenter would select it"


@pytest.mark.parametrize(
    ("architecture", "image"), [("amd64", "AL2023_x86_64_STANDARD"), ("arm64", "AL2023_ARM_64_STANDARD")]
)
def test_the_image_matches_the_architecture_and_the_configured_release(architecture: str, image: str) -> None:
    def change(args: EksClusterArgs) -> EksClusterArgs:
        nodes = replace(args.system_nodes, architecture="arm64" if architecture == "arm64" else "amd64")
        return replace(args, system_nodes=nodes)

    assert recorded_cluster(change).one(_GROUP).inputs["amiType"] == image
    assert "releaseVersion" not in recorded_cluster().one(_GROUP).inputs
    pinned = recorded_cluster(
        lambda args: replace(args, system_nodes=replace(args.system_nodes, release_version="1.36.3-20260911"))
    )
    assert pinned.one(_GROUP).inputs["releaseVersion"] == "1.36.3-20260911"


def test_nodes_depend_on_their_own_role_with_all_policies() -> None:
    recording = recorded_cluster()
    group = recording.one(_GROUP)
    policies = {
        text(one, "policyArn").rpartition("/")[2]
        for one in recording.of(":RolePolicyAttachment")
        if one.name in group.depends_on
    }
    assert policies == {
        "AmazonEKSWorkerNodePolicy",
        "AmazonEKS_CNI_Policy",
        "AmazonEC2ContainerRegistryPullOnly",
    }


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
