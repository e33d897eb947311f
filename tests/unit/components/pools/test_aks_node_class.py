"""What an AKSNodeClass says."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from holdfast.components.azure_names import zone_label
from holdfast.components.pools.aks import AksNodeClassArgs, aks_node_class
from holdfast.components.pools.karpenter import KarpenterPool, KarpenterPoolArgs
from holdfast.scheduling.labels import CAPACITY_TYPE, INSTANCE_TYPE, ZONE, CapacityType
from holdfast.scheduling.machines import machine_catalogue
from tests.support.builders.configurations import pool
from tests.support.fakes.pulumi_engine import record
from tests.support.inputs import mapping, objects, text, value

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json
    from tests.support.fakes.pulumi_engine import Recorded

ARGS = AksNodeClassArgs(disk_gib=256, tags={"holdfast-stack": "azure-dev"})
AZURE = machine_catalogue("azure")
SIZES = ("Standard_ND96asr_v4", "Standard_ND96amsr_A100_v4")


def spec(args: AksNodeClassArgs = ARGS) -> Json:
    return cast("Json", aks_node_class(args).spec)


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


def test_it_is_the_one_version_of_aks_kind() -> None:
    node_class = aks_node_class(ARGS)
    assert (node_class.api_version, node_class.kind) == ("karpenter.azure.com/v1beta1", "AKSNodeClass"), (
        "v1alpha2 is served with a warning, and goes"
    )


def test_it_says_what_every_version_of_the_provider_understands_and_no_more() -> None:
    assert spec() == {
        "imageFamily": "Ubuntu",
        "osDiskSizeGB": 256,
        "tags": {"holdfast-stack": "azure-dev"},
    }, "AKS brings its CRD and its controller up to date when it likes"


def test_gpu_drivers_are_left_to_aks() -> None:
    assert "gpu" not in spec(), "so that it buys only sizes which it has a driver for"


def test_its_node_pool_refers_to_it() -> None:
    reference = mapping(made(":NodePool"), "spec", "template", "spec", "nodeClassRef")
    assert reference == {"group": "karpenter.azure.com", "kind": "AKSNodeClass", "name": "a100-spot"}, (
        "by the pool's name"
    )
    assert text(made(":AKSNodeClass"), "metadata", "name") == "a100-spot", "which is its own"


def test_its_node_pool_buys_the_named_sizes_in_the_named_zones() -> None:
    assert requirement(INSTANCE_TYPE) == list(SIZES), "any of them, and no other"
    assert requirement(ZONE) == ["westeurope-1", "westeurope-2"], "as AKS labels its nodes"
    assert requirement(CAPACITY_TYPE) == ["spot"], "one capacity type"


def test_its_node_pool_leaves_a_node_that_trains_alone() -> None:
    node_pool = made(":NodePool")
    disruption = mapping(node_pool, "spec", "disruption")
    assert disruption["consolidationPolicy"] == "WhenEmpty", "AKS's own default moves pods for a better price"
    first, *_ = objects(node_pool, "spec", "disruption", "budgets")
    assert first == {"nodes": "0", "reasons": ["Drifted", "Underutilized"]}, (
        "a new image or version is no reason: it comes every week"
    )
    assert value(node_pool, "spec", "template", "spec", "expireAfter") == "Never", "nor is age"


def test_its_spot_nodes_are_tainted_by_us() -> None:
    taints = objects(made(":NodePool"), "spec", "template", "spec", "taints")
    assert [taint["key"] for taint in taints] == ["karpenter.sh/capacity-type", "nvidia.com/gpu"], (
        "node auto-provisioning adds no taint of its own"
    )
