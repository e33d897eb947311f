"""The networks of AWS stacks, and the sources of their charts and images."""

import pytest

from pulumi_holdfast.ladder.json import Json, JsonValue
from tests.support.builders.aws_stacks import CHARTS, IMAGES, SUBNETS, VPC, composed, stack
from tests.support.builders.configurations import aws_platform
from tests.support.fakes.cloud_outputs import GROUP, PLACEMENT
from tests.support.inputs import mapping, objects, text, value

WAYS_OUT = (":NatGateway", ":InternetGateway", ":Eip", ":EgressOnlyInternetGateway")


def test_an_isolated_network_has_no_egress_and_karpenter_is_configured_for_it() -> None:
    recording = stack("isolated")
    for kind in WAYS_OUT:
        assert not recording.of(kind), f"{kind} is a way to the internet"
    settings = mapping(recording.one(":Release", "main-karpenter-operator-controller"), "values", "settings")
    assert settings["isolatedVPC"] is True, "it would wait for a price list that it cannot reach"
    profile = recording.one(":InstanceProfile")
    for node_class in recording.of(":EC2NodeClass"):
        spec = mapping(node_class, "spec")
        assert spec["instanceProfile"] == f"{profile.name}-0a1b2c3"
        assert "role" not in spec, "Karpenter would ask IAM for a profile, which has no endpoint in a VPC"


@pytest.mark.parametrize("name", ["aws-dev", "aws-prod", "brought"])
def test_outside_isolated_networks_karpenter_creates_instance_profiles(name: str) -> None:
    assert not stack(name).of(":InstanceProfile")
    for node_class in stack(name).of(":EC2NodeClass"):
        assert text(node_class, "spec", "role") == "main-karpenter-node-role-0a1b2c3", (
            "by the name of the role"
        )


def test_an_existing_network_may_be_isolated() -> None:
    def brought(document: dict[str, JsonValue]) -> None:
        network: Json = {"vpcId": VPC, "privateSubnetIds": [*SUBNETS], "isolated": True}
        document.update(network=network, mirror={"charts": CHARTS, "images": IMAGES})

    recording = composed(aws_platform(brought))
    assert recording.of(":InstanceProfile")
    assert not recording.of(":VpcEndpoint")


def test_an_existing_network_is_used_by_id_and_not_changed() -> None:
    recording = stack("brought")
    ours = {resource.type for resource in recording if resource.type.startswith(("aws:ec2/", "aws:vpc/"))}
    assert ours == {
        "aws:ec2/launchTemplate:LaunchTemplate",
        "aws:ec2/placementGroup:PlacementGroup",
        "aws:ec2/securityGroup:SecurityGroup",
        "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
        "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule",
    }
    assert text(recording.one(":SecurityGroup"), "vpcId") == VPC
    assert value(recording.one(":Cluster"), "vpcConfig", "subnetIds") == [*SUBNETS]
    assert value(recording.one(":NodeGroup"), "subnetIds") == [*SUBNETS]
    for node_class in recording.of(":EC2NodeClass"):
        assert objects(node_class, "spec", "subnetSelectorTerms") == [{"id": found} for found in SUBNETS]


@pytest.mark.parametrize("name", ["aws-dev", "aws-prod", "isolated"])
def test_pools_use_the_clusters_subnets(name: str) -> None:
    recording = stack(name)
    subnets = value(recording.one(":Cluster"), "vpcConfig", "subnetIds")
    for node_class in recording.of(":EC2NodeClass"):
        assert [term["id"] for term in objects(node_class, "spec", "subnetSelectorTerms")] == subnets


@pytest.mark.parametrize(("name", "gateways"), [("aws-dev", 1), ("aws-prod", 3)])
def test_an_environment_has_its_number_of_nat_gateways(name: str, gateways: int) -> None:
    assert len(stack(name).of(":NatGateway")) == gateways
    (s3,) = [
        found for found in stack(name).of(":VpcEndpoint") if value(found, "vpcEndpointType") == "Gateway"
    ]
    assert text(s3, "serviceName").endswith(".s3")


def test_efa_machines_share_a_security_group() -> None:
    recording = stack("brought")
    group = f"{recording.one(':SecurityGroup').name}-id"
    for node_class in recording.of(":EC2NodeClass"):
        is_fabric = node_class.name == "main-pool-a100-spot-node-class"
        terms = [term["id"] for term in objects(node_class, "spec", "securityGroupSelectorTerms")]
        assert terms == [GROUP, *([group] if is_fabric else [])], "the fabric's group where requested"
        assert value(node_class, "spec", "placementGroupSelector", "id") == (
            PLACEMENT if is_fabric else None
        ), "machines stand close together where that is asked for"
    assert recording.one(":Release", "main-device-plugins-efa"), "without their plugin no pod gets an adapter"


def test_without_efa_no_resource_is_registered_for_it() -> None:
    recording = stack("aws-dev")
    assert not recording.of(":EfaFabric"), "no pool needs the security group"
    assert "main-device-plugins-efa" not in {release.name for release in recording.of(":Release")}, (
        "nor a plugin"
    )
