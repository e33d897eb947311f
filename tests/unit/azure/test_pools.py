"""Pools of AKS: agent pools, the AKSNodeClass and pool names."""

import re
from dataclasses import replace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.azure.names import LONGEST_NAME, agent_pool_name, zone_label
from pulumi_holdfast.azure.pools import (
    CONFIGURATION_TAG,
    NO_CAP,
    AksNodeClassArgs,
    AksPool,
    AksPoolArgs,
    ConfigurationDigest,
    ExistingPool,
    aks_node_class,
    configuration_of,
    upgrade_settings,
)
from pulumi_holdfast.kubernetes.karpenter_pool import KarpenterPool, KarpenterPoolArgs
from pulumi_holdfast.ladder.json import sequence
from pulumi_holdfast.ladder.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE, CapacityType
from pulumi_holdfast.ladder.machines import machine_catalogue, zones_of
from tests.support.builders.aks_components import A100_SPOT, CPU, MACHINES, POOL_SUBNET
from tests.support.builders.configurations import pool
from tests.support.fakes.pulumi_engine import Recorded, Recording, record
from tests.support.inputs import mapping, objects, text, value

CPU_SPOT = replace(CPU, pool=replace(CPU.pool, name="cpu-spot", capacity=CapacityType.SPOT))
A100 = replace(A100_SPOT, pool=replace(A100_SPOT.pool, name="a100", capacity=CapacityType.ON_DEMAND))


def recorded(args: AksPoolArgs = A100_SPOT, *, preview: bool = False) -> Recording:
    return record(lambda: AksPool("pool-it", args), preview=preview)


def agent_pool(args: AksPoolArgs = A100_SPOT) -> Recorded:
    return recorded(args).one(":AgentPool")


@pytest.mark.parametrize("preview", [False, True])
def test_it_creates_one_agent_pool_that_scales_from_zero_and_is_replaced_on_immutable_changes(
    preview: bool,
) -> None:
    recording = recorded(preview=preview)
    pool = recording.one(":AgentPool")
    made = sorted((resource.type, resource.name) for resource in recording)
    assert made == [
        ("azure-native:containerservice:AgentPool", "pool-it-agent-pool"),
        ("holdfast:index:AksPool", "pool-it"),
    ]
    scaling = [value(pool, field) for field in ("enableAutoScaling", "minCount", "maxCount")]
    assert scaling == [True, 0, 8]
    assert value(pool, "scaleDownMode") == "Delete"
    assert value(pool, "count") == 0
    assert pool.ignore_changes == {"count"}
    assert pool.replace_on_changes == {
        "availabilityZones",
        "capacityReservationGroupID",
        "osDiskSizeGB",
        "scaleSetEvictionPolicy",
        "scaleSetPriority",
        "spotMaxPrice",
        "vnetSubnetID",
    }
    assert pool.deletes_first, "two pools cannot have the same name"


EXISTING = ExistingPool(count=5, configuration=configuration_of(A100_SPOT))


@pytest.mark.parametrize(
    ("change", "existing", "count", "is_ignored", "reason"),
    [
        ({}, EXISTING, 5, True, "an unchanged pool is not updated because its number of nodes has changed"),
        ({"tags": {"team": "vision"}}, EXISTING, 5, False, "an update sends the current number"),
        ({"pool": replace(A100_SPOT.pool, max_nodes=2)}, EXISTING, 5, False, "for any field"),
        ({}, replace(EXISTING, configuration=None), 5, False, "an older release has left no digest"),
        ({"zones": ("1",)}, EXISTING, 0, False, "a replaced pool starts without nodes"),
        ({"spot_max_price": 9.5}, EXISTING, 0, False, "whatever replaces it"),
    ],
)
def test_a_changed_pool_is_updated_with_its_current_number_of_nodes(
    change: dict[str, object], existing: ExistingPool, count: int, is_ignored: bool, reason: str
) -> None:
    made = agent_pool(replace(A100_SPOT, **change, existing=existing))  # pyright: ignore[reportArgumentType] - one change of any field
    assert (value(made, "count"), made.ignore_changes == {"count"}) == (count, is_ignored), reason


def test_the_configuration_is_recorded_in_a_tag() -> None:
    tag = text(agent_pool(), "tags", CONFIGURATION_TAG)
    assert ConfigurationDigest.parse(tag) == EXISTING.configuration
    assert ConfigurationDigest.parse(None) is None


def test_an_agent_pool_has_a_valid_name_the_clusters_version_and_the_configured_machines() -> None:
    made = agent_pool()
    assert value(made, "agentPoolName") == "a100spot"
    assert value(made, "resourceName") == value(made, "resourceGroupName") == "holdfast-test"
    assert (value(made, "mode"), value(made, "type")) == ("User", "VirtualMachineScaleSets")
    assert value(made, "orchestratorVersion") == "1.36"
    assert value(made, "vmSize") == "Standard_ND96asr_v4"
    assert value(made, "osDiskSizeGB") == 256
    assert value(made, "tags", "holdfast-stack") == "test"


GPU_LABEL = {"nvidia.com/gpu.present": "true"}
SPOT_LABEL = {"kubernetes.azure.com/scalesetpriority": "spot"}
GPU_TAINT = "nvidia.com/gpu=present:NoSchedule"
SPOT_TAINTS = [
    "karpenter.sh/capacity-type=spot:NoSchedule",
    "kubernetes.azure.com/scalesetpriority=spot:NoSchedule",
]


@pytest.mark.parametrize(
    ("args", "labels", "taints"),
    [
        (A100_SPOT, {**GPU_LABEL, **SPOT_LABEL}, [*SPOT_TAINTS, GPU_TAINT]),
        (CPU_SPOT, SPOT_LABEL, SPOT_TAINTS),
        (A100, GPU_LABEL, [GPU_TAINT]),
        (CPU, {}, []),
    ],
    ids=["gpu-spot", "spot", "gpu", "default"],
)
def test_nodes_have_the_labels_and_taints_of_a_karpenter_pool_and_aks_own(
    args: AksPoolArgs, labels: dict[str, str], taints: list[str]
) -> None:
    pool = agent_pool(args)
    capacity = {"karpenter.sh/capacity-type": args.pool.capacity.value}
    assert mapping(pool, "nodeLabels") == {"holdfast.dev/pool": args.pool.name, **capacity, **labels}
    assert value(pool, "nodeTaints") == taints, "an update would remove AKS's own spot taint"


def test_only_spot_pools_have_spot_settings_and_a_price_limit() -> None:
    spot, on_demand = agent_pool(A100_SPOT), agent_pool(CPU)
    fields = ("scaleSetPriority", "scaleSetEvictionPolicy", "spotMaxPrice")
    assert [value(spot, field) for field in fields] == ["Spot", "Delete", NO_CAP]
    assert [value(on_demand, field) for field in fields] == [None, None, None]
    limited = agent_pool(replace(A100_SPOT, spot_max_price=9.87654))
    assert value(limited, "spotMaxPrice") == 9.87654


def test_an_upgrade_restarts_jobs_once() -> None:
    assert upgrade_settings(CPU) == {"max_surge": "0", "max_unavailable": "100%"}
    assert value(agent_pool(A100_SPOT), "upgradeSettings") is None


def test_machines_are_in_the_configured_zones_and_subnet() -> None:
    made = agent_pool(replace(CPU, zones=("3", "1")))
    assert value(made, "availabilityZones") == ["1", "3"], "sorted, so that the order does not matter"
    assert value(made, "vnetSubnetID") == POOL_SUBNET
    assert value(agent_pool(replace(CPU, zones=())), "availabilityZones") is None


@pytest.mark.parametrize(
    ("args", "change", "reason"),
    [
        (A100_SPOT, {"machine": MACHINES["Standard_D8ds_v5"]}, "Standard_D8ds_v5 has 0 GPUs"),
        (CPU, {"spot_max_price": 1.0}, "pool cpu: only a spot pool can have spot_max_price"),
        (
            A100_SPOT,
            {"spot_max_price": 0.0},
            "spot_max_price is 0: set a price above 0 with up to 5 decimals",
        ),
        (A100_SPOT, {"spot_max_price": -2.0}, "spot_max_price is -2: set a price above 0"),
        (A100_SPOT, {"spot_max_price": 0.123456}, "up to 5 decimals"),
    ],
)
def test_invalid_pools_are_rejected(args: AksPoolArgs, change: dict[str, object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        replace(args, **change)  # pyright: ignore[reportArgumentType] - one change of any field


ARGS = AksNodeClassArgs(disk_gib=256, tags={"holdfast-stack": "azure-dev"})
AZURE = machine_catalogue("azure")
SIZES = ("Standard_ND96asr_v4", "Standard_ND96amsr_A100_v4")


def made(suffix: str) -> Recorded:
    """One of the two objects of a spot pool with GPUs."""
    args = KarpenterPoolArgs(
        pool=pool("a100-spot", capacity=CapacityType.SPOT, has_gpus=True),
        machines=[AZURE[name] for name in SIZES],
        node_class=aks_node_class(ARGS),
        weight=7,
        zones=(zone_label("westeurope", "1"), zone_label("westeurope", "2")),
    )
    return record(lambda: KarpenterPool("pool-a100-spot", args)).one(suffix)


def requirement(key: str) -> list[str]:
    found = objects(made(":NodePool"), "spec", "template", "spec", "requirements")
    (values,) = [each["values"] for each in found if each["key"] == key]
    return [str(one) for one in cast("list[object]", values)]


def test_the_node_class_has_the_supported_version_and_only_fields_of_every_version() -> None:
    node_class = aks_node_class(ARGS)
    assert node_class.kind == "AKSNodeClass"
    assert node_class.api_version == "karpenter.azure.com/v1beta1"
    assert node_class.spec == {
        "imageFamily": "Ubuntu",
        "osDiskSizeGB": 256,
        "tags": {"holdfast-stack": "azure-dev"},
    }


def test_the_node_pool_buys_the_listed_sizes_in_the_configured_zones_with_its_node_class() -> None:
    assert requirement(INSTANCE_TYPE) == list(SIZES)
    assert requirement(ZONE) == ["westeurope-1", "westeurope-2"]
    assert requirement(CAPACITY_TYPE) == ["spot"]
    reference = mapping(made(":NodePool"), "spec", "template", "spec", "nodeClassRef")
    expected = {"group": "karpenter.azure.com", "kind": "AKSNodeClass", "name": "a100-spot"}
    assert reference == expected
    assert text(made(":AKSNodeClass"), "metadata", "name") == "a100-spot"


pool_names = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)


@pytest.mark.parametrize(
    ("pool", "name"),
    [("cpu", "cpu"), ("a100-spot", "a100spot"), ("h100-on-demand", "h100ondemand"), ("4x-a100", "p4xa100")],
)
def test_agent_pool_names_are_the_pool_names_without_hyphens(pool: str, name: str) -> None:
    assert agent_pool_name(pool) == name


def test_long_names_with_a_common_prefix_stay_distinct() -> None:
    names = {agent_pool_name(f"a100-80gb-spot-{zone}") for zone in ("east", "west")}
    assert len(names) == 2, "one pool would replace the other"
    assert all(name.startswith("a10080gb") for name in names)


@given(pool_names)
def test_every_agent_pool_name_is_valid(pool: str) -> None:
    assert re.fullmatch(rf"[a-z][a-z0-9]{{0,{LONGEST_NAME - 1}}}", agent_pool_name(pool))


def test_a_zone_label_has_location_and_number() -> None:
    labels = tuple(zone_label("westeurope", zone) for zone in ("1", "2", "3"))
    assert labels == zones_of("westeurope")


def test_a_node_pool_names_the_label_and_the_startup_taint_of_cilium() -> None:
    template = mapping(made(":NodePool"), "spec", "template")
    assert value(template, "metadata", "labels", "kubernetes.azure.com/ebpf-dataplane") == "cilium"
    taint = {"key": "node.cilium.io/agent-not-ready", "value": "true", "effect": "NoExecute"}
    assert objects(template, "spec", "startupTaints") == [taint]


def test_a_reserved_pool_names_its_group_and_is_replaced_with_it() -> None:
    group = (
        "/subscriptions/0/resourceGroups/capacity/providers/Microsoft.Compute/capacityReservationGroups/a100"
    )
    reserved = replace(A100, pool=replace(A100.pool, capacity=CapacityType.RESERVED), reservation_group=group)
    made = agent_pool(reserved)
    assert value(made, "capacityReservationGroupID") == group
    assert "karpenter.sh/capacity-type=reserved:NoSchedule" in sequence(made.inputs["nodeTaints"])
    other = replace(reserved, reservation_group=f"{group}-2")
    assert configuration_of(other).replaced != configuration_of(reserved).replaced, "AKS cannot change it"
    with pytest.raises(ValueError, match="set both or neither"):
        replace(A100, reservation_group=group)
