"""The networks that an Azure stack can stand in, and where its charts and images come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import pytest

from tests.support.azure_documents import SUBNET
from tests.support.azure_stacks import CHARTS, IMAGES, PLATFORMS, stack
from tests.support.inputs import objects, text, value

if TYPE_CHECKING:
    from collections.abc import Iterator

    from scheduling.json import JsonValue
    from tests.support.recorder import Recorded

BROUGHT = ["brought", "brought-fixed"]
MADE = [name for name in PLATFORMS if name not in BROUGHT]


def releases(name: str) -> list[Recorded]:
    found = stack(name).of(":Release")
    assert len(found) == 5, "JobSet and KubeRay, in two releases each, and the device plugin"
    return found


def image_repositories(tree: JsonValue) -> Iterator[str]:
    """Every repository that a chart's values name."""
    if isinstance(tree, Mapping):
        for key, child in tree.items():
            if key == "repository" and isinstance(child, str):
                yield child
            yield from image_repositories(child)
    elif isinstance(tree, Sequence) and not isinstance(tree, str):
        for child in tree:
            yield from image_repositories(child)


def test_with_a_mirror_no_chart_comes_from_elsewhere() -> None:
    for release in releases("mirrored"):
        chart = text(release, "chart")
        assert value(release, "repositoryOpts", "repo") is None, f"{release.name} asks a chart repository"
        assert chart.startswith(f"{CHARTS}/") or "/components/charts/" in chart, (
            f"{release.name} is neither in the mirror nor a part of this repository"
        )


def test_with_a_mirror_no_image_comes_from_elsewhere() -> None:
    for release in releases("mirrored"):
        repositories = list(image_repositories(release.inputs))
        assert repositories or release.name.endswith("-crds"), f"{release.name} takes its chart's own image"
        for repository in repositories:
            assert repository.startswith(f"{IMAGES}/"), f"{release.name} would pull {repository}"


@pytest.mark.parametrize("name", ["azure-dev", "brought"])
def test_without_a_mirror_each_project_is_asked_itself(name: str) -> None:
    for release in releases(name):
        assert "mirror" not in text(release, "chart"), "there is none"
        assert all("mirror" not in found for found in image_repositories(release.inputs)), "there is none"


@pytest.mark.parametrize("name", BROUGHT)
def test_a_subnet_that_is_brought_is_used_by_its_id_and_left_as_it_is(name: str) -> None:
    recording = stack(name)
    assert not [found.name for found in recording if found.type.startswith("azure-native:network:")], (
        "no network, no address, no way out"
    )
    cluster = recording.one(":ManagedCluster")
    (system,) = objects(cluster, "agentPoolProfiles")
    assert text(system, "vnetSubnetID") == SUBNET, "its nodes are there"
    for pool in recording.of(":AgentPool"):
        assert text(pool, "vnetSubnetID") == SUBNET, f"{pool.name}'s too"
    assert value(cluster, "apiServerAccessProfile", "authorizedIPRanges") == [
        "203.0.113.0/24",
        "198.51.100.7/32",
    ], "they come to the API server by the addresses that are written"


@pytest.mark.parametrize("name", MADE)
def test_a_network_of_the_stacks_own_has_the_ranges_that_are_written(name: str) -> None:
    recording, asked = stack(name), PLATFORMS[name]().network
    cluster = recording.one(":ManagedCluster")
    assert text(recording.one(":Subnet"), "addressPrefix") == getattr(asked, "cidr", None), "nodes"
    profile = value(cluster, "networkProfile")
    assert isinstance(profile, dict), "the cluster has one"
    assert (profile["podCidr"], profile["serviceCidr"]) == (asked.pods_cidr, asked.services_cidr), (
        "pods and Services, which the network does not know"
    )
    assert profile["outboundType"] == "userAssignedNATGateway", "by the gateway that is on the subnet"


@pytest.mark.parametrize("name", PLATFORMS)
def test_pods_are_in_an_overlay_of_azures_with_cilium(name: str) -> None:
    profile = value(stack(name).one(":ManagedCluster"), "networkProfile")
    assert isinstance(profile, dict), "the cluster has one"
    found = {key: profile[key] for key in ("networkPlugin", "networkPluginMode", "networkDataplane")}
    assert found == {
        "networkPlugin": "azure",
        "networkPluginMode": "overlay",
        "networkDataplane": "cilium",
    }, "a node takes one address of the subnet, and not thirty"
