"""A network on AWS without a way to the internet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from pulumi import CustomResource

from holdfast.components.network.aws import interface_service, s3_service
from holdfast.components.network.aws_isolated import AwsIsolatedNetwork, AwsIsolatedNetworkArgs
from tests.support.fakes.pulumi_engine import Recorded, Recording, record
from tests.support.inputs import text, value

if TYPE_CHECKING:
    from holdfast.components.network.aws import Network

ZONES: Final = ("us-east-1a", "us-east-1b")
SERVICES: Final = {"ec2", "eks", "eks-auth", "sts", "ssm", "sqs", "ecr.api", "ecr.dkr"}


class NodeGroup(CustomResource):
    """Anything that stands in the subnets."""

    def __init__(self, subnets: object) -> None:
        super().__init__("test:index:NodeGroup", "nodes", {"subnets": subnets})


def recorded(*, region: str = "us-east-1") -> Recording:
    zones = [zone.replace("us-east-1", region) for zone in ZONES]

    def build() -> None:
        network: Network = AwsIsolatedNetwork(
            "network", AwsIsolatedNetworkArgs(cidr="10.40.0.0/16", zones=zones, region=region)
        )
        NodeGroup(list(network.private_subnet_ids))

    return record(build)


def interfaces(recording: Recording) -> list[Recorded]:
    return [one for one in recording.of(":VpcEndpoint") if value(one, "vpcEndpointType") == "Interface"]


@pytest.mark.parametrize("kind", [":InternetGateway", ":NatGateway", ":Eip", ":Route"])
def test_nothing_leads_to_the_internet(kind: str) -> None:
    assert recorded().of(kind) == [], "isolated is isolated"


def test_every_service_that_nodes_and_karpenter_call_has_an_endpoint() -> None:
    names = {text(one, "serviceName") for one in interfaces(recorded())}
    assert names == {f"com.amazonaws.us-east-1.{service}" for service in SERVICES}, (
        "a call without an endpoint waits for its timeout"
    )


def test_s3_has_a_gateway_here_too() -> None:
    gateways = [one for one in recorded().of(":VpcEndpoint") if value(one, "vpcEndpointType") == "Gateway"]
    assert [text(one, "serviceName") for one in gateways] == ["com.amazonaws.us-east-1.s3"], (
        "checkpoints and the layers of images come from S3"
    )


def test_programs_reach_endpoints_by_the_services_own_names_from_every_zone() -> None:
    for one in interfaces(recorded()):
        assert value(one, "privateDnsEnabled") is True, f"{one.name}: SDKs call the public name"
        assert value(one, "subnetIds") == [f"network-private-subnet-{zone}-id" for zone in ZONES], (
            f"{one.name}: when a zone is lost the others go on"
        )


def test_the_whole_vpc_reaches_endpoints_by_https_and_nothing_else() -> None:
    made = recorded()
    group = f"{made.one(':SecurityGroup').name}-id"
    rule = made.one(":SecurityGroupIngressRule").inputs
    names = ("securityGroupId", "cidrIpv4", "ipProtocol", "fromPort", "toPort")
    assert [rule[name] for name in names] == [group, "10.40.0.0/16", "tcp", 443, 443], (
        "EKS: the endpoints' group must let the CIDR of the subnets in"
    )
    assert all(value(one, "securityGroupIds") == [group] for one in interfaces(made)), "behind that group"
    assert made.of(":SecurityGroupEgressRule") == [], "an endpoint answers and never calls"


def test_endpoints_outlive_what_drains_through_them() -> None:
    made = recorded()
    ways = {one.name for kind in (":VpcEndpoint", ":SecurityGroupIngressRule") for one in made.of(kind)}
    assert ways <= made.everything_before(made.one(":NodeGroup")), "a node that drains still calls EC2"


@pytest.mark.parametrize(
    ("service", "name"),
    [
        *(
            (service, f"cn.com.amazonaws.cn-north-1.{service}")
            for service in sorted(SERVICES - {"ssm", "eks-auth"})
        ),
        *((service, f"com.amazonaws.cn-north-1.{service}") for service in ("ssm", "eks-auth")),
    ],
)
def test_services_in_china_have_names_of_their_own(service: str, name: str) -> None:
    assert interface_service("cn-north-1", service) == name, "AWS knows it by no other name"


def test_s3s_gateway_is_named_alike_everywhere() -> None:
    names = {region: s3_service(region) for region in ("us-gov-west-1", "cn-north-1")}
    assert names == {region: f"com.amazonaws.{region}.s3" for region in names}, (
        "only interfaces differ in China"
    )
