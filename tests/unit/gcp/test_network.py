"""Networks on Google Cloud."""

import pytest
from pulumi import CustomResource

from pulumi_holdfast.gcp.network import GcpNetwork, GcpNetworkArgs, VpcNativeNetwork
from tests.support.fakes.pulumi_engine import Recording, record
from tests.support.inputs import objects, text, value


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
        assert (network.pods_range, network.services_range) == ("pods", "services")
        CustomResource("test:index:NodePool", "nodes", {"subnetwork": network.subnetwork_id})

    return record(build, preview=preview)


def test_the_subnetwork_has_secondary_ranges_and_reaches_google_without_nat() -> None:
    recording = recorded()
    subnetwork = recording.one(":Subnetwork")
    assert text(subnetwork, "ipCidrRange") == "10.40.0.0/20"
    assert {
        text(one, "rangeName"): text(one, "ipCidrRange") for one in objects(subnetwork, "secondaryIpRanges")
    } == {"pods": "10.44.0.0/14", "services": "10.40.16.0/20"}
    assert value(recording.one(":Network"), "autoCreateSubnetworks") is False
    assert value(subnetwork, "privateIpGoogleAccess") is True, "NAT would bill each gigabyte"
    firewall = recording.one(":Firewall")
    assert objects(firewall, "allows") == [{"protocol": "tcp", "ports": ["9443"]}]
    assert value(firewall, "sourceRanges") == ["10.40.0.0/20"]


def test_nat_serves_this_subnetwork_only_with_dynamic_ports() -> None:
    nat = recorded().one(":RouterNat")
    assert text(nat, "sourceSubnetworkIpRangesToNat") == "LIST_OF_SUBNETWORKS"
    (source,) = objects(nat, "subnetworks")
    assert text(source, "name") == "network-nodes-id"
    assert source["sourceIpRangesToNats"] == ["ALL_IP_RANGES"]
    assert nat.inputs["enableDynamicPortAllocation"] is True
    assert nat.inputs["enableEndpointIndependentMapping"] is False
    assert value(nat, "logConfig", "filter") == "ERRORS_ONLY"


@pytest.mark.parametrize("label", ["holdfast-dev", None])
def test_names_have_the_stacks_prefix(label: str | None) -> None:
    made = recorded(label=label)
    names = {text(one, "name") for one in made if one.type.startswith("gcp:")}
    begin = label or "network"
    assert names == {begin, f"{begin}-nodes", f"{begin}-webhooks"}


@pytest.mark.parametrize("preview", [False, True])
def test_egress_is_deleted_after_the_subnetworks_contents(preview: bool) -> None:
    made = recorded(preview=preview)
    way = {
        one.name
        for kind in (":Router", ":RouterNat", ":Subnetwork", ":Network", ":Firewall")
        for one in made.of(kind)
    }
    assert len(way) == 5
    before = made.everything_before(made.one(":NodePool"))
    assert way <= before
