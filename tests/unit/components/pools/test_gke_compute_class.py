"""A ComputeClass of GKE."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.components.pools.gke import GkeComputeClass, GkeComputeClassArgs
from holdfast.scheduling.labels import CapacityType
from tests.support.builders.configurations import pool
from tests.support.fakes.pulumi_engine import record
from tests.support.inputs import mapping, text, value

SPOT = CapacityType.SPOT
ARGS = GkeComputeClassArgs(
    name="gpus-spot", pools=(pool("a100-spot", capacity=SPOT), pool("h100-spot", capacity=SPOT))
)


def test_it_makes_the_class_and_nothing_else() -> None:
    recording = record(lambda: GkeComputeClass("class-gpus", ARGS))
    made = sorted((resource.type, resource.name) for resource in recording)
    assert made == [
        ("holdfast:index:GkeComputeClass", "class-gpus"),
        ("kubernetes:cloud.google.com/v1:ComputeClass", "class-gpus-compute-class"),
    ], "its pools are there already"
    assert text(recording.one(":ComputeClass"), "metadata", "name") == "gpus-spot", "pods select it by this"


def test_it_holds_its_pools_in_their_order_and_buys_nothing_else() -> None:
    spec = mapping(record(lambda: GkeComputeClass("class-gpus", ARGS)).one(":ComputeClass"), "spec")
    assert spec["priorities"] == [{"nodepools": ["a100-spot"]}, {"nodepools": ["h100-spot"]}], "as listed"
    assert spec["whenUnsatisfiable"] == "DoNotScaleUp", "GKE would buy machines nobody asked for"
    assert value(spec, "nodePoolAutoCreation", "enabled") is False, "nor make pools that are not ours"
    assert value(spec, "activeMigration", "optimizeRulePriority") is False, "a job that trains is not moved"


def test_pools_of_both_capacity_types_are_no_class() -> None:
    with pytest.raises(ValueError, match="different capacity types"):
        replace(ARGS, pools=(*ARGS.pools, pool("a100")))


def test_a_class_without_pools_is_refused() -> None:
    with pytest.raises(ValueError, match="pools is empty"):
        replace(ARGS, pools=())


@pytest.mark.parametrize("name", ["gke-gpus", "autopilot-gpus"])
def test_names_that_gke_keeps_for_itself_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"ComputeClass {name}: GKE keeps names"):
        replace(ARGS, name=name)
