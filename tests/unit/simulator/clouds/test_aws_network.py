"""AWS refuses, in its own words, a network that cannot be, and one that is taken down in the wrong order."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pytest

from holdfast.simulator.clouds.state import CloudObject, CloudState
from tests.support.provider_calls import Engine, Provider, refusal

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.scheduling.json import Json
    from holdfast.simulator.pulumi.values import Properties

VPC: Final = "aws:ec2/vpc:Vpc"
SUBNET: Final = "aws:ec2/subnet:Subnet"
INTERNET: Final = "aws:ec2/internetGateway:InternetGateway"
ADDRESS: Final = "aws:ec2/eip:Eip"
NAT: Final = "aws:ec2/natGateway:NatGateway"
TABLE: Final = "aws:ec2/routeTable:RouteTable"
ROUTE: Final = "aws:ec2/route:Route"
ASSOCIATION: Final = "aws:ec2/routeTableAssociation:RouteTableAssociation"


class Network:
    """A VPC with a subnet, made through the provider as the engine would."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self.vpc = self.make(VPC, {"cidrBlock": "10.0.0.0/16"})
        self.subnet = self.make(SUBNET, self.subnet_inputs("10.0.0.0/24"))

    def engine(self, token: str, name: str = "one") -> Engine:
        """The engine's side of a resource."""
        return Engine(provider=self._provider, type=token, name=name)

    def make(self, token: str, inputs: Properties, *, name: str = "one") -> str:
        """Make an object and return its id."""
        return self.engine(token, name).create(inputs)[0]

    def refused(self, token: str, inputs: Properties, *, name: str = "two") -> str:
        """Return why an object cannot be made."""
        return refusal(lambda: self.make(token, inputs, name=name))

    def kept(self, token: str, object_id: str) -> str:
        """Return why an object cannot go."""
        return refusal(lambda: self.engine(token).delete(object_id))

    def subnet_inputs(self, cidr: str, zone: str = "us-east-1a") -> Properties:
        """The inputs of a subnet of the VPC."""
        return {"vpcId": self.vpc, "cidrBlock": cidr, "availabilityZone": zone}

    def with_nat(self) -> tuple[str, str, str]:
        """Make an internet gateway, an address and a NAT gateway, and return their ids."""
        internet = self.make(INTERNET, {"vpcId": self.vpc})
        address = self.make(ADDRESS, {"domain": "vpc"})
        return internet, address, self.make(NAT, {"allocationId": address, "subnetId": self.subnet})


@pytest.fixture
def network(aws: Provider) -> Network:
    return Network(aws)


def test_a_vpc_is_born_with_a_group_and_tables_of_its_own(network: Network) -> None:
    _, outputs, _ = network.engine(VPC).read(network.vpc)
    assert str(outputs["defaultSecurityGroupId"]).startswith("sg-"), "every VPC has one"
    assert outputs["mainRouteTableId"] == outputs["defaultRouteTableId"], (
        "the main table is the one it came with"
    )
    assert outputs["enableDnsSupport"] is True, "AWS's own default"


def test_adopting_the_default_group_makes_no_other(network: Network) -> None:
    _, outputs, _ = network.engine(VPC).read(network.vpc)
    adopted = network.make("aws:ec2/defaultSecurityGroup:DefaultSecurityGroup", {"vpcId": network.vpc})
    assert adopted == outputs["defaultSecurityGroupId"], "it was there since the VPC is"


def test_an_adopted_default_group_keeps_no_vpc(network: Network) -> None:
    network.make("aws:ec2/defaultSecurityGroup:DefaultSecurityGroup", {"vpcId": network.vpc})
    network.engine(SUBNET).delete(network.subnet)
    network.engine(VPC).delete(network.vpc)
    assert network.engine(VPC).read(network.vpc)[0] == "", "it goes with the VPC"


@pytest.mark.parametrize(
    ("token", "inputs"),
    [
        (INTERNET, {}),
        (TABLE, {}),
        ("aws:ec2/securityGroup:SecurityGroup", {}),
        ("aws:ec2/vpcEndpoint:VpcEndpoint", {"serviceName": "com.amazonaws.us-east-1.s3"}),
    ],
)
def test_a_vpc_goes_only_when_it_is_empty(network: Network, token: str, inputs: Properties) -> None:
    network.engine(SUBNET).delete(network.subnet)
    inside = network.make(token, {"vpcId": network.vpc, **inputs})
    assert network.kept(VPC, network.vpc) == (
        f"DependencyViolation: The vpc '{network.vpc}' has dependencies and cannot be deleted."
    ), "AWS deletes nothing along with it"
    network.engine(token).delete(inside)
    network.engine(VPC).delete(network.vpc)
    assert network.engine(VPC).read(network.vpc)[0] == "", "an empty one goes"


def test_a_nat_gateway_needs_an_internet_gateway_first(network: Network) -> None:
    address = network.make(ADDRESS, {"domain": "vpc"})
    reason = network.refused(NAT, {"allocationId": address, "subnetId": network.subnet})
    assert reason == f"Gateway.NotAttached: Network {network.vpc} has no Internet gateway attached", reason


def test_a_nat_gateway_shows_its_address(network: Network) -> None:
    _, address, gateway = network.with_nat()
    shown = network.engine(NAT).read(gateway)[1]["publicIp"]
    assert shown == network.engine(ADDRESS).read(address)[1]["publicIp"], "that is what others must let in"


def test_a_vpc_has_one_internet_gateway(network: Network) -> None:
    network.make(INTERNET, {"vpcId": network.vpc})
    reason = network.refused(INTERNET, {"vpcId": network.vpc})
    assert reason == (
        f"InvalidParameterValue: Network {network.vpc} already has an internet gateway attached"
    ), reason


def test_a_nat_gateway_goes_before_what_it_stands_on(network: Network) -> None:
    internet, address, gateway = network.with_nat()
    assert network.kept(INTERNET, internet).startswith(
        f"DependencyViolation: Network {network.vpc} has some mapped public address(es)."
    ), "its address is mapped through the internet gateway"
    assert network.kept(ADDRESS, address) == (
        "AuthFailure: You do not have permission to access the specified resource."
    ), "it holds the address"
    assert network.kept(SUBNET, network.subnet) == (
        f"DependencyViolation: The subnet '{network.subnet}' has dependencies and cannot be deleted."
    ), "its interface is in the subnet"
    network.engine(NAT).delete(gateway)
    for token, made in ((ADDRESS, address), (INTERNET, internet), (SUBNET, network.subnet)):
        network.engine(token).delete(made)
        assert network.engine(token).read(made)[0] == "", f"{made} could not go after the gateway"


@pytest.mark.parametrize(
    ("token", "inputs"),
    [
        ("aws:eks/nodeGroup:NodeGroup", {"subnetIds": ["<subnet>"]}),
        ("aws:eks/cluster:Cluster", {"vpcConfig": {"subnetIds": ["<subnet>"]}}),
    ],
)
def test_a_subnet_outlives_the_cluster_and_the_nodes_in_it(
    network: Network, state_file: Path, token: str, inputs: Json
) -> None:
    there = json.loads(json.dumps(inputs).replace("<subnet>", network.subnet))
    with CloudState(state_file).changing() as console:
        console.put(CloudObject(type=token, id="there", urn="", inputs=there))
    assert network.kept(SUBNET, network.subnet).startswith("DependencyViolation"), "interfaces are in it"


def test_a_route_table_has_one_route_to_a_destination(network: Network) -> None:
    internet, _, gateway = network.with_nat()
    table = network.make(TABLE, {"vpcId": network.vpc})
    anywhere: Properties = {"routeTableId": table, "destinationCidrBlock": "0.0.0.0/0"}
    network.make(ROUTE, {**anywhere, "natGatewayId": gateway})
    reason = network.refused(ROUTE, {**anywhere, "gatewayId": internet})
    assert reason == "RouteAlreadyExists: The route identified by 0.0.0.0/0 already exists.", reason


def test_a_subnet_has_one_route_table(network: Network) -> None:
    tables = [network.make(TABLE, {"vpcId": network.vpc}, name=name) for name in ("one", "two")]
    network.make(ASSOCIATION, {"subnetId": network.subnet, "routeTableId": tables[0]})
    reason = network.refused(ASSOCIATION, {"subnetId": network.subnet, "routeTableId": tables[1]})
    assert reason == (
        f"Resource.AlreadyAssociated: the specified association for route table {tables[1]} "
        "conflicts with an existing association"
    ), reason


@pytest.mark.parametrize(
    ("token", "old", "new", "replaced"),
    [
        (ROUTE, {"routeTableId": "rtb-1", "natGatewayId": "nat-1"}, {"natGatewayId": "nat-2"}, False),
        (ROUTE, {"routeTableId": "rtb-1", "natGatewayId": "nat-1"}, {"routeTableId": "rtb-2"}, True),
        (ASSOCIATION, {"subnetId": "subnet-1", "routeTableId": "rtb-1"}, {"routeTableId": "rtb-2"}, False),
        (INTERNET, {"vpcId": "vpc-1"}, {"vpcId": "vpc-2"}, False),
        (NAT, {"subnetId": "subnet-1"}, {"subnetId": "subnet-2"}, True),
    ],
)
def test_what_routes_changes_in_place_where_aws_lets_it(
    network: Network, token: str, old: Properties, new: Properties, *, replaced: bool
) -> None:
    answer = network.engine(token).diff(old, {**old, **new})
    assert bool(answer.replaces) is replaced, "a replaced route interrupts traffic, a changed one does not"


def test_a_network_of_the_users_own_is_taken_as_there(aws: Provider) -> None:
    engine = Engine(provider=aws, type="aws:ec2/securityGroup:SecurityGroup")
    made, _ = engine.create({"vpcId": "vpc-0123456789abcdef0", "description": "EFA"})
    assert made.startswith("sg-"), "a rehearsal cannot know what else the account holds"
