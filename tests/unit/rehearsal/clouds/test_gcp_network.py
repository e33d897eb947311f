"""Simulated Google Cloud networks are created, changed and deleted like real ones."""

from pulumi_holdfast.rehearsal.engine.values import Value
from tests.support.clusters.provider_calls import Engine, Provider

_NETWORK = "gcp:compute/network:Network"
_SUBNETWORK = "gcp:compute/subnetwork:Subnetwork"
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


def test_a_network_has_its_name_alone_and_goes_after_what_is_in_it(gcp: Provider) -> None:
    network = _network(gcp)
    other = Engine(provider=gcp, type=_NETWORK, name="two")
    other.refuses_create({"name": "train", "autoCreateSubnetworks": False}, "already exists, alreadyExists")
    Engine(provider=gcp, type=_SUBNETWORK).create(_subnetwork())
    used = f"The network resource '{network}' is already being used by '{_NODES_ID}'"
    Engine(provider=gcp, type=_NETWORK).refuses_delete(network, used)
    Engine(provider=gcp, type=_SUBNETWORK).delete(_NODES_ID)
    Engine(provider=gcp, type=_NETWORK).removes(network)


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
    subnetwork.refuses_delete(_NODES_ID, f"'{_NODES_ID}' is already being used by '{made}'")
    nat.delete(made)
    cluster = Engine(provider=gcp, type="gcp:container/cluster:Cluster")
    cluster.create({"name": "train", "location": "europe-west4", "subnetwork": _NODES_ID})
    subnetwork.refuses_delete(
        _NODES_ID, "is already being used by 'projects/rehearsal/locations/europe-west4/clusters/train'"
    )


def test_a_subnetwork_grows_in_place_and_is_replaced_when_it_shrinks_or_moves(gcp: Provider) -> None:
    subnetwork = Engine(provider=gcp, type=_SUBNETWORK)

    def replaced(cidr: str) -> bool:
        return bool(subnetwork.diff(_subnetwork(), _subnetwork(ipCidrRange=cidr)).replaces)

    assert not replaced("10.40.0.0/19")
    assert replaced("10.40.0.0/21"), "some addresses would be lost"
    assert replaced("10.41.0.0/20")
