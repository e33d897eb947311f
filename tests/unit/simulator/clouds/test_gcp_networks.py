"""The stand-in's networks are made, changed and deleted as Google Cloud would have it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.provider_calls import Engine, refusal

if TYPE_CHECKING:
    from holdfast.simulator.pulumi.values import Value
    from tests.support.provider_calls import Provider

_NETWORK = "gcp:compute/network:Network"
_SUBNETWORK = "gcp:compute/subnetwork:Subnetwork"
_ROUTER = "gcp:compute/router:Router"
_NAT = "gcp:compute/routerNat:RouterNat"
_NETWORK_ID = "projects/rehearsal/global/networks/train"
_NODES_ID = "projects/rehearsal/regions/europe-west4/subnetworks/nodes"


def _network(gcp: Provider, name: str = "train") -> str:
    made, _ = Engine(provider=gcp, type=_NETWORK, name=name).create(
        {"name": name, "autoCreateSubnetworks": False}
    )
    return made


def _subnetwork(name: str = "nodes", **overrides: Value) -> dict[str, Value]:
    return {
        "name": name,
        "network": _NETWORK_ID,
        "region": "europe-west4",
        "ipCidrRange": "10.40.0.0/20",
        "secondaryIpRanges": [{"rangeName": "pods", "ipCidrRange": "10.44.0.0/14"}],
        **overrides,
    }


def test_ids_are_the_paths_that_google_gives(gcp: Provider) -> None:
    assert _network(gcp) == _NETWORK_ID, "other resources name it so"
    made, outputs = Engine(provider=gcp, type=_SUBNETWORK).create(_subnetwork())
    assert made == _NODES_ID, "other resources name it so"
    assert outputs["selfLink"] == f"https://www.googleapis.com/compute/v1/{_NODES_ID}", "or so"
    assert outputs["gatewayAddress"] == "10.40.0.1", "the first address of the range"
    router, _ = Engine(provider=gcp, type=_ROUTER).create(
        {"name": "train", "network": _NETWORK_ID, "region": "europe-west4"}
    )
    assert router == "projects/rehearsal/regions/europe-west4/routers/train", "the region is part of it"


@pytest.mark.parametrize("name", ["Train", "1train", "train-", "train_1", "t" * 64])
def test_a_name_that_google_does_not_take_is_refused(gcp: Provider, name: str) -> None:
    reason = refusal(lambda: _network(gcp, name))
    assert reason.startswith(
        f"googleapi: Error 400: Invalid value for field 'resource.name': '{name}'. Must be a match of regex"
    ), reason


@pytest.mark.parametrize(
    ("overrides", "field"),
    [
        ({"ipCidrRange": "10.40.8.0/24"}, "resource.ipCidrRange"),
        (
            {
                "ipCidrRange": "10.60.0.0/20",
                "secondaryIpRanges": [{"rangeName": "pods", "ipCidrRange": "10.45.0.0/16"}],
            },
            "resource.secondaryIpRanges[0].ipCidrRange",
        ),
    ],
)
def test_ranges_of_one_network_do_not_overlap(gcp: Provider, overrides: dict[str, Value], field: str) -> None:
    _network(gcp)
    Engine(provider=gcp, type=_SUBNETWORK).create(_subnetwork())
    other = Engine(provider=gcp, type=_SUBNETWORK, name="other")
    reason = refusal(lambda: other.create(_subnetwork("other", **overrides)))
    assert f"Invalid value for field '{field}'" in reason, reason
    assert reason.endswith("conflicts with existing subnetwork 'nodes' in region 'europe-west4'., invalid"), (
        reason
    )


def test_ranges_of_one_subnetwork_do_not_overlap(gcp: Provider) -> None:
    ranges: list[Value] = [{"rangeName": "pods", "ipCidrRange": "10.40.0.0/16"}]
    engine = Engine(provider=gcp, type=_SUBNETWORK)
    reason = refusal(lambda: engine.create(_subnetwork(secondaryIpRanges=ranges)))
    assert "Invalid value for field 'resource.secondaryIpRanges[0].ipCidrRange'" in reason, reason


def test_ranges_of_another_network_may_be_the_same(gcp: Provider) -> None:
    Engine(provider=gcp, type=_SUBNETWORK).create(_subnetwork())
    other = _subnetwork("other", network="projects/rehearsal/global/networks/other")
    made, _ = Engine(provider=gcp, type=_SUBNETWORK, name="other").create(other)
    assert made.endswith("/other"), "networks know nothing of each other"


@pytest.mark.parametrize("cidr", ["10.40.0.1/20", "ten", "10.40.0.0/33"])
def test_what_is_no_range_is_refused(gcp: Provider, cidr: str) -> None:
    engine = Engine(provider=gcp, type=_SUBNETWORK)
    reason = refusal(lambda: engine.create(_subnetwork(ipCidrRange=cidr)))
    assert reason.endswith(f"Invalid IPCidrRange: {cidr} is not a valid CIDR range., invalid"), reason


def test_a_network_goes_after_what_is_in_it(gcp: Provider) -> None:
    network = _network(gcp)
    Engine(provider=gcp, type=_SUBNETWORK).create(_subnetwork())
    reason = refusal(lambda: Engine(provider=gcp, type=_NETWORK).delete(network))
    assert reason == (
        f"Error waiting for Deleting Network: The network resource '{network}' is already being used by '{_NODES_ID}'"
    ), reason
    Engine(provider=gcp, type=_SUBNETWORK).delete(_NODES_ID)
    Engine(provider=gcp, type=_NETWORK).delete(network)
    assert Engine(provider=gcp, type=_NETWORK).read(network)[0] == "", "an empty one goes"


def test_a_subnetwork_goes_after_the_cluster_in_it_and_after_its_nat(gcp: Provider) -> None:
    Engine(provider=gcp, type=_SUBNETWORK).create(_subnetwork())
    nat = Engine(provider=gcp, type=_NAT)
    made, _ = nat.create(
        {
            "name": "train",
            "router": "train",
            "region": "europe-west4",
            "sourceSubnetworkIpRangesToNat": "LIST_OF_SUBNETWORKS",
            "subnetworks": [{"name": _NODES_ID, "sourceIpRangesToNats": ["ALL_IP_RANGES"]}],
        }
    )
    subnetwork = Engine(provider=gcp, type=_SUBNETWORK)
    reason = refusal(lambda: subnetwork.delete(_NODES_ID))
    assert reason.endswith(f"'{_NODES_ID}' is already being used by '{made}'"), reason
    nat.delete(made)
    cluster = Engine(provider=gcp, type="gcp:container/cluster:Cluster")
    cluster.create({"name": "train", "location": "europe-west4", "subnetwork": _NODES_ID})
    reason = refusal(lambda: subnetwork.delete(_NODES_ID))
    assert reason.endswith(
        "is already being used by 'projects/rehearsal/locations/europe-west4/clusters/train'"
    ), reason


def test_ports_as_needed_and_one_mapping_for_all_are_not_to_be_had_together(gcp: Provider) -> None:
    inputs: dict[str, Value] = {
        "name": "train",
        "router": "train",
        "region": "europe-west4",
        "sourceSubnetworkIpRangesToNat": "ALL_SUBNETWORKS_ALL_IP_RANGES",
        "enableDynamicPortAllocation": True,
        "enableEndpointIndependentMapping": True,
    }
    reason = refusal(lambda: Engine(provider=gcp, type=_NAT).create(inputs))
    assert "cannot be enabled with Endpoint Independent Mapping" in reason, reason


def test_a_second_network_of_the_name_is_refused(gcp: Provider) -> None:
    _network(gcp)
    other = Engine(provider=gcp, type=_NETWORK, name="two")
    reason = refusal(lambda: other.create({"name": "train", "autoCreateSubnetworks": False}))
    assert reason.endswith("already exists, alreadyExists"), reason
