"""Pools of GKE on the real engine: made after the system pool, left alone, replaced only for what a pool cannot change."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pulumi import ResourceOptions

from pulumi_holdfast.gcp.control_plane.component import GkeCluster
from pulumi_holdfast.gcp.pools import GkePool, GkePoolArgs
from pulumi_holdfast.ladder.machines import machine_catalogue
from tests.support.builders.gke_components import A100_SPOT, CPU, POOL, PROJECT, REGION, cluster_args
from tests.support.clusters.cloud_program import CloudProgram, operations

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

COMPACT = replace(A100_SPOT, zones=("europe-west4-a",), compact_placement=True)

#: Pool → what it is, how it is changed, and what that costs.
CHANGES: dict[str, tuple[GkePoolArgs, Callable[[GkePoolArgs], GkePoolArgs], str]] = {
    "limit": (A100_SPOT, lambda args: replace(args, pool=replace(args.pool, max_nodes=2)), "update"),
    "zones": (A100_SPOT, lambda args: replace(args, zones=("europe-west4-a",)), "update"),
    "compact": (
        A100_SPOT,
        lambda args: replace(args, zones=("europe-west4-a",), compact_placement=True),
        "replace",
    ),
    # Machines close to each other cannot move one by one.
    "moved": (COMPACT, lambda args: replace(args, zones=("europe-west4-b",)), "replace"),
    "upgrades": (A100_SPOT, lambda args: replace(args, upgrades="blue-green"), "update"),
    "grace": (A100_SPOT, lambda args: replace(args, graceful_shutdown_seconds=120), "update"),
    "gpus": (A100_SPOT, lambda args: replace(args, machine=H100_SPOT.machine), "replace"),
}


@pytest.fixture
def stack(tmp_path: Path) -> CloudProgram:
    return CloudProgram(
        root=tmp_path, packages=("gcp", "kubernetes"), config={"gcp:project": PROJECT, "gcp:region": REGION}
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
            GkePool(f"pool-{args.pool.name}", joined, opts=ResourceOptions(depends_on=[cluster.system_pool]))

    return run


def test_pools_are_created_and_unchanged_by_a_second_up(stack: CloudProgram) -> None:
    pools = (CPU, A100_SPOT, H100_SPOT)
    made = stack.up(program(*pools))
    assert made.changes["create"] > len(pools)
    (spot,) = [one for one in stack.objects(POOL) if one.id.endswith("/a100-spot")]
    assert str(spot.outputs["nodeConfig"]).count("nvidia.com/gpu") == 1
    assert stack.up(program(*pools)).changed == 0
    assert stack.refresh(program(*pools)).changed == 0
    assert stack.up(program(*pools)).changed == 0


def test_changes_are_in_place_where_gke_allows_it(stack: CloudProgram) -> None:
    before = [replace(args, pool=replace(args.pool, name=what)) for what, (args, _, _) in CHANGES.items()]
    after = [change(args) for args, (_, change, _) in zip(before, CHANGES.values(), strict=True)]
    stack.up(program(*before))
    planned = stack.preview(program(*after))
    assert operations(planned) == {
        f"pool-{what}-node-pool": operation for what, (_, _, operation) in CHANGES.items()
    }


def test_nodes_added_by_hand_are_no_drift(stack: CloudProgram) -> None:
    stack.up(program(CPU))
    with stack.cloud("gcp").changing() as console:
        (pool,) = [one for one in console.of_type(POOL) if one.id.endswith("/cpu")]
        console.put(replace(pool, inputs={**pool.inputs, "initialNodeCount": 3}))
    stack.refresh(program(CPU))
    assert stack.up(program(CPU)).changed == 0, "the provider would replace the pool to have none again"
