"""Pools that a cloud refuses or cannot fill, whose nodes cannot fetch images, or get no node for expendable pods."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import pytest

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.ladder.labels import POOL
from pulumi_holdfast.ladder.reachability.checks import Failed, Undetermined, check_pool
from pulumi_holdfast.ladder.reachability.facts import PoolFacts
from pulumi_holdfast.ladder.reachability.shape import Resources, Shape
from pulumi_holdfast.ladder.taints import GPU, Toleration
from pulumi_holdfast.program.pools.declared import declared_pools
from pulumi_holdfast.program.pools.gke import NODE_POOL
from pulumi_holdfast.program.pools.gke_zones import CLUSTER
from pulumi_holdfast.program.resources import StackResource, Value
from tests.support.builders.stack_resources import aks_cluster, aks_pool, resource

ONE: Final = Shape(requests=Resources(cpu_millis=1000, memory_mib=1024))

#: Pods that GPU nodes take, too.
ON_GPUS: Final = replace(ONE, tolerations=(Toleration.of(GPU),))


def aks(*beside: StackResource, **props: Value) -> PoolFacts:
    """An agent pool of AKS with these fields, beside a cluster if one is given."""
    size: Value = "Standard_D32s_v5"
    made = aks_pool("p", **{"vmSize": size, "maxCount": 4.0, **props})
    subnets = [each for each in beside if each.type.endswith(":Subnet")]
    refers = {
        field: tuple(each.urn for each in subnets if each.logical_name == name)
        for field, name in (("vnetSubnetID", "nodes"), ("podSubnetID", "pods"))
    }
    (read,) = declared_pools([*beside, replace(made, refers_to=refers)])
    return read.facts


def gke(
    cluster: Mapping[str, Value] | StackResource | None = None,
    *beside: StackResource,
    config: Mapping[str, Value] | None = None,
    **props: Value,
) -> PoolFacts:
    """A node pool of GKE with these fields, beside a cluster if one is given."""
    made = (
        resource(CLUSTER, "c", {"name": "c", **(cluster or {})})
        if not isinstance(cluster, StackResource)
        else cluster
    )
    own: Value = {"labels": {POOL: "p"}, "machineType": "n2-standard-8", **(config or {})}
    scaling: Value = {"totalMaxNodeCount": 4.0}
    fields: dict[str, Value] = {
        "name": "p",
        "cluster": "c",
        "nodeConfig": own,
        "autoscaling": scaling,
        **props,
    }
    stack = [replace(made, props={"removeDefaultNodePool": True, **made.props}), *beside]
    (read,) = declared_pools([*stack, resource(NODE_POOL, "p", fields)])
    return read.facts


def on(
    machine: str,
    cluster: Mapping[str, Value] | None = None,
    *,
    config: Mapping[str, Value] | None = None,
    **props: Value,
) -> PoolFacts:
    """A node pool of a machine type."""
    return gke(cluster, config={"machineType": machine, **(config or {})}, **props)


SUBNET: Final = resource("azure-native:network:Subnet", "nodes", {"addressPrefix": "10.1.0.0/29"})
POD_SUBNET: Final = resource("azure-native:network:Subnet", "pods", {"addressPrefix": "10.2.0.0/26"})
PAIR: Final = ["1", "2"]


@pytest.mark.parametrize(
    ("sound", "refused", "what"),
    [
        (gke(config={"diskType": "pd-ssd"}), on("n4-standard-8", config={"diskType": "pd-ssd"}), "Hyperdisk only"),
        (on("a3-highgpu-8g", config={"diskType": "pd-ssd"}), on("c4-standard-8", config={"bootDisk": {"diskType": "pd-ssd"}}), "Hyperdisk only"),
        (on("a3-highgpu-8g"), on("a3-highgpu-1g"), "on spot or by reservation only"),
        (on("a3-highgpu-1g", config={"spot": True}), on("a4-highgpu-8g", config={"reservationAffinity": {"consumeReservationType": "NO_RESERVATION"}}), "on spot or by reservation only"),
        (on("c2-standard-8", placementPolicy={"type": "COMPACT"}), on("e2-standard-8", placementPolicy={"type": "COMPACT"}), "close to each other"),
        (on("n2d-standard-8", {"confidentialNodes": {"enabled": True}}), on("n1-standard-8", {"confidentialNodes": {"enabled": True}}), "never confidential"),
        (gke(config={"confidentialNodes": {"enabled": False}}), gke(config={"confidentialNodes": {"enabled": True}}), "never confidential"),
        (aks(vmSize="Standard_D32ds_v5", osDiskType="Ephemeral"), aks(osDiskType="ephemeral"), "no disk of their own"),
        (aks(proximityPlacementGroupID="near", availabilityZones=["1"]), aks(proximityPlacementGroupID="near", availabilityZones=PAIR), "one zone"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_pool_that_its_cloud_refuses_stops(sound: PoolFacts, refused: PoolFacts, what: str) -> None:
    assert not sound.faults, "the cloud makes it"
    (found,) = (each for each in check_pool(ONE, refused) if what in each.reason)
    assert isinstance(found, Failed), "it is certain before the update"
    assert found.fix, "the message says how to fix it"


PRIVATE: Final[Mapping[str, Value]] = {"privateClusterConfig": {"enablePrivateNodes": True}}
OVERLAY: Final[Mapping[str, Value]] = {"networkPlugin": "azure", "networkPluginMode": "overlay"}


@pytest.mark.parametrize(
    ("pool", "what"),
    [
        (gke(config={"oauthScopes": ["https://www.googleapis.com/auth/monitoring"]}), "oauthScopes"),
        (gke(config={"oauthScopes": ["https://www.googleapis.com/auth/cloud-platform"]}), ""),
        (gke(config={"oauthScopes": UNKNOWN}), ""),
        (gke(PRIVATE), ""),
        (aks(aks_cluster(networkProfile=OVERLAY), SUBNET), "addresses for 3 of the 4 nodes"),
        (aks(aks_cluster(networkProfile=OVERLAY), SUBNET, maxCount=3.0), ""),
        (aks(aks_cluster(networkProfile={**OVERLAY, "podCidr": "10.8.0.0/23"})), "the range 10.8.0.0/23 of its pods has addresses for 2 of the 4 nodes"),
        (aks(aks_cluster(networkProfile={**OVERLAY, "podCidr": "10.8.0.0/16"})), ""),
        (aks(aks_cluster(location="West US"), vmSize="Standard_ND96asr_v4"), "westus does not have the size"),
        (aks(aks_cluster(location="westus"), availabilityZones=["1"]), "westus has no zone 1"),
        (aks(aks_cluster(location="westeurope"), availabilityZones=["1"]), ""),
        (gke({"location": "europe-west4"}, nodeLocations=["europe-west3-a"]), "europe-west4, which has no europe-west3-a"),
        (on("a2-highgpu-8g", {"location": "europe-west4"}, nodeLocations=["europe-west4-c"]), "no a2-highgpu-8g in europe-west4-c"),
        (on("a2-highgpu-8g", {"location": "europe-west4"}), "no a2-highgpu-8g in europe-west4-c"),
        (on("a2-highgpu-8g", {"location": "europe-west4"}, nodeLocations=["europe-west4-a"]), ""),
        (gke({"location": "europe-west4-b"}, nodeLocations=["europe-west4-a"]), ""),
        (aks(aks_cluster(networkProfile={"networkPlugin": "azure"}), SUBNET, maxCount=1.0), "addresses for 0 of the 1 nodes"),
        (aks(aks_cluster(networkProfile={"networkPlugin": "azure"}), SUBNET, maxCount=1.0, podSubnetID="pods"), ""),
        (aks(aks_cluster(networkProfile={"networkPlugin": "azure"}), POD_SUBNET, podSubnetID="pods"), "addresses for 3 of the 4 nodes"),
        (aks(aks_cluster(networkProfile={"networkPlugin": "azure"}), POD_SUBNET, podSubnetID="pods", maxCount=3.0), ""),
        (aks(scaleDownMode="Deallocate"), "scaleDownMode"),
    ],
)  # fmt: skip
def test_pool_that_cannot_fetch_images_or_find_addresses_is_not_judged(pool: PoolFacts, what: str) -> None:
    found = check_pool(ON_GPUS, pool)
    assert [type(each) for each in found] == ([Undetermined] if what else []), (
        f"what may strand is named: {found}"
    )
    assert all(what in each.reason for each in found), f"by its reason: {found}"


@pytest.mark.parametrize(
    ("pool", "selector"),
    [
        (gke(config={"workloadMetadataConfig": {"mode": "GKE_METADATA"}}), {"iam.gke.io/gke-metadata-server-enabled": "true"}),
        (gke(placementPolicy={"tpuTopology": "4x4"}), {"cloud.google.com/gke-tpu-topology": "4x4"}),
    ],
)  # fmt: skip
def test_labels_that_gke_sets_by_a_setting_are_judged(pool: PoolFacts, selector: dict[str, str]) -> None:
    wants = replace(ONE, selector=selector)
    other = gke(config={"workloadMetadataConfig": {"mode": "GCE_METADATA"}}, placementPolicy={"tpuTopology": "2x4"})  # fmt: skip
    assert not check_pool(wants, pool), "its nodes have the label"
    assert any(isinstance(each, Failed) for each in check_pool(wants, other)), "the others never have it"


def test_private_nodes_without_a_way_out_are_not_judged() -> None:
    network = resource("gcp:compute/network:Network", "net", {})
    cluster = replace(resource(CLUSTER, "c", {"name": "c", **PRIVATE}), refers_to={"network": (network.urn,)})
    nat = resource("gcp:compute/routerNat:RouterNat", "nat", {})
    closed, open_ = (gke(cluster, *beside) for beside in ([network], [network, nat]))
    assert any("Cloud NAT" in reason for reason in closed.unmodeled), "images from elsewhere never arrive"
    assert not open_.unmodeled, "the program makes the way out"


@pytest.mark.parametrize(("priority", "scales", "stops"), [(-100, True, True), (-10, True, False), (-100, False, False)])  # fmt: skip
def test_pods_that_the_autoscaler_takes_for_expendable_never_get_a_node(
    priority: int, scales: bool, stops: bool
) -> None:
    pods = replace(ONE, priority=priority)
    on_one: Value = ["us-central1-a"]
    made = (
        [gke(), aks()]
        if scales
        else [
            gke(autoscaling=None, nodeCount=3.0, nodeLocations=on_one),
            aks(enableAutoScaling=False, count=3.0),
        ]
    )
    for pool in made:
        found = [each for each in check_pool(pods, pool) if isinstance(each, Failed)]
        assert bool(found) is stops, "below -10 nothing is scaled up for them; nodes that are there take them"


@pytest.mark.parametrize(
    ("pool", "field"),
    [
        (aks(enableAutoScaling=False, count=2.0), "`count` to 4"),
        (aks(maxCount=2.0), "`maxCount` to 4"),
        (aks(vmSize=None, type="VirtualMachines", virtualMachinesProfile={"scale": {"manual": [{"size": "Standard_D32s_v5", "count": 2.0}]}}), "`virtualMachinesProfile.scale` to 4"),
        (gke(autoscaling=None, nodeCount=2.0, nodeLocations=["us-central1-a"]), "`nodeCount` to 4"),
        (gke(autoscaling={"totalMaxNodeCount": 2.0}), "`autoscaling.totalMaxNodeCount` to 4"),
    ],
)  # fmt: skip
def test_fix_names_the_field_with_the_number_of_nodes(pool: PoolFacts, field: str) -> None:
    (found,) = check_pool(replace(ONE, pods=4, one_per_node=True), pool)
    assert isinstance(found, Failed), "two nodes never become four"
    assert field in found.fix, found.fix
