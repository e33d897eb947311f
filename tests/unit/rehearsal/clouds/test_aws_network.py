"""AWS refuses, in its own words, a network that cannot be, and one that is taken down in the wrong order."""

import json
from pathlib import Path

import pytest

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, CloudState
from pulumi_holdfast.rehearsal.engine.values import Properties
from tests.support.clusters.provider_calls import Engine, Provider, invoke, refused

VPC = "aws:ec2/vpc:Vpc"
SUBNET = "aws:ec2/subnet:Subnet"
INTERNET = "aws:ec2/internetGateway:InternetGateway"
ADDRESS = "aws:ec2/eip:Eip"
NAT = "aws:ec2/natGateway:NatGateway"
TABLE = "aws:ec2/routeTable:RouteTable"
ROUTE = "aws:ec2/route:Route"
ASSOCIATION = "aws:ec2/routeTableAssociation:RouteTableAssociation"
ENDPOINT = "aws:ec2/vpcEndpoint:VpcEndpoint"
GROUP = "aws:ec2/securityGroup:SecurityGroup"
INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
S3 = "com.amazonaws.us-east-1.s3"


class Network:
    """A VPC with a subnet, made through the provider as the engine would."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self.vpc = self.make(VPC, {"cidrBlock": "10.0.0.0/16", "enableDnsHostnames": True})
        self.inside: Properties = {"vpcId": self.vpc}
        self.subnet = self.make_subnet(0)
        self.subnet_stays = f"The subnet '{self.subnet}' has dependencies and cannot be deleted."

    def engine(self, token: str, name: str = "one") -> Engine:
        return Engine(provider=self._provider, type=token, name=name)

    def make(self, token: str, inputs: Properties, *, name: str = "one") -> str:
        return self.engine(token, name).create(inputs)[0]

    def make_subnet(self, at: int) -> str:
        place = {"cidrBlock": f"10.0.{at}.0/24", "availabilityZone": "us-east-1a"}
        return self.make(SUBNET, {**self.inside, **place}, name=str(at))

    def refuses(self, token: str, inputs: Properties, *parts: str) -> None:
        self.engine(token, "two").refuses_create(inputs, *parts)

    def with_nat(self) -> tuple[str, str, str]:
        """Make an internet gateway, an address and a NAT gateway, and return their ids."""
        internet = self.make(INTERNET, self.inside)
        address = self.make(ADDRESS, {"domain": "vpc"})
        return internet, address, self.make(NAT, {"allocationId": address, "subnetId": self.subnet})

    def gateway(self, *tables: str) -> Properties:
        return {**self.inside, "serviceName": S3, "vpcEndpointType": "Gateway", "routeTableIds": list(tables)}

    def interface(self, **overrides: str | list[str]) -> Properties:
        service = {"serviceName": "com.amazonaws.us-east-1.sqs", "privateDnsEnabled": True}
        return {**self.inside, "vpcEndpointType": "Interface", **service, **overrides}


@pytest.fixture
def network(aws: Provider) -> Network:
    return Network(aws)


def test_a_vpc_has_a_default_group_and_a_main_table_that_go_with_it(network: Network) -> None:
    _, outputs, _ = network.engine(VPC).read(network.vpc)
    assert str(outputs["defaultSecurityGroupId"]).startswith("sg-")
    assert outputs["mainRouteTableId"] == outputs["defaultRouteTableId"]
    assert outputs["enableDnsSupport"] is True
    adopted = network.make("aws:ec2/defaultSecurityGroup:DefaultSecurityGroup", network.inside)
    assert adopted == outputs["defaultSecurityGroupId"]
    network.engine(SUBNET).removes(network.subnet)
    network.engine(VPC).removes(network.vpc)


@pytest.mark.parametrize(
    ("token", "inputs"), [(INTERNET, {}), (TABLE, {}), (GROUP, {}), (ENDPOINT, {"serviceName": S3})]
)
def test_a_vpc_goes_only_when_it_is_empty(network: Network, token: str, inputs: Properties) -> None:
    network.engine(SUBNET).delete(network.subnet)
    inside = network.make(token, {**network.inside, **inputs})
    stays = f"DependencyViolation: The vpc '{network.vpc}' has dependencies and cannot be deleted."
    network.engine(VPC).refuses_delete(network.vpc, stays)
    network.engine(token).delete(inside)
    network.engine(VPC).removes(network.vpc)


def test_a_vpc_has_one_internet_gateway_and_nat_needs_it(network: Network) -> None:
    nat: Properties = {"allocationId": network.make(ADDRESS, {"domain": "vpc"}), "subnetId": network.subnet}
    missing = f"Gateway.NotAttached: Network {network.vpc} has no Internet gateway attached"
    network.refuses(NAT, nat, missing)
    network.make(INTERNET, network.inside)
    taken = f"InvalidParameterValue: Network {network.vpc} already has an internet gateway attached"
    network.refuses(INTERNET, network.inside, taken)


def test_a_nat_gateway_shows_its_address_and_goes_before_its_dependencies(network: Network) -> None:
    internet, address, gateway = network.with_nat()
    shown = network.engine(NAT).read(gateway)[1]["publicIp"]
    assert shown == network.engine(ADDRESS).read(address)[1]["publicIp"], "that is what others must let in"
    mapped = f"DependencyViolation: Network {network.vpc} has some mapped public address(es)."
    network.engine(INTERNET).refuses_delete(internet, mapped)
    held = "AuthFailure: You do not have permission to access the specified resource."
    network.engine(ADDRESS).refuses_delete(address, held)
    network.engine(SUBNET).refuses_delete(network.subnet, network.subnet_stays)
    network.engine(NAT).delete(gateway)
    for token, made in ((ADDRESS, address), (INTERNET, internet), (SUBNET, network.subnet)):
        network.engine(token).removes(made)


@pytest.mark.parametrize(
    ("token", "inputs"),
    [
        ("aws:eks/nodeGroup:NodeGroup", {"subnetIds": ["<subnet>"]}),
        ("aws:eks/cluster:Cluster", {"vpcConfig": {"subnetIds": ["<subnet>"]}}),
    ],
)
def test_a_subnet_with_nodes_is_kept(network: Network, state_file: Path, token: str, inputs: Json) -> None:
    there = json.loads(json.dumps(inputs).replace("<subnet>", network.subnet))
    with CloudState(state_file).changing() as console:
        console.put(CloudObject(type=token, id="there", urn="", inputs=there))
    network.engine(SUBNET).refuses_delete(network.subnet, "DependencyViolation")


def test_a_route_table_has_one_route_to_a_destination_and_a_subnet_one_table(network: Network) -> None:
    internet, _, gateway = network.with_nat()
    one, two = (network.make(TABLE, network.inside, name=name) for name in ("one", "two"))
    anywhere: Properties = {"routeTableId": one, "destinationCidrBlock": "0.0.0.0/0"}
    network.make(ROUTE, {**anywhere, "natGatewayId": gateway})
    taken = "RouteAlreadyExists: The route identified by 0.0.0.0/0 already exists."
    network.refuses(ROUTE, {**anywhere, "gatewayId": internet}, taken)
    network.make(ASSOCIATION, {"subnetId": network.subnet, "routeTableId": one})
    taken = f"the specified association for route table {two} conflicts with an existing association"
    network.refuses(ASSOCIATION, {"subnetId": network.subnet, "routeTableId": two}, taken)


def test_a_network_that_is_not_in_the_state_counts_as_existing(aws: Provider) -> None:
    made, _ = Engine(provider=aws, type=GROUP).create({"vpcId": "vpc-0123456789abcdef0"})
    assert made.startswith("sg-"), "a rehearsal cannot know what else the account holds"


def test_a_gateway_endpoint_has_a_prefix_list_and_gets_route_tables_in_place(network: Network) -> None:
    engine = network.engine(ENDPOINT)
    one, both = network.gateway("rtb-1"), network.gateway("rtb-1", "rtb-2")
    made, outputs = engine.create(one)
    assert str(outputs["prefixListId"]).startswith("pl-")
    assert outputs["state"] == "available"
    assert not engine.diff(one, both).replaces
    assert engine.update(made, both)["routeTableIds"] == ["rtb-1", "rtb-2"]


def test_a_subnet_and_a_group_outlive_the_endpoint_that_uses_them(network: Network) -> None:
    group = network.make(GROUP, network.inside)
    used = network.interface(subnetIds=[network.subnet], securityGroupIds=[group])
    endpoint = network.make(ENDPOINT, used)
    network.engine(SUBNET).refuses_delete(network.subnet, network.subnet_stays)
    network.engine(GROUP).refuses_delete(group, f"resource {group} has a dependent object")
    network.engine(ENDPOINT).delete(endpoint)
    network.engine(SUBNET).removes(network.subnet)
    network.engine(GROUP).removes(group)


def test_a_group_has_its_name_and_each_rule_once(network: Network) -> None:
    named: Properties = {**network.inside, "name": "efa"}
    network.make(GROUP, named)
    network.refuses(GROUP, named, "InvalidGroup.Duplicate: The security group 'efa' already exists")
    rule: Properties = {"cidrIpv4": "10.0.0.0/16", "ipProtocol": "tcp", "fromPort": 443, "toPort": 443}
    network.make(INGRESS, {**rule, "securityGroupId": "sg-1"})
    again = "InvalidPermission.Duplicate: the specified rule of sg-1 already exists"
    network.refuses(INGRESS, {**rule, "securityGroupId": "sg-1", "description": "again"}, again)
    other = network.make(INGRESS, {**rule, "securityGroupId": "sg-2"}, name="two")
    assert other.startswith("sgr-")


def test_a_group_that_refers_to_itself_goes_and_one_that_another_refers_to_stays(network: Network) -> None:
    fabric, other = (network.make(GROUP, network.inside, name=name) for name in ("fabric", "other"))
    peer: Properties = {"referencedSecurityGroupId": fabric, "ipProtocol": "-1"}
    _, foreign = (
        network.make(INGRESS, {**peer, "securityGroupId": owner}, name=owner) for owner in (fabric, other)
    )
    network.engine(GROUP).refuses_delete(fabric, f"resource {fabric} has a dependent object")
    network.engine(INGRESS).delete(foreign)
    network.engine(GROUP).removes(fabric)


def test_lookups_find_the_default_vpc_an_image_and_what_the_program_made(aws: Provider) -> None:
    default = invoke(aws, "aws:ec2/getVpc:getVpc", {"default": True})["id"]
    of_default: Properties = {"filters": [{"name": "vpc-id", "values": [default]}]}
    found = invoke(aws, "aws:ec2/getSubnets:getSubnets", of_default)["ids"]
    assert isinstance(found, list)
    assert len(found) == 3
    assert str(invoke(aws, "aws:ec2/getAmi:getAmi", {"mostRecent": True})["id"]).startswith("ami-")
    made = Network(aws)
    vpc = invoke(aws, "aws:ec2/getVpc:getVpc", {"id": made.vpc})
    assert (vpc["id"], vpc["cidrBlock"]) == (made.vpc, "10.0.0.0/16")
    of_vpc: Properties = {"filters": [{"name": "vpc-id", "values": [made.vpc]}]}
    assert invoke(aws, "aws:ec2/getSubnets:getSubnets", of_vpc)["ids"] == [made.subnet]
    refused(lambda: invoke(aws, "aws:ec2/getVpc:getVpc", {"tags": {"team": "web"}}), "0 VPCs match")
