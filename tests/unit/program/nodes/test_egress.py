"""Networks without a way out: nodes of a pool do not join the cluster, or fetch no images."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.program.nodes.egress import closed_on_aks, closed_on_ec2, closed_on_gke
from pulumi_holdfast.program.pools.gke import NODE_POOL
from pulumi_holdfast.program.pools.gke_zones import CLUSTER
from pulumi_holdfast.program.resources import StackResource, Value
from tests.support.builders.stack_resources import aks_pool, resource


def referring(type_token: str, name: str, to: dict[str, StackResource], **props: Value) -> StackResource:
    """A resource whose properties are made from others."""
    return replace(
        resource(type_token, name, props), refers_to={key: (each.urn,) for key, each in to.items()}
    )


SUBNET = resource("aws:ec2/subnet:Subnet", "a", {"availabilityZone": "us-west-2a"})


def routed(*routes: Value) -> list[StackResource]:
    """The subnet's own route table, with these routes."""
    table = resource("aws:ec2/routeTable:RouteTable", "own", {"routes": list(routes)})
    to = {"routeTableId": table, "subnetId": SUBNET}
    return [table, referring("aws:ec2/routeTableAssociation:RouteTableAssociation", "a", to)]


WITHIN: Value = {"cidrBlock": "10.0.0.0/8", "transitGatewayId": "tgw-1"}
OUT: Value = {"cidrBlock": "0.0.0.0/0", "natGatewayId": UNKNOWN}
ROUTE = referring("aws:ec2/route:Route", "out", {"routeTableId": routed()[0]}, destinationCidrBlock="0.0.0.0/0")  # fmt: skip
ENDPOINT = resource("aws:ec2/vpcEndpoint:VpcEndpoint", "e", {"serviceName": "com.amazonaws.us-west-2.ecr.dkr"})  # fmt: skip
ACCESS_LIST = referring("aws:ec2/networkAcl:NetworkAcl", "list", {"subnetIds": SUBNET})


@pytest.mark.parametrize(
    ("beside", "what"),
    [
        ([], ""),
        (routed(OUT), ""),
        (routed(WITHIN), "no route out"),
        ([*routed(WITHIN), ROUTE], ""),
        ([*routed(WITHIN), ENDPOINT], ""),
        ([ACCESS_LIST], "what 'list' lets machines"),
    ],
    ids=[
        "a table of another program",
        "a route",
        "no route",
        "a route beside",
        "an endpoint",
        "an access list",
    ],
)
def test_subnet_of_ec2_without_a_way_out_is_named(beside: Sequence[StackResource], what: str) -> None:
    found = [*closed_on_ec2([SUBNET], [SUBNET, *beside])]
    assert [what in each for each in found] == [True] * bool(what), str(found)


def firewall(**props: Value) -> StackResource:
    return resource("gcp:compute/firewall:Firewall", "deny", {"denies": [{"protocol": "all"}], **props})


@pytest.mark.parametrize(
    ("rule", "is_named"),
    [
        (firewall(direction="EGRESS"), True),
        (firewall(direction="EGRESS", targetTags=["gpu"]), True),
        (firewall(direction="EGRESS", targetTags=["web"]), False),
        (firewall(direction="EGRESS", disabled=True), False),
        (firewall(direction="INGRESS", priority=900.0), True),
        (firewall(direction="INGRESS", priority=65534.0), False),
        (firewall(direction="EGRESS", denies=[], allows=[{"protocol": "all"}]), False),
    ],
)
def test_firewall_that_denies_connections_of_nodes_on_gke_is_named(
    rule: StackResource, is_named: bool
) -> None:
    config: Value = {"tags": ["gpu"]}
    pool = resource(NODE_POOL, "p", {"cluster": "c", "nodeConfig": config})
    found = [*closed_on_gke(pool, [resource(CLUSTER, "c", {"name": "c"}), rule, pool])]
    assert bool(found) is is_named, str(found)


ON_AZURE = resource("azure-native:network:Subnet", "nodes", {})


def group(*rules: Value) -> list[StackResource]:
    """A security group of the subnet with these rules."""
    made = resource("azure-native:network:NetworkSecurityGroup", "group", {"securityRules": list(rules)})
    return [made, replace(ON_AZURE, refers_to={"networkSecurityGroup": (made.urn,)})]


def rule(direction: str, source: str = "*", access: str = "Deny") -> Value:
    return {"access": access, "direction": direction, "sourceAddressPrefix": source}


@pytest.mark.parametrize(
    ("made", "kind", "what"),
    [
        ([ON_AZURE], "loadBalancer", ""),
        ([ON_AZURE], "none", "outboundType: none"),
        ([ON_AZURE], "userAssignedNATGateway", "no `natGateway`"),
        ([ON_AZURE], "userDefinedRouting", "no `routeTable`"),
        ([replace(ON_AZURE, props={"natGateway": {"id": UNKNOWN}})], "userAssignedNATGateway", ""),
        ([ON_AZURE, referring("azure:network/subnetNatGatewayAssociation:SubnetNatGatewayAssociation", "j", {"subnetId": ON_AZURE})], "userAssignedNATGateway", ""),
        ([ON_AZURE, referring("azure:network/subnetRouteTableAssociation:SubnetRouteTableAssociation", "j", {"subnetId": ON_AZURE})], "userAssignedNATGateway", "no `natGateway`"),
        (group(rule("Outbound")), "loadBalancer", "'group', which denies"),
        (group(rule("Inbound")), "loadBalancer", "'group', which denies"),
        (group(rule("Inbound", "Internet")), "loadBalancer", ""),
        (group(rule("Outbound", access="Allow")), "loadBalancer", ""),
    ],
)  # fmt: skip
def test_subnet_of_aks_without_a_way_out_is_named(
    made: Sequence[StackResource], kind: str, what: str
) -> None:
    pool = replace(aks_pool("p"), refers_to={"vnetSubnetID": (ON_AZURE.urn,)})
    found = [*closed_on_aks(pool, {"outboundType": kind}, [*made, pool])]
    assert [what in each for each in found] == [True] * bool(what), str(found)
