"""Networks on AWS: with NAT, isolated and existing."""

from typing import Final, Literal

import pytest
from pulumi import CustomResource

from pulumi_holdfast.aws.network import (
    AwsIsolatedNetwork,
    AwsIsolatedNetworkArgs,
    AwsNetwork,
    AwsNetworkArgs,
    ExistingNetwork,
    Network,
    interface_service,
    s3_service,
)
from tests.support.fakes.pulumi_engine import Recorded, Recording, record
from tests.support.inputs import mapping, objects, text, value

ZONES: Final = ("us-east-1a", "us-east-1b", "us-east-1c")


def recorded(
    *, zones: tuple[str, ...] = ZONES, nat: Literal["single", "per-zone"] = "single", preview: bool = False
) -> Recording:
    def build() -> None:
        network: Network = AwsNetwork(
            "network",
            AwsNetworkArgs(
                cidr="10.40.0.0/16", zones=zones, region="us-east-1", nat=nat, label="holdfast-dev"
            ),
        )
        CustomResource("test:index:NodeGroup", "nodes", {"subnets": list(network.private_subnet_ids)})

    return record(build, preview=preview)


def private_subnets(recording: Recording) -> list[Recorded]:
    found = [subnet for subnet in recording.of(":Subnet") if subnet.parent == "network-private"]
    return sorted(found, key=lambda subnet: subnet.name)


@pytest.mark.parametrize("zones", [ZONES[:2], ZONES])
def test_each_zone_has_a_private_subnet(zones: tuple[str, ...]) -> None:
    subnets = private_subnets(recorded(zones=zones))
    assert [text(subnet, "availabilityZone") for subnet in subnets] == list(zones)
    assert len({text(subnet, "cidrBlock") for subnet in subnets}) == len(zones)


def test_the_vpc_has_dns_private_addresses_and_a_closed_default_security_group() -> None:
    made = recorded(nat="per-zone")
    for subnet in made.of(":Subnet"):
        assert not value(subnet, "mapPublicIpOnLaunch"), f"{subnet.name} would assign one"
    vpc = made.one(":Vpc")
    assert value(vpc, "enableDnsSupport") is True
    assert value(vpc, "enableDnsHostnames") is True
    default = made.one(":DefaultSecurityGroup")
    assert not value(default, "ingress"), "AWS's default allows traffic between its members"
    assert not value(default, "egress")
    for resource in made:
        tags = set(mapping(resource, "tags")) if value(resource, "tags") else set[str]()
        assert tags <= {"Name"}, f"{resource.name}: subnets are selected by ID, not by tag"
    names = [text(resource, "tags", "Name") for resource in made if value(resource, "tags")]
    assert len(names) >= 10
    assert all(name.startswith("holdfast-dev") for name in names)


@pytest.mark.parametrize(
    ("nat", "gateways"),
    [("single", ["us-east-1a"] * 3), ("per-zone", ["us-east-1a", "us-east-1b", "us-east-1c"])],
)
def test_there_is_one_nat_gateway_for_all_zones_or_one_per_zone(
    nat: Literal["single", "per-zone"], gateways: list[str]
) -> None:
    made = recorded(nat=nat)
    for kind in (":NatGateway", ":Eip"):
        assert len(made.of(kind)) == len(set(gateways)), f"each {kind} is billed by the hour"
    assert len([subnet for subnet in made.of(":Subnet") if subnet.parent == "network-nat"]) == len(
        set(gateways)
    )
    routes = [made.one(":Route", f"network-nat-route-{zone}") for zone in ZONES]
    assert [text(route, "natGatewayId") for route in routes] == [
        f"network-nat-gateway-{zone}-id" for zone in gateways
    ]
    assert {text(route, "destinationCidrBlock") for route in routes} == {"0.0.0.0/0"}


def test_changing_the_number_of_gateways_changes_routes_only() -> None:
    single, per_zone = recorded(nat="single"), recorded(nat="per-zone")
    assert [(subnet.urn, subnet.inputs) for subnet in private_subnets(single)] == [
        (subnet.urn, subnet.inputs) for subnet in private_subnets(per_zone)
    ]
    tables = {route.name: text(route, "routeTableId") for route in single.of(":Route")}
    assert (
        tables.items() <= {route.name: text(route, "routeTableId") for route in per_zone.of(":Route")}.items()
    )


def test_an_appended_zone_leaves_the_others_unchanged() -> None:
    two, three = recorded(zones=ZONES[:2]), recorded()
    before = {(subnet.urn, text(subnet, "cidrBlock")) for subnet in two.of(":Subnet")}
    assert before < {(subnet.urn, text(subnet, "cidrBlock")) for subnet in three.of(":Subnet")}


def test_every_zone_reaches_s3_without_nat() -> None:
    made = recorded()
    s3 = made.one(":VpcEndpoint")
    assert text(s3, "vpcEndpointType") == "Gateway"
    assert text(s3, "serviceName") == "com.amazonaws.us-east-1.s3"
    tables = {
        text(made.one(":RouteTableAssociation", f"network-private-association-{zone}"), "routeTableId")
        for zone in ZONES
    }
    assert set(map(str, objects(s3, "routeTableIds"))) == tables, "otherwise NAT bills each gigabyte"


@pytest.mark.parametrize("preview", [False, True])
def test_routes_are_deleted_after_the_subnets_contents_and_gateways_before_their_route(preview: bool) -> None:
    made = recorded(nat="per-zone", preview=preview)
    kinds = [":Route", ":RouteTableAssociation", ":NatGateway", ":Eip", ":InternetGateway", ":VpcEndpoint"]
    routing = {resource.name for kind in [*kinds, ":Subnet"] for resource in made.of(kind)}
    assert len(routing) == 24
    before = made.everything_before(made.one(":NodeGroup"))
    assert routing <= before
    for gateway in made.of(":NatGateway"):
        zone = gateway.name.removeprefix("network-nat-gateway-")
        needed = {"network-nat-internet", "network-nat-public-route", f"network-nat-association-{zone}"}
        assert needed <= made.everything_before(gateway), "its packets would be dropped"


SERVICES: Final = {"ec2", "eks", "eks-auth", "sts", "ssm", "sqs", "ecr.api", "ecr.dkr"}


def interfaces(recording: Recording) -> list[Recorded]:
    return [one for one in recording.of(":VpcEndpoint") if value(one, "vpcEndpointType") == "Interface"]


def test_an_isolated_network_has_an_endpoint_for_every_service_and_s3() -> None:
    def build() -> None:
        args = AwsIsolatedNetworkArgs(cidr="10.40.0.0/16", zones=ZONES[:2], region="us-east-1")
        network: Network = AwsIsolatedNetwork("network", args)
        CustomResource("test:index:NodeGroup", "nodes", {"subnets": list(network.private_subnet_ids)})

    made = record(build)
    for kind in (":InternetGateway", ":NatGateway", ":Eip", ":Route"):
        assert made.of(kind) == [], f"{kind}: it is isolated"
    names = {text(one, "serviceName") for one in interfaces(made)}
    assert names == {f"com.amazonaws.us-east-1.{service}" for service in SERVICES}
    gateways = [one for one in made.of(":VpcEndpoint") if value(one, "vpcEndpointType") == "Gateway"]
    assert [text(one, "serviceName") for one in gateways] == ["com.amazonaws.us-east-1.s3"]
    for one in interfaces(made):
        assert value(one, "privateDnsEnabled") is True, f"{one.name}: SDKs use the public name"
        assert value(one, "subnetIds") == [f"network-private-subnet-{zone}-id" for zone in ZONES[:2]], (
            f"{one.name}: the loss of a zone must not affect the others"
        )
    group = f"{made.one(':SecurityGroup').name}-id"
    rule = made.one(":SecurityGroupIngressRule").inputs
    names = ("securityGroupId", "cidrIpv4", "ipProtocol", "fromPort", "toPort")
    assert [rule[name] for name in names] == [group, "10.40.0.0/16", "tcp", 443, 443]
    assert all(value(one, "securityGroupIds") == [group] for one in interfaces(made))
    assert made.of(":SecurityGroupEgressRule") == []
    ways = {one.name for kind in (":VpcEndpoint", ":SecurityGroupIngressRule") for one in made.of(kind)}
    assert ways <= made.everything_before(made.one(":NodeGroup"))


def test_service_names_in_china_have_a_prefix_except_for_some_and_s3() -> None:
    for service in SERVICES:
        prefix = "" if service in {"ssm", "eks-auth"} else "cn."
        name = f"{prefix}com.amazonaws.cn-north-1.{service}"
        assert interface_service("cn-north-1", service) == name
    for region in ("us-gov-west-1", "cn-north-1"):
        assert s3_service(region) == f"com.amazonaws.{region}.s3"


def test_an_existing_network_is_left_unchanged() -> None:
    networks: list[Network] = []

    def build() -> None:
        networks.append(ExistingNetwork(vpc_id="vpc-1", private_subnet_ids=("subnet-1", "subnet-2")))

    assert list(record(build)) == []
    assert (networks[0].vpc_id, networks[0].private_subnet_ids) == ("vpc-1", ("subnet-1", "subnet-2"))
