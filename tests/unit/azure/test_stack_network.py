"""The networks that an Azure stack can stand in, and where its charts and images come from."""

import pytest

from tests.support.builders.azure_stacks import PLATFORMS, stack
from tests.support.builders.configurations import SUBNET
from tests.support.inputs import objects, text, value

BROUGHT = ["brought", "brought-fixed"]
MADE = [name for name in PLATFORMS if name not in BROUGHT]


@pytest.mark.parametrize("name", BROUGHT)
def test_an_existing_subnet_is_used_by_id_and_not_changed(name: str) -> None:
    recording = stack(name)
    assert not [found.name for found in recording if found.type.startswith("azure-native:network:")]
    cluster = recording.one(":ManagedCluster")
    (system,) = objects(cluster, "agentPoolProfiles")
    assert text(system, "vnetSubnetID") == SUBNET
    for pool in recording.of(":AgentPool"):
        assert text(pool, "vnetSubnetID") == SUBNET, f"{pool.name}'s too"
    assert value(cluster, "apiServerAccessProfile", "authorizedIPRanges") == [
        "203.0.113.0/24",
        "198.51.100.7/32",
    ]


@pytest.mark.parametrize("name", MADE)
def test_a_new_network_has_the_configured_ranges(name: str) -> None:
    recording, asked = stack(name), PLATFORMS[name]().network
    cluster = recording.one(":ManagedCluster")
    assert text(recording.one(":Subnet", "main-network-nodes"), "addressPrefix") == getattr(
        asked, "cidr", None
    )
    profile = value(cluster, "networkProfile")
    assert isinstance(profile, dict)
    assert (profile["podCidr"], profile["serviceCidr"]) == (asked.pods_cidr, asked.services_cidr)
    assert profile["outboundType"] == "userAssignedNATGateway"
