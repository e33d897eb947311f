"""A network made for a stack on Google Cloud, and one that is brought."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pulumi import CustomResource

from holdfast.components.network.gcp import ExistingGcpNetwork, GcpNetwork, GcpNetworkArgs
from tests.support.fakes.pulumi_engine import Recording, record
from tests.support.inputs import objects, text, value

if TYPE_CHECKING:
    from holdfast.components.network.gcp import VpcNativeNetwork


class NodePool(CustomResource):
    """Anything that stands in the subnetwork."""

    def __init__(self, subnetwork: object) -> None:
        super().__init__("test:index:NodePool", "nodes", {"subnetwork": subnetwork})


def recorded(*, label: str | None = "holdfast-dev", preview: bool = False) -> Recording:
    def build() -> None:
        network: VpcNativeNetwork = GcpNetwork(
            "network",
            GcpNetworkArgs(
                region="europe-west4",
                nodes_cidr="10.40.0.0/20",
                pods_cidr="10.44.0.0/14",
                services_cidr="10.40.16.0/20",
                label=label,
            ),
        )
        assert (network.pods_range, network.services_range) == ("pods", "services"), "a cluster names them"
        NodePool(network.subnetwork_id)

    return record(build, preview=preview)


def test_pods_and_services_have_ranges_of_their_own_in_the_nodes_subnetwork() -> None:
    subnetwork = recorded().one(":Subnetwork")
    assert text(subnetwork, "ipCidrRange") == "10.40.0.0/20", "the nodes' range is the subnetwork's own"
    assert {
        text(one, "rangeName"): text(one, "ipCidrRange") for one in objects(subnetwork, "secondaryIpRanges")
    } == {
        "pods": "10.44.0.0/14",
        "services": "10.40.16.0/20",
    }, "a VPC-native cluster takes pods' and Services' addresses from secondary ranges"


def test_google_makes_no_subnetwork_of_its_own_choice() -> None:
    assert value(recorded().one(":Network"), "autoCreateSubnetworks") is False, (
        "one in each region of the world would overlap what is peered later"
    )


def test_buckets_and_images_are_reached_without_nat() -> None:
    assert value(recorded().one(":Subnetwork"), "privateIpGoogleAccess") is True, (
        "nodes have no public address: checkpoints would pay NAT for each gigabyte"
    )


def test_nat_lets_out_nodes_and_pods_of_this_subnetwork_alone() -> None:
    nat = recorded().one(":RouterNat")
    assert text(nat, "sourceSubnetworkIpRangesToNat") == "LIST_OF_SUBNETWORKS", "nothing else gets out by it"
    (source,) = objects(nat, "subnetworks")
    assert text(source, "name") == "network-nodes-id", "another subnetwork is let out"
    assert source["sourceIpRangesToNats"] == ["ALL_IP_RANGES"], "pods have addresses of a secondary range"


def test_ports_are_given_out_as_they_are_needed() -> None:
    nat = recorded().one(":RouterNat")
    assert nat.inputs["enableDynamicPortAllocation"] is True, "64 ports a node are used up by its pods"
    assert nat.inputs["enableEndpointIndependentMapping"] is False, "Google refuses both together"
    assert value(nat, "logConfig", "filter") == "ERRORS_ONLY", "what is dropped is seen nowhere else"


def test_there_is_no_firewall_rule_that_lets_anybody_in() -> None:
    assert not recorded().of(":Firewall"), "GKE makes the rules that its clusters need"


@pytest.mark.parametrize("label", ["holdfast-dev", None])
def test_names_in_the_project_begin_with_the_stacks(label: str | None) -> None:
    made = recorded(label=label)
    names = {text(one, "name") for one in made if one.type.startswith("gcp:")}
    begin = label or "network"
    assert names == {begin, f"{begin}-nodes"}, f"a project has many networks: whose are {names}?"


@pytest.mark.parametrize("preview", [False, True])
def test_the_way_out_outlives_what_drains_through_it(preview: bool) -> None:
    made = recorded(preview=preview)
    way = {one.name for kind in (":Router", ":RouterNat", ":Subnetwork", ":Network") for one in made.of(kind)}
    assert len(way) == 4, "one of each"
    before = made.everything_before(made.one(":NodePool"))
    assert way <= before, f"nodes that drain lose {way - before}"


def test_a_network_that_is_brought_is_named_and_nothing_in_it_is_made() -> None:
    brought: VpcNativeNetwork = ExistingGcpNetwork(
        network="projects/shared/global/networks/ml",
        subnetwork="projects/shared/regions/europe-west4/subnetworks/nodes",
        pods_range="gke-pods",
        services_range="gke-services",
    )
    assert brought.network_id == "projects/shared/global/networks/ml", "a shared VPC is of another project"
    assert brought.subnetwork_id == "projects/shared/regions/europe-west4/subnetworks/nodes", (
        "as it was given"
    )
    assert (brought.pods_range, brought.services_range) == ("gke-pods", "gke-services"), "its own ranges"
