"""A pool of GKE: one node pool that the cluster's own autoscaler keeps."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from holdfast.components.pools.gke import GkePool, GkePoolArgs, upgrade_settings
from holdfast.scheduling.labels import CapacityType
from tests.support.fakes.pulumi_engine import Recording, record
from tests.support.gke_pools import A100_SPOT, CPU, MACHINES
from tests.support.inputs import mapping, value

if TYPE_CHECKING:
    from tests.support.fakes.pulumi_engine import Recorded


def recorded(args: GkePoolArgs = A100_SPOT, *, preview: bool = False) -> Recording:
    return record(lambda: GkePool("pool-it", args), preview=preview)


def node_pool(args: GkePoolArgs = A100_SPOT) -> Recorded:
    return recorded(args).one(":NodePool")


@pytest.mark.parametrize("preview", [False, True])
def test_it_makes_one_node_pool(preview: bool) -> None:
    made = sorted((resource.type, resource.name) for resource in recorded(preview=preview))
    assert made == [
        ("gcp:container/nodePool:NodePool", "pool-it-node-pool"),
        ("holdfast:index:GkePool", "pool-it"),
    ], "a pool is one node pool"


def test_it_has_the_users_name_for_the_pool() -> None:
    assert value(node_pool(), "name") == "a100-spot", "it is what jobs select and what GKE's console shows"


@pytest.mark.parametrize(("args", "policy"), [(A100_SPOT, "ANY"), (CPU, "BALANCED")])
def test_it_is_scaled_as_a_whole_by_where_its_capacity_is(args: GkePoolArgs, policy: str) -> None:
    assert mapping(node_pool(args), "autoscaling") == {
        "totalMinNodeCount": 0,
        "totalMaxNodeCount": args.pool.max_nodes,
        "locationPolicy": policy,
    }, "a limit for each zone would be a multiple of what was meant; spot is taken where there is some"


def test_how_many_nodes_there_are_is_the_autoscalers_business() -> None:
    made = node_pool()
    assert value(made, "initialNodeCount") == 0, "a pool that nobody selects costs nothing"
    assert made.ignore_changes == {"initialNodeCount"}, (
        "GKE changes it, and the provider would replace the pool"
    )
    assert value(made, "ignoreNodeCountChanges") is True, "a refresh while jobs run shows no difference"
    assert value(made, "nodeCount") is None, "a number of our own would fight the autoscaler's"


def test_its_nodes_have_no_public_address() -> None:
    assert value(node_pool(), "networkConfig", "enablePrivateNodes") is True, (
        "whatever the cluster's default is"
    )


def test_machines_are_placed_close_to_each_other_only_where_it_is_asked_for() -> None:
    assert value(node_pool(), "placementPolicy") is None, "it makes machines harder to get"
    compact = node_pool(replace(A100_SPOT, zones=("europe-west4-a",), compact_placement=True))
    assert value(compact, "placementPolicy", "type") == "COMPACT", "as it was asked for"


def test_scarce_machines_are_upgraded_in_place() -> None:
    assert upgrade_settings("surge") == {"strategy": "SURGE", "max_surge": 0, "max_unavailable": 1}, (
        "one more of them is not to be had"
    )


def test_a_second_set_of_nodes_takes_over_all_at_once() -> None:
    settings = upgrade_settings("blue-green")
    assert settings.get("strategy") == "BLUE_GREEN", "as it was asked for"
    blue_green = mapping(
        node_pool(replace(CPU, upgrades="blue-green")), "upgradeSettings", "blueGreenSettings"
    )
    assert value(blue_green, "standardRolloutPolicy", "batchPercentage") == 1.0, (
        "batch after batch would restart a job once for each"
    )
    assert blue_green["nodePoolSoakDuration"] == "0s", "empty machines with GPUs would be paid for"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"zones": ()}, "pool a100-spot: zones is empty"),
        ({"compact_placement": True}, "compact placement needs exactly one zone"),
        (
            {
                "compact_placement": True,
                "zones": ("europe-west4-a",),
                "machine": replace(MACHINES["n1-standard-8"], gpus=1, accelerator="nvidia-tesla-t4"),
            },
            "n1-standard-8 does not support compact placement",
        ),
        ({"machine": MACHINES["n2-standard-8"]}, "n2-standard-8 has 0 GPUs, which contradicts the pool"),
        (
            {"pool": replace(A100_SPOT.pool, name="a" * 41)},
            "node pool's name has at most 40 characters",
        ),
    ],
)
def test_what_gke_would_not_make_is_refused(change: dict[str, object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        replace(A100_SPOT, **change)  # pyright: ignore[reportArgumentType] - one change of any field


def test_only_spot_is_bought_as_spot() -> None:
    for args in (A100_SPOT, CPU):
        is_spot = args.pool.capacity is CapacityType.SPOT
        assert value(node_pool(args), "nodeConfig", "spot") is is_spot, f"{args.pool.name} is what it says"
