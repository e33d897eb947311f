"""Simulated Azure networks are created and deleted like real ones."""

import pytest

from tests.support.clusters.azure_console import (
    ADDRESS_TYPE,
    CLUSTER_TYPE,
    NAT_TYPE,
    NETWORK_TYPE,
    PATH,
    SUBNET_TYPE,
    AzureConsole,
)
from tests.support.clusters.provider_calls import Provider, refused


@pytest.fixture
def console(azure: Provider) -> AzureConsole:
    return AzureConsole(azure=azure)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (NETWORK_TYPE, "virtualNetworkName"),
        (ADDRESS_TYPE, "publicIpAddressName"),
        (NAT_TYPE, "natGatewayName"),
    ],
)
def test_a_missing_resource_group_is_refused(console: AzureConsole, kind: str, name: str) -> None:
    missing = 'Code="ResourceGroupNotFound" Message="Resource group \'train\' could not be found."'
    console.engine(kind).refuses_create(console.in_group(**{name: "one"}), missing)


def test_a_subnet_needs_its_network(console: AzureConsole) -> None:
    console.group()
    refused(
        console.subnet, "Microsoft.Network/virtualNetworks/train' under resource group 'train' was not found"
    )
    console.network("10.40.0.0/16")
    assert console.subnet(cidr="10.40.0.0/20")


def test_a_reference_to_a_missing_object_of_the_stack_is_refused(console: AzureConsole) -> None:
    console.group()
    console.network()
    gone = f"{PATH}/Microsoft.Network/natGateways/gone"
    refused(lambda: console.subnet(gone), f"Resource {gone} referenced by resource nodes was not found")
    users_own = gone.replace("/resourceGroups/train/", "/resourceGroups/hub/")
    console.subnet(users_own)


def test_an_object_in_use_is_not_deleted(console: AzureConsole) -> None:
    console.group()
    gateway = console.way_out()
    console.network()
    subnet = console.subnet(gateway)
    address = f"{PATH}/Microsoft.Network/publicIPAddresses/nat"
    console.engine(ADDRESS_TYPE).refuses_delete(address, 'Code="PublicIPAddressCannotBeDeleted"')
    console.engine(NAT_TYPE).refuses_delete(gateway, 'Code="InUseNatGatewayCannotBeDeleted"')
    for kind, made in ((SUBNET_TYPE, subnet), (NAT_TYPE, gateway), (ADDRESS_TYPE, address)):
        console.engine(kind).removes(made)


def test_a_subnet_with_machines_is_not_deleted(console: AzureConsole) -> None:
    profiles = console.cluster()["agentPoolProfiles"]
    assert isinstance(profiles, list)
    subnet = f"{PATH}/Microsoft.Network/virtualNetworks/train/subnets/nodes"
    console.engine(SUBNET_TYPE).refuses_delete(subnet, 'Code="InUseSubnetCannotBeDeleted"')
    console.engine(CLUSTER_TYPE).delete(f"{PATH}/Microsoft.ContainerService/managedClusters/train")
    console.engine(SUBNET_TYPE).delete(subnet)
