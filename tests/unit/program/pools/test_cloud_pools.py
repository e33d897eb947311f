"""What EKS, GKE and AKS add to the nodes of their pools, and how far the pools grow."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import pytest

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.ladder.labels import ARCH, INSTANCE_TYPE, POOL, SPOT, ZONE
from pulumi_holdfast.ladder.reachability.checks import Failed, Undetermined, check_pool
from pulumi_holdfast.ladder.reachability.facts import PoolFacts
from pulumi_holdfast.ladder.reachability.shape import Resources, Shape
from pulumi_holdfast.program.pools.all_pools import all_pools, declared_pools
from pulumi_holdfast.program.pools.gke import NODE_POOL
from pulumi_holdfast.program.pools.gke_machines import CLUSTER
from pulumi_holdfast.program.resources import StackResource, Value, at
from rule import PACK_DEFAULTS
from rules import accelerators
from tests.support.builders.stack_resources import (
    A100,
    A100_SPOT,
    aks_cluster,
    aks_pool,
    capacity_requirement,
    ladder,
    node_pool,
    resource,
)


def gke(*found: Mapping[str, Value] | StackResource, **props: Value) -> PoolFacts:
    """A node pool of GKE with these fields of `nodeConfig`, beside a cluster if one is given."""
    node_config: dict[str, Value] = {"labels": {POOL: "p"}, "machineType": "n2-standard-8"}
    beside = [
        replace(each, props={"removeDefaultNodePool": True, **each.props})
        for each in found
        if isinstance(each, StackResource)
    ]
    for each in found:
        node_config |= {} if isinstance(each, StackResource) else each
    (*_, read) = declared_pools(
        [*beside, resource(NODE_POOL, "p", {"name": "p", "nodeConfig": node_config, **props})]
    )
    return read.facts


SCALING: Value = {"maxNodeCount": 4.0}


THREE: Final = frozenset({"europe-west4-a", "europe-west4-b", "europe-west4-c"})


@pytest.mark.parametrize(
    ("cluster", "props", "nodes", "zones"),
    [
        ({"location": "us-central1-a"}, {}, 4, frozenset({"us-central1-a"})),
        ({"location": "us-central1-a", "nodeLocations": ["us-central1-b"]}, {}, 8, frozenset({"us-central1-a", "us-central1-b"})),
        ({"location": "us-central1"}, {}, 12, UNKNOWN),
        ({"location": "europe-west4"}, {}, 12, THREE),
        ({"location": "europe-west4", "nodeLocations": ["europe-west4-a"]}, {}, 4, frozenset({"europe-west4-a"})),
        ({"location": "us-central1"}, {"nodeLocations": ["us-central1-a", "us-central1-b"]}, 8, frozenset({"us-central1-a", "us-central1-b"})),
        ({"location": "us-central1", "nodeLocations": UNKNOWN}, {}, UNKNOWN, UNKNOWN),
        ({}, {}, UNKNOWN, UNKNOWN),
        (None, {"location": "us-central1-a"}, UNKNOWN, UNKNOWN),
        (None, {"nodeLocations": ["us-central1-a"]}, 4, frozenset({"us-central1-a"})),
    ],
    ids=["zone", "several zones", "region of four", "region of three", "one of a region", "two of its own", "unknown", "region of the provider", "cluster elsewhere", "named"],
)  # fmt: skip
def test_node_pool_of_gke_has_the_zones_of_its_cluster_unless_it_names_some(
    cluster: Mapping[str, Value] | None, props: dict[str, Value], nodes: object, zones: object
) -> None:
    stack = [] if cluster is None else [resource(CLUSTER, "c", {"name": "c", **cluster})]
    found = gke(*stack, cluster="c", autoscaling=SCALING, **props)
    assert (found.limits.nodes, found.limits.nodes_in_zone) == (nodes, 4)
    assert found.zones == zones
    selected = Shape(requests=Resources(cpu_millis=1000, memory_mib=1024), selector={ZONE: "us-central1-f"})
    stops = any(isinstance(each, Failed) for each in check_pool(selected, found))
    assert stops is (zones is not UNKNOWN)


def test_total_of_a_node_pool_limits_no_single_zone() -> None:
    found = gke(autoscaling={"totalMaxNodeCount": 5.0}, location="us-central1")
    assert (found.limits.nodes, found.limits.nodes_in_zone) == (5, None)


def limited(kind: str, most: float, *, enabled: bool = True) -> dict[str, Value]:
    return {"clusterAutoscaling": {"enabled": enabled, "resourceLimits": [{"resourceType": kind, "maximum": most}]}}  # fmt: skip


ONE: Final = Shape(requests=Resources(cpu_millis=1000, memory_mib=1024))


def failed(found: PoolFacts, **changes: object) -> list[str]:
    job = replace(ONE, **changes)  # pyright: ignore[reportArgumentType] - any field
    return [each.check for each in check_pool(job, found) if isinstance(each, Failed)]


def test_gke_taints_arm_nodes_and_tolerates_the_taint_for_pods_that_select_them() -> None:
    arm = gke({"machineType": "t2a-standard-8"})
    assert failed(arm) == ["taints"], "images of another architecture must not run there"
    assert failed(arm, selector={ARCH: "arm64"}) == []
    untainted = gke({"machineType": "t2a-standard-8", "taintConfig": {"architectureTaintBehavior": "NONE"}})
    assert failed(untainted) == []
    assert failed(gke({"sandboxConfig": {"sandboxType": "gvisor"}})) == ["taints"]


def test_aks_tolerates_a_taint_of_gpus_for_pods_that_request_some() -> None:
    (pool,) = declared_pools([aks_pool("p", vmSize="Standard_NC24ads_A100_v4", nodeTaints=["nvidia.com/gpu=present:NoSchedule"])])  # fmt: skip
    with_gpu = Resources(cpu_millis=1000, memory_mib=1024, gpus=1)
    assert failed(pool.facts) == ["taints"]
    assert failed(pool.facts, requests=with_gpu) == []


def test_agent_pool_beyond_its_capacity_reservation_is_on_demand() -> None:
    (pool,) = declared_pools([aks_pool("p", capacityReservationGroupID="/groups/reserved")])
    assert pool.facts.is_on_demand is True


def test_pool_of_gke_limits_the_pods_of_a_node_and_says_how_nodes_are_placed() -> None:
    found = gke(maxPodsPerNode=8.0, placementPolicy={"type": "COMPACT"})
    assert isinstance(found.machines, tuple)
    assert [machine.max_pods for machine in found.machines] == [8], "fewer than GKE's default"
    assert found.is_compact


def node_group(*beside: StackResource, **props: Value) -> PoolFacts:
    """A managed node group of EKS, in a program with these other resources."""
    group = resource("aws:eks/nodeGroup:NodeGroup", "p", {"labels": {POOL: "p"}, **props})
    (read,) = declared_pools([*beside, group])
    return read.facts


@pytest.mark.parametrize(
    "found", [gke(), node_group(), declared_pools([aks_pool("p", vmSize="Standard_D8s_v5")])[0].facts]
)
@pytest.mark.parametrize(
    ("device", "lacking"), [("smarter-devices/fuse", []), ("google.com/tpu", ["machine"])]
)
def test_device_plugins_of_a_pool_may_add_any_device_but_no_accelerator(
    found: PoolFacts, device: str, lacking: list[str]
) -> None:
    requests = Resources(cpu_millis=100, memory_mib=128, devices={device: 1})
    results = check_pool(Shape(requests=requests), found)
    assert [each.check for each in results if isinstance(each, Failed)] == lacking


def template(**props: Value) -> StackResource:
    return resource("aws:ec2/launchTemplate:LaunchTemplate", "gpus", {"name": "gpus", **props})


EFA: Value = [{"deviceIndex": 0.0, "interfaceType": "efa"}]


def sharing(strategy: str, clients: Value) -> dict[str, Value]:
    return {"gpuSharingConfig": {"gpuSharingStrategy": strategy, "maxSharedClientsPerGpu": clients}}


@pytest.mark.parametrize(
    ("machine", "accelerator", "gpus"),
    [
        ("a2-highgpu-1g", {"gpuPartitionSize": "1g.5gb"}, 7),
        ("a2-highgpu-8g", {"gpuPartitionSize": "2g.10gb"}, 24),
        ("a2-highgpu-1g", {"gpuPartitionSize": "3g.20gb"}, 2),
        ("a3-highgpu-8g", {"gpuPartitionSize": "1g.20gb"}, 32),
        ("a3-ultragpu-8g", {"gpuPartitionSize": "7g.141gb"}, 8),
        ("g4-standard-48", {"gpuPartitionSize": "1g.24gb"}, 4),
        ("g2-standard-4", sharing("TIME_SHARING", 4.0), 4),
        ("n1-standard-8", {"type": "nvidia-tesla-t4", "count": 2.0, **sharing("MPS", 3.0)}, 6),
        ("a2-highgpu-1g", {"gpuPartitionSize": "1g.5gb", **sharing("TIME_SHARING", 2.0)}, 14),
        ("g2-standard-4", {"gpuPartitionSize": "1g.5gb"}, None),
        ("g2-standard-4", sharing("TIME_SHARING", UNKNOWN), None),
        ("n1-standard-8", {"type": "nvidia-tesla-t4", "count": UNKNOWN}, None),
        ("n1-standard-8", {"type": "nvidia-tesla-t4", "count": 3.0}, None),
    ],
)  # fmt: skip
def test_nodes_of_gke_list_a_gpu_for_each_partition_and_client(
    machine: str, accelerator: dict[str, Value], gpus: int | None
) -> None:
    found = gke({"machineType": machine, "guestAccelerators": [accelerator]})
    read = (
        found.machines[0].allocatable.gpus if isinstance(found.machines, tuple) and found.machines else None
    )
    assert read == gpus
    assert "accelerator" not in failed(found, accelerator="nvidia-tesla-t4") or gpus


def test_pod_of_several_shared_gpus_is_not_judged() -> None:
    found = gke(
        {"machineType": "g2-standard-4", "guestAccelerators": [sharing("TIME_SHARING", 4.0)]},
        autoscaling={"maxNodeCount": 1.0},
        nodeLocations=["us-central1-a"],
    )
    selector = {
        "cloud.google.com/gke-gpu-sharing-strategy": "time-sharing",
        "cloud.google.com/gke-max-shared-clients-per-gpu": "4",
    }
    for gpus, pods, verdicts in ((1, 4, []), (1, 5, [(Failed, "gang")]), (2, 1, [(Undetermined, "machine")])):
        job = Shape(
            pods=pods, requests=Resources(cpu_millis=500, memory_mib=512, gpus=gpus), selector=selector
        )
        results = [(type(each), each.check) for each in check_pool(job, found)]
        assert results == verdicts


def test_aks_accepts_its_values_in_any_case() -> None:
    system, spot = all_pools(
        [aks_pool("system", mode="system"), aks_pool("a100", scaleSetPriority="spot", maxPods=30.0)]
    )
    assert not system.is_for_jobs
    assert spot.facts.capacity_types == frozenset({SPOT})
    assert isinstance(spot.facts.machines, tuple)
    assert {machine.max_pods for machine in spot.facts.machines} <= {30}


def most_pods(found: PoolFacts) -> int:
    assert found.machines is not UNKNOWN
    return found.machines[0].max_pods


@pytest.mark.parametrize(
    ("own", "of_cluster", "most"),
    [({}, {}, 110), ({"maxPodsPerNode": 16.0}, {"defaultMaxPodsPerNode": 32.0}, 16), ({}, {"defaultMaxPodsPerNode": 32.0}, 32)],
)  # fmt: skip
def test_nodes_of_gke_have_the_pods_of_their_pool_or_cluster(
    own: dict[str, Value], of_cluster: dict[str, Value], most: int
) -> None:
    config: Value = {"labels": {POOL: "p"}, "machineType": "n2-standard-8"}
    cluster = resource(
        "gcp:container/cluster:Cluster", "c", {"name": "c", "removeDefaultNodePool": True, **of_cluster}
    )
    pool = resource(NODE_POOL, "p", {"name": "p", "cluster": "c", "nodeConfig": config, **own})
    (read,) = declared_pools([cluster, pool])
    assert most_pods(read.facts) == most


@pytest.mark.parametrize(
    ("network", "own", "most"),
    [
        ({"networkPlugin": "azure"}, {}, 30),
        ({"networkPlugin": "azure", "networkPluginMode": "overlay"}, {}, 250),
        ({"networkPlugin": "kubenet"}, {}, 110),
        ({"networkPlugin": "azure"}, {"maxPods": 100.0}, 100),
        (UNKNOWN, {}, 250),
    ],
)
def test_nodes_of_aks_have_the_pods_of_their_pool_or_network(
    network: Value, own: dict[str, Value], most: int
) -> None:
    cluster = aks_cluster(networkProfile=network, resourceName="cluster")
    read = declared_pools([cluster, aks_pool("p", vmSize="Standard_D8s_v5", resourceName="cluster", **own)])
    assert most_pods(read[0].facts) == most


def test_pool_with_queued_provisioning_is_no_on_demand_capacity() -> None:
    assert gke(queuedProvisioning={"enabled": True}).is_on_demand is False
    assert gke(queuedProvisioning={"enabled": False}).is_on_demand is True
    assert gke(queuedProvisioning={"enabled": UNKNOWN}).is_on_demand is UNKNOWN


def on_aws(name: str, kind: str, *types: str) -> StackResource:
    named: Value = {"key": INSTANCE_TYPE, "operator": "In", "values": list(types)}
    pool = node_pool(name, capacity_requirement(kind), named)
    inner = at(pool.props, "spec", "template", "spec")
    assert isinstance(inner, dict)
    inner["nodeClassRef"] = {"group": "karpenter.k8s.aws"}
    return pool


@pytest.mark.parametrize(
    ("spot", "on_demand", "told"),
    [
        (("p4de.24xlarge",), ("p4d.24xlarge",), True),
        (("p4de.24xlarge",), ("p4d.24xlarge", "p4de.24xlarge"), True),
        (("p4d.24xlarge",), ("p4de.24xlarge",), False),
        (("p4d.24xlarge", "p4de.24xlarge"), ("p4d.24xlarge", "p4de.24xlarge"), False),
    ],
)
def test_gpus_of_one_name_with_less_memory_below_are_named(
    spot: tuple[str, ...], on_demand: tuple[str, ...], told: bool
) -> None:
    stack = [
        ladder((A100_SPOT, A100)),
        on_aws("a100-spot", "spot", *spot),
        on_aws("a100", "on-demand", *on_demand),
    ]
    found = accelerators.find(stack, PACK_DEFAULTS)
    assert [("80 GiB" in each.message, each.proven) for each in found] == ([(True, False)] if told else [])
