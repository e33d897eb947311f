"""A network made for a stack on Azure, and one that is brought."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pulumi import CustomResource

from holdfast.components.network.azure import AzureNetwork, AzureNetworkArgs, ExistingAzureNetwork
from tests.support.azure_outputs import ADDRESS
from tests.support.fakes.pulumi_engine import Recording, record
from tests.support.inputs import mapping, objects, text, value

if TYPE_CHECKING:
    from holdfast.components.network.azure import NodeSubnet

SUBNET = "/subscriptions/s/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/ml/subnets/nodes"


class Nodes(CustomResource):
    """Anything that stands in the subnet."""

    def __init__(self, subnet: object, egress: object) -> None:
        super().__init__("test:index:Nodes", "nodes", {"subnet": subnet, "egress": egress})


def recorded(*, nodes_cidr: str | None = None, preview: bool = False) -> Recording:
    def build() -> None:
        network: NodeSubnet = AzureNetwork(
            "network",
            AzureNetworkArgs(
                location="westeurope",
                resource_group="holdfast-dev",
                cidr="10.40.0.0/16",
                nodes_cidr=nodes_cidr,
                label="holdfast-dev",
            ),
        )
        assert network.outbound == "userAssignedNATGateway", "AKS is told so, and looks for it"
        Nodes(network.subnet_id, list(network.egress_cidrs))

    return record(build, preview=preview)


def test_the_nat_gateway_is_on_the_subnet_from_the_beginning() -> None:
    subnet = recorded().one(":Subnet")
    assert mapping(subnet, "natGateway") == {"id": "network-nat-gateway-id"}, (
        "how nodes call out is fixed when the cluster is made, and AKS looks whether it is there"
    )


def test_whatever_stands_in_the_subnet_is_gone_before_its_way_out() -> None:
    recording = recorded()
    before = recording.everything_before(recording.one(":Nodes"))
    assert {"network-nodes", "network-nat-gateway", "network-nat-address"} <= before, (
        "nodes that drain still call out"
    )


def test_nodes_are_seen_to_call_from_the_one_address_of_the_gateway() -> None:
    recording = recorded()
    assert value(recording.one(":Nodes"), "egress") == [f"{ADDRESS}/32"], "the API server lets it in"
    address = recording.one(":PublicIPAddress")
    assert (text(address, "publicIPAllocationMethod"), text(address, "sku", "name")) == (
        "Static",
        "Standard",
    ), "an address that changes is let in nowhere"
    (named,) = objects(recording.one(":NatGateway"), "publicIpAddresses")
    assert named == {"id": "network-nat-address-id"}, "the gateway has that address"


def test_the_subnet_is_a_resource_of_its_own() -> None:
    recording = recorded()
    assert "subnets" not in recording.one(":VirtualNetwork").inputs, (
        "listed in the network as well, each would be a difference of the other"
    )
    assert text(recording.one(":Subnet"), "addressPrefix") == "10.40.0.0/16", "all of the network"
    smaller = recorded(nodes_cidr="10.40.0.0/20").one(":Subnet")
    assert text(smaller, "addressPrefix") == "10.40.0.0/20", "or what of it is asked for"


def test_checkpoints_do_not_go_by_the_gateway() -> None:
    assert list(objects(recorded().one(":Subnet"), "serviceEndpoints")) == [
        {"service": "Microsoft.Storage"}
    ], "it is paid for by the gigabyte"


def test_names_in_the_group_begin_with_the_label() -> None:
    recording = recorded()
    assert text(recording.one(":VirtualNetwork"), "virtualNetworkName") == "holdfast-dev", "the network's own"
    assert text(recording.one(":NatGateway"), "natGatewayName") == "holdfast-dev-nat", "the gateway's"
    assert text(recording.one(":Subnet"), "subnetName") == "nodes", "within the network it needs no more"


def test_on_a_first_preview_the_subnet_is_unknown_and_nothing_fails() -> None:
    recording = recorded(preview=True)
    assert not isinstance(value(recording.one(":Nodes"), "subnet"), str), "it is not there yet"


@pytest.mark.parametrize("outbound", ["userAssignedNATGateway", "userDefinedRouting"])
def test_a_network_that_is_brought_is_named_and_left_alone(outbound: str) -> None:
    def build() -> None:
        network: NodeSubnet = ExistingAzureNetwork(
            subnet_id=SUBNET,
            outbound="userDefinedRouting" if outbound == "userDefinedRouting" else "userAssignedNATGateway",
            egress_cidrs=("198.51.100.7/32",),
        )
        assert network.outbound == outbound, "its owner knows how its nodes call out"
        Nodes(network.subnet_id, list(network.egress_cidrs))

    recording = record(build)
    assert [one.type for one in recording] == ["test:index:Nodes"], (
        "nothing is made in a network of the user's"
    )
    assert value(recording.one(":Nodes"), "subnet") == SUBNET, "the subnet by its id"
