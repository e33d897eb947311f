"""Pools of AKS on the real engine: left alone, replaced only for what a pool cannot change, refused beside the other way."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pulumi
import pytest

from pulumi_holdfast.azure.control_plane.component import AksCluster
from pulumi_holdfast.azure.control_plane.control_plane import Scaling
from pulumi_holdfast.azure.network import AzureNetwork, AzureNetworkArgs
from pulumi_holdfast.azure.pools import AksPool, AksPoolArgs, ExistingPool, configuration_of
from pulumi_holdfast.azure.training_cluster import StackResourceGroup, StackResourceGroupArgs
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.machines import machine_catalogue
from pulumi_holdfast.rehearsal.clouds.azure.instances import REGISTER
from pulumi_holdfast.rehearsal.clouds.azure.names import CALLER
from pulumi_holdfast.rehearsal.clouds.azure.nodes import pool_of, template_of
from pulumi_holdfast.rehearsal.engine import EngineFailure
from tests.support.builders.aks_components import A100_SPOT, CONFIG, CPU, LOCATION, cluster_args
from tests.support.clusters.cloud_program import CloudProgram, operations

pytestmark = [
    pytest.mark.engine,
    # Importing an SDK module imports the deprecated types in it as well.
    pytest.mark.filterwarnings("ignore::DeprecationWarning:pulumi_"),
]

AGENT_POOL = "azure-native:containerservice:AgentPool"
GROUP = "holdfast-dev"
A100 = replace(A100_SPOT, pool=replace(A100_SPOT.pool, name="a100", capacity=CapacityType.ON_DEMAND))

#: Pool → how it is changed, and what that costs.
CHANGES: dict[str, tuple[Callable[[AksPoolArgs], AksPoolArgs], str]] = {
    "limit": (lambda args: replace(args, pool=replace(args.pool, max_nodes=2)), "update"),
    "tags": (lambda args: replace(args, tags={"team": "vision"}), "update"),
    "version": (lambda args: replace(args, kubernetes_version="1.37"), "update"),
    "zones": (lambda args: replace(args, zones=("1",)), "replace"),
    "disk": (lambda args: replace(args, disk_gib=512), "replace"),
    "cap": (lambda args: replace(args, spot_max_price=9.5), "replace"),
    "capacity": (lambda args: replace(args, pool=replace(A100.pool, name=args.pool.name)), "replace"),
    "size": (
        lambda args: replace(args, machine=machine_catalogue("azure")["Standard_ND96amsr_A100_v4"]),
        "replace",
    ),
}


@pytest.fixture
def stack(tmp_path: Path) -> CloudProgram:
    return CloudProgram(root=tmp_path, packages=("azure-native", "kubernetes"), config=CONFIG)


def program(*pools: AksPoolArgs, scaling: Scaling = "fixed") -> Callable[[], None]:
    """A cluster with these pools."""

    def run() -> None:
        group = StackResourceGroup(
            "group", StackResourceGroupArgs(group_name=GROUP, location=LOCATION, protected=False)
        )
        network = AzureNetwork(
            "network",
            AzureNetworkArgs(
                location=LOCATION, resource_group=group.group_name, cidr="10.40.0.0/16", label=GROUP
            ),
        )
        args = replace(
            cluster_args(), resource_group=group.group_name, network=network, deployer=CALLER, scaling=scaling
        )
        cluster = AksCluster("cluster", args)
        for pool in pools:
            joined = replace(
                pool,
                cluster=cluster.cluster_reference,
                resource_group=cluster.resource_group,
                subnet_id=cluster.subnet_id,
            )
            AksPool(
                f"pool-{pool.pool.name}", joined, opts=pulumi.ResourceOptions(depends_on=[cluster.cluster])
            )

    return run


def test_pools_are_created_and_unchanged_by_a_second_up(stack: CloudProgram) -> None:
    pools = (CPU, A100_SPOT, A100)
    made = stack.up(program(*pools))
    assert made.changes["create"] > len(pools)
    assert stack.up(program(*pools)).changed == 0
    assert stack.refresh(program(*pools)).changed == 0
    assert stack.up(program(*pools)).changed == 0


def test_nodes_of_the_autoscaler_are_no_drift(stack: CloudProgram) -> None:
    stack.up(program(CPU))
    with stack.cloud("azure-native").changing() as console:
        (pool,) = console.of_type(AGENT_POOL)
        console.put(replace(pool, inputs={**pool.inputs, "count": 3}))
    stack.refresh(program(CPU))
    assert stack.up(program(CPU)).changed == 0
    larger = replace(CPU, pool=replace(CPU.pool, max_nodes=30))
    stack.up(program(larger))
    (pool,) = stack.objects(AGENT_POOL)
    assert (pool.inputs["maxCount"], pool.inputs["count"]) == (30, 3)


def test_a_scaled_pool_is_changed_without_a_refresh(stack: CloudProgram) -> None:
    stack.up(program(CPU))
    with stack.cloud("azure-native").changing() as console:
        (created,) = console.of_type(AGENT_POOL)
        found = pool_of(created, console)
        assert found is not None
        for _ in range(3):
            REGISTER.record(
                created, REGISTER.new_instance(created, template_of(found), "0", console), console
            )
    larger = replace(CPU, pool=replace(CPU.pool, max_nodes=30))
    with pytest.raises(EngineFailure, match="Cannot manually scale"):
        stack.up(program(larger))
    existing = ExistingPool(count=3, configuration=configuration_of(CPU))
    stack.up(program(replace(larger, existing=existing)))
    (pool,) = stack.objects(AGENT_POOL)
    assert pool.inputs["maxCount"] == 30
    grown = replace(larger, existing=ExistingPool(count=7, configuration=configuration_of(larger)))
    assert stack.up(program(grown)).changed == 0


def test_changes_are_in_place_where_aks_allows_it(stack: CloudProgram) -> None:
    before = [replace(A100_SPOT, pool=replace(A100_SPOT.pool, name=what)) for what in CHANGES]
    after = [change(args) for args, (change, _) in zip(before, CHANGES.values(), strict=True)]
    stack.up(program(*before))
    planned = stack.preview(program(*after))
    assert operations(planned) == {
        f"pool-{what}-agent-pool": operation for what, (_, operation) in CHANGES.items()
    }
    stack.up(program(*after))
    assert {str(pool.inputs["agentPoolName"]) for pool in stack.objects(AGENT_POOL)} == set(CHANGES)
