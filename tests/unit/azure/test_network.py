"""Networks on Azure."""

from pulumi import CustomResource

from pulumi_holdfast.azure.network import AzureNetwork, AzureNetworkArgs, NodeSubnet
from tests.support.fakes.cloud_outputs import AZURE_ADDRESS
from tests.support.fakes.pulumi_engine import Recording, record
from tests.support.inputs import mapping, objects, text, value


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
        assert network.outbound == "userAssignedNATGateway"
        egress = list(network.egress_cidrs)
        CustomResource("test:index:Nodes", "nodes", {"subnet": network.subnet_id, "egress": egress})

    return record(build, preview=preview)


def test_the_subnet_has_its_nat_gateway_and_storage_endpoint_from_the_start() -> None:
    recording = recorded()
    subnet = recording.one(":Subnet")
    assert mapping(subnet, "natGateway") == {"id": "network-nat-gateway-id"}
    assert list(objects(subnet, "serviceEndpoints")) == [{"service": "Microsoft.Storage"}]
    assert "subnets" not in recording.one(":VirtualNetwork").inputs, "listed in both, it would always differ"
    assert text(subnet, "addressPrefix") == "10.40.0.0/16"
    smaller = recorded(nodes_cidr="10.40.0.0/20").one(":Subnet")
    assert text(smaller, "addressPrefix") == "10.40.0.0/20"
    assert text(recording.one(":VirtualNetwork"), "virtualNetworkName") == "holdfast-dev"
    assert text(recording.one(":NatGateway"), "natGatewayName") == "holdfast-dev-nat"
    assert text(subnet, "subnetName") == "nodes"


def test_nodes_have_the_gateways_static_address_and_are_deleted_before_it() -> None:
    recording = recorded()
    before = recording.everything_before(recording.one(":Nodes"))
    assert {"network-nodes", "network-nat-gateway", "network-nat-address"} <= before
    assert value(recording.one(":Nodes"), "egress") == [f"{AZURE_ADDRESS}/32"]
    address = recording.one(":PublicIPAddress")
    assert (text(address, "publicIPAllocationMethod"), text(address, "sku", "name")) == ("Static", "Standard")
    (named,) = objects(recording.one(":NatGateway"), "publicIpAddresses")
    assert named == {"id": "network-nat-address-id"}


def test_on_the_first_preview_the_subnet_is_unknown() -> None:
    recording = recorded(preview=True)
    assert not isinstance(value(recording.one(":Nodes"), "subnet"), str)
