"""AWS refuses endpoints that cannot be, and security groups that go too soon."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.support.provider_calls import Engine, Provider, refusal

if TYPE_CHECKING:
    from holdfast.simulator.pulumi.values import Properties

VPC: Final = "aws:ec2/vpc:Vpc"
SUBNET: Final = "aws:ec2/subnet:Subnet"
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
    return {
        "vpcId": vpc,
        "serviceName": service,
        "vpcEndpointType": "Interface",
        "privateDnsEnabled": True,
    }


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
    assert not engine.diff(gateway(vpc, "rtb-1"), gateway(vpc, "rtb-1", "rtb-2")).replaces, (
        "checkpoints keep their way while a zone is added"
    )
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
        "the other group's rule would let nobody in"
    )
    Engine(provider=aws, type=INGRESS).delete(foreign)
    Engine(provider=aws, type=GROUP).delete(fabric)
    assert Engine(provider=aws, type=GROUP).read(fabric)[0] == "", f"its own rule {own} goes with it"
