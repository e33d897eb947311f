"""Pools of GKE on the real engine: made after the system pool, left alone, replaced only for what a pool cannot change."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from pulumi import ResourceOptions

from holdfast.components.cluster.gke.component import GkeCluster
from holdfast.components.pools.gke import GkePool
from holdfast.scheduling.machines import machine_catalogue
from tests.support.builders.gke_components import A100_SPOT, CPU, POOL, PROJECT, REGION, cluster_args
from tests.support.clusters.cloud_program import CloudProgram

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from holdfast.components.pools.gke import GkePoolArgs

pytestmark = [
    pytest.mark.engine,
    # Importing an SDK module imports the deprecated types in it as well.
    pytest.mark.filterwarnings("ignore::DeprecationWarning:pulumi_"),
]

H100_SPOT = replace(
    A100_SPOT,
    pool=replace(A100_SPOT.pool, name="h100-spot"),
    machine=machine_catalogue("gcp")["a3-highgpu-8g"],
)

#: What is changed → how, and what it costs.
CHANGES: dict[str, tuple[Callable[[GkePoolArgs], GkePoolArgs], str]] = {
    "limit": (lambda args: replace(args, pool=replace(args.pool, max_nodes=2)), "update"),
    "zones": (lambda args: replace(args, zones=("europe-west4-a",)), "update"),
    "compact": (lambda args: replace(args, zones=("europe-west4-a",), compact_placement=True), "replace"),
    "upgrades": (lambda args: replace(args, upgrades="blue-green"), "update"),
    "grace": (lambda args: replace(args, graceful_shutdown_seconds=120), "update"),
    "gpus": (lambda args: replace(args, machine=H100_SPOT.machine), "replace"),
}


@pytest.fixture
def stack(tmp_path: Path) -> CloudProgram:
    return CloudProgram(
        root=tmp_path,
        packages=("gcp", "kubernetes"),
        config={"gcp:project": PROJECT, "gcp:region": REGION},
    )


def program(*pools: GkePoolArgs) -> Callable[[], None]:
    """A cluster with these pools after its system pool."""

    def run() -> None:
        cluster = GkeCluster("cluster", cluster_args())
        for args in pools:
            joined = replace(
                args,
                cluster=cluster.cluster_name,
                project=PROJECT,
                location=REGION,
                node_service_account=cluster.node_service_account_email,
            )
            GkePool(
                f"pool-{args.pool.name}",
                joined,
                opts=ResourceOptions(depends_on=[cluster.system_pool]),
            )

    return run


def test_pools_are_created_and_unchanged_by_a_second_up(stack: CloudProgram) -> None:
    pools = (CPU, A100_SPOT, H100_SPOT)
    made = stack.up(program(*pools))
    assert made.changes["create"] > len(pools), "the cluster is there as well"
    assert stack.up(program(*pools)).changed == 0, "a second run has nothing to do"
    assert stack.refresh(program(*pools)).changed == 0, "the cloud holds what the program says"
    assert stack.up(program(*pools)).changed == 0, (
        "and the program agrees with what GKE returns: nothing is replaced"
    )


def test_gpu_pools_are_tainted_once_by_gke(stack: CloudProgram) -> None:
    stack.up(program(A100_SPOT))
    (pool,) = [one for one in stack.objects(POOL) if one.id.endswith("/a100-spot")]
    assert str(pool.outputs["nodeConfig"]).count("nvidia.com/gpu") == 1, (
        "the system pool was there before: cluster services have somewhere to run"
    )


@pytest.mark.parametrize("what", CHANGES)
def test_changes_are_in_place_where_gke_allows_it(stack: CloudProgram, what: str) -> None:
    change, operation = CHANGES[what]
    stack.up(program(A100_SPOT))
    planned = stack.preview(program(change(A100_SPOT)))
    assert planned.changes.get(operation) == 1, f"the preview says {dict(planned.changes)}"


def test_compact_machines_move_to_another_zone_as_a_new_pool(stack: CloudProgram) -> None:
    compact = replace(A100_SPOT, zones=("europe-west4-a",), compact_placement=True)
    stack.up(program(compact))
    planned = stack.preview(program(replace(compact, zones=("europe-west4-b",))))
    assert planned.changes.get("replace") == 1, (
        "machines close to each other cannot move one by one, and it is said"
    )


def test_nodes_added_by_hand_are_no_drift(stack: CloudProgram) -> None:
    stack.up(program(CPU))
    with stack.cloud("gcp").changing() as console:
        (pool,) = [one for one in console.of_type(POOL) if one.id.endswith("/cpu")]
        console.put(replace(pool, inputs={**pool.inputs, "initialNodeCount": 3}))
    stack.refresh(program(CPU))
    assert stack.up(program(CPU)).changed == 0, "the provider would replace the pool to have none again"
