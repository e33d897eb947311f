"""Ladders as objects of the kind FallbackPolicy, and as the controller reads those."""

from __future__ import annotations

from holdfast.components.fallback_policy.ladder import facts_object, ladder_spec
from holdfast.components.fallback_policy.schema import spec_schema
from holdfast.fallback.policy.parser import parse_policy
from holdfast.fallback.policy.policy import NoPolicy, Policy
from holdfast.scheduling.labels import POOL, CapacityType
from holdfast.scheduling.ladder import Ladder
from holdfast.scheduling.taints import GPU, SPOT
from tests.support.json_objects import obj, objects
from tests.support.ladders import CONDUCT, FACTS, SHAPES, TIERS


def read(ladder: Ladder) -> Policy:
    found = parse_policy({"spec": ladder_spec(ladder, {"a100-spot": FACTS})})
    assert not isinstance(found, NoPolicy), f"the controller reads what the program writes: {found}"
    return found


def test_every_setting_is_written_under_a_name_that_the_schema_knows() -> None:
    written = ladder_spec(CONDUCT, shapes=SHAPES)
    schema = obj(spec_schema()["properties"])
    assert written.keys() == schema.keys(), "what the API server does not know it drops"
    assert (
        objects(written["shapes"])[0].keys() == obj(obj(obj(schema["shapes"])["items"])["properties"]).keys()
    ), "nor does it know another of a shape's"


def test_shapes_are_written_out_in_full() -> None:
    assert ladder_spec(CONDUCT, shapes=SHAPES)["shapes"] == [
        {"name": "finetune", "pods": 4, "cpu": "48", "memory": "512Gi", "gpus": 8, "accelerator": "a100"},
        {"name": "fit", "pods": 1, "cpu": "500m", "memory": "1500Mi", "gpus": 0},
    ], "a reader need not know what is meant where nothing is said"


def test_the_controller_makes_nothing_of_shapes() -> None:
    with_shapes = parse_policy({"spec": ladder_spec(CONDUCT, shapes=SHAPES)})
    assert with_shapes == parse_policy({"spec": ladder_spec(CONDUCT)}), "it moves jobs of any shape"


def test_the_controller_reads_what_the_program_writes() -> None:
    policy = read(CONDUCT)
    for name in ("failures", "outage_window", "give_up_after", "application_failures", "return_after"):
        assert getattr(policy, name) == getattr(CONDUCT, name), f"{name} means the same to both"
    for name in ("hold_timeout", "start_timeout", "deadline"):
        assert getattr(policy, name) == getattr(CONDUCT, name), f"{name} means the same to both"
    assert [(tier.pool, tier.max_failures, tier.procurement_timeout) for tier in policy.tiers] == [
        (tier.pool, tier.max_failures, tier.procurement_timeout) for tier in TIERS
    ], "and so do the tiers"


def test_the_controller_reads_the_facts_of_a_pool() -> None:
    first, second, _ = read(CONDUCT).tiers
    assert first.facts.capacity is CapacityType.SPOT, "how it is bought"
    assert dict(first.facts.labels) == {POOL: "a100-spot", "disk": "fast"}, "by what its nodes are known"
    assert first.facts.taints == (SPOT, GPU), "what its pods have to tolerate"
    assert first.facts.max_nodes == 8, "how many there may be"
    assert second.facts.capacity is None, "of a pool that is not known nothing is said"


def test_the_smallest_machine_of_a_pool_speaks_for_all() -> None:
    assert facts_object(FACTS)["machine"] == {"cpu": "96", "memory": "1000000Mi", "gpus": 8}, (
        "whichever is bought, so much of each is there"
    )


def test_what_a_ladder_leaves_open_stays_absent() -> None:
    assert ladder_spec(Ladder(tiers=TIERS)).keys() == {"tiers"}, "defaults are the controller's"
