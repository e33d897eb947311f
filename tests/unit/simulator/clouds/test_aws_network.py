"""AWS refuses, in its own words, a network that cannot be, and one that is taken down in the wrong order."""

import json
from pathlib import Path
from typing import Final

import pytest

from holdfast.scheduling.json import Json
from holdfast.simulator.clouds.state import CloudObject, CloudState
from holdfast.simulator.pulumi.values import Properties
from tests.support.clusters.provider_calls import Engine, Provider, refusal

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


def test_a_vpc_has_a_default_group_and_a_main_table_that_go_with_it(network: Network) -> None:
    _, outputs, _ = network.engine(VPC).read(network.vpc)
    assert str(outputs["defaultSecurityGroupId"]).startswith("sg-"), "every VPC has one"
    assert outputs["mainRouteTableId"] == outputs["defaultRouteTableId"], "the VPC comes with its main table"
    assert outputs["enableDnsSupport"] is True, "AWS's own default"
    adopted = network.make("aws:ec2/defaultSecurityGroup:DefaultSecurityGroup", {"vpcId": network.vpc})
    assert adopted == outputs["defaultSecurityGroupId"], "it was there since the VPC is"
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


def test_a_vpc_has_one_internet_gateway_and_nat_needs_it(network: Network) -> None:
    address = network.make(ADDRESS, {"domain": "vpc"})
    reason = network.refused(NAT, {"allocationId": address, "subnetId": network.subnet})
    assert reason == f"Gateway.NotAttached: Network {network.vpc} has no Internet gateway attached", reason
    network.make(INTERNET, {"vpcId": network.vpc})
    reason = network.refused(INTERNET, {"vpcId": network.vpc})
    assert reason == (
        f"InvalidParameterValue: Network {network.vpc} already has an internet gateway attached"
    ), reason


def test_a_nat_gateway_shows_its_address(network: Network) -> None:
    _, address, gateway = network.with_nat()
    shown = network.engine(NAT).read(gateway)[1]["publicIp"]
    assert shown == network.engine(ADDRESS).read(address)[1]["publicIp"], "that is what others must let in"


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


def test_a_route_table_has_one_route_to_a_destination_and_a_subnet_one_table(network: Network) -> None:
    internet, _, gateway = network.with_nat()
    table = network.make(TABLE, {"vpcId": network.vpc})
    anywhere: Properties = {"routeTableId": table, "destinationCidrBlock": "0.0.0.0/0"}
    network.make(ROUTE, {**anywhere, "natGatewayId": gateway})
    reason = network.refused(ROUTE, {**anywhere, "gatewayId": internet})
    assert reason == "RouteAlreadyExists: The route identified by 0.0.0.0/0 already exists.", reason
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


def test_a_network_that_is_not_in_the_state_counts_as_existing(aws: Provider) -> None:
    engine = Engine(provider=aws, type="aws:ec2/securityGroup:SecurityGroup")
    made, _ = engine.create({"vpcId": "vpc-0123456789abcdef0", "description": "EFA"})
    assert made.startswith("sg-"), "a rehearsal cannot know what else the account holds"


ENDPOINT: Final = "aws:ec2/vpcEndpoint:VpcEndpoint"
GROUP: Final = "aws:ec2/securityGroup:SecurityGroup"
INGRESS: Final = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
S3: Final = "com.amazonaws.us-east-1.s3"
SQS: Final = "com.amazonaws.us-east-1.sqs"


def make(aws: Provider, token: str, inputs: Properties, *, name: str = "one") -> str:
    return Engine(provider=aws, type=token, name=name).create(inputs)[0]


def refused(aws: Provider, token: str, inputs: Properties) -> str:
    return refusal(lambda: make(aws, token, inputs, name="two"))


def kept(aws: Provider, token: str, object_id: str) -> str:
    return refusal(lambda: Engine(provider=aws, type=token).delete(object_id))


@pytest.fixture
def vpc(aws: Provider) -> str:
    return make(aws, VPC, {"cidrBlock": "10.0.0.0/16", "enableDnsHostnames": True})


def gateway(vpc: str, *tables: str) -> Properties:
    return {"vpcId": vpc, "serviceName": S3, "vpcEndpointType": "Gateway", "routeTableIds": list(tables)}


def interface(vpc: str, *, service: str = SQS) -> dict[str, str | bool]:
    return {"vpcId": vpc, "serviceName": service, "vpcEndpointType": "Interface", "privateDnsEnabled": True}


def test_a_gateway_endpoint_shows_the_list_of_addresses_it_routes(aws: Provider, vpc: str) -> None:
    _, outputs = Engine(provider=aws, type=ENDPOINT).create(gateway(vpc, "rtb-1"))
    assert str(outputs["prefixListId"]).startswith("pl-"), "routes name it"
    assert outputs["state"] == "available", "it serves at once"


def test_a_route_table_has_one_gateway_endpoint_to_a_service(aws: Provider, vpc: str) -> None:
    make(aws, ENDPOINT, gateway(vpc, "rtb-1", "rtb-2"))
    reason = refused(aws, ENDPOINT, gateway(vpc, "rtb-3", "rtb-2"))
    assert reason.startswith("RouteAlreadyExists: route table rtb-2 already has a route with"), reason


def test_route_tables_are_added_to_an_endpoint_in_place(aws: Provider, vpc: str) -> None:
    engine = Engine(provider=aws, type=ENDPOINT)
    made = make(aws, ENDPOINT, gateway(vpc, "rtb-1"))
    assert not engine.diff(gateway(vpc, "rtb-1"), gateway(vpc, "rtb-1", "rtb-2")).replaces, "in place"
    assert engine.update(made, gateway(vpc, "rtb-1", "rtb-2"))["routeTableIds"] == ["rtb-1", "rtb-2"], (
        "its own routes do not stand in its way"
    )


def test_a_service_of_another_region_is_not_found(aws: Provider, vpc: str) -> None:
    reason = refused(aws, ENDPOINT, interface(vpc, service="com.amazonaws.eu-west-1.sqs"))
    assert reason == (
        "InvalidServiceName: The Vpc Endpoint Service 'com.amazonaws.eu-west-1.sqs' does not exist"
    ), reason


def test_private_names_need_the_vpcs_dns(aws: Provider) -> None:
    vpc = make(aws, VPC, {"cidrBlock": "10.0.0.0/16"})
    reason = refused(aws, ENDPOINT, interface(vpc))
    assert reason.startswith("InvalidParameter: Enabling private DNS requires both enableDnsSupport and"), (
        reason
    )


def test_a_services_own_name_means_one_endpoint_in_a_vpc(aws: Provider, vpc: str) -> None:
    make(aws, ENDPOINT, interface(vpc))
    reason = refused(aws, ENDPOINT, interface(vpc))
    assert reason == (
        "InvalidParameter: private-dns-enabled cannot be set because there is already a conflicting DNS domain "
        f"for sqs.us-east-1.amazonaws.com in the VPC {vpc}"
    ), reason


def test_an_endpoint_has_one_address_in_a_zone(aws: Provider, vpc: str) -> None:
    subnets = [
        make(
            aws,
            SUBNET,
            {"vpcId": vpc, "cidrBlock": f"10.0.{at}.0/24", "availabilityZone": "us-east-1a"},
            name=str(at),
        )
        for at in range(2)
    ]
    reason = refused(aws, ENDPOINT, {**interface(vpc), "subnetIds": subnets})
    assert reason == (
        "DuplicateSubnetsInSameZone: Found another VPC endpoint subnet in the availability zone of "
        f"{subnets[1]}"
    ), reason


def test_a_subnet_and_a_group_outlive_the_endpoint_that_uses_them(aws: Provider, vpc: str) -> None:
    subnet = make(aws, SUBNET, {"vpcId": vpc, "cidrBlock": "10.0.0.0/24"})
    group = make(aws, GROUP, {"vpcId": vpc})
    endpoint = make(aws, ENDPOINT, {**interface(vpc), "subnetIds": [subnet], "securityGroupIds": [group]})
    assert kept(aws, SUBNET, subnet) == (
        f"DependencyViolation: The subnet '{subnet}' has dependencies and cannot be deleted."
    ), "an address of the endpoint is in it"
    assert kept(aws, GROUP, group) == f"DependencyViolation: resource {group} has a dependent object", (
        "the endpoint is behind it"
    )
    Engine(provider=aws, type=ENDPOINT).delete(endpoint)
    for token, used in ((SUBNET, subnet), (GROUP, group)):
        Engine(provider=aws, type=token).delete(used)
        assert Engine(provider=aws, type=token).read(used)[0] == "", "nothing uses it any more"


def test_two_groups_of_one_name_are_refused(aws: Provider, vpc: str) -> None:
    make(aws, GROUP, {"vpcId": vpc, "name": "efa"})
    reason = refused(aws, GROUP, {"vpcId": vpc, "name": "efa"})
    assert reason == "InvalidGroup.Duplicate: The security group 'efa' already exists", reason


def test_a_rule_is_there_once(aws: Provider) -> None:
    rule: Properties = {
        "securityGroupId": "sg-1",
        "cidrIpv4": "10.0.0.0/16",
        "ipProtocol": "tcp",
        "fromPort": 443,
        "toPort": 443,
    }
    make(aws, INGRESS, rule)
    assert refused(aws, INGRESS, {**rule, "description": "again"}) == (
        'InvalidPermission.Duplicate: the specified rule "peer: 10.0.0.0/16, TCP, from port: 443, to port: 443, '
        'ALLOW" already exists'
    ), "another description makes no other rule"
    assert make(aws, INGRESS, {**rule, "securityGroupId": "sg-2"}, name="two").startswith("sgr-"), (
        "each group has rules of its own"
    )


def test_a_group_that_refers_to_itself_goes_and_one_that_another_refers_to_stays(
    aws: Provider, vpc: str
) -> None:
    fabric, other = (make(aws, GROUP, {"vpcId": vpc}, name=name) for name in ("fabric", "other"))
    own, foreign = (
        make(
            aws,
            INGRESS,
            {"securityGroupId": owner, "referencedSecurityGroupId": fabric, "ipProtocol": "-1"},
            name=owner,
        )
        for owner in (fabric, other)
    )
    assert kept(aws, GROUP, fabric) == f"DependencyViolation: resource {fabric} has a dependent object", (
        "the other group's rule references it"
    )
    Engine(provider=aws, type=INGRESS).delete(foreign)
    Engine(provider=aws, type=GROUP).delete(fabric)
    assert Engine(provider=aws, type=GROUP).read(fabric)[0] == "", f"its own rule {own} goes with it"
