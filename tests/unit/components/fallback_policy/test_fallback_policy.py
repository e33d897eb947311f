"""The FallbackPolicy's definition, and ladders as objects of that kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from holdfast.components.fallback_policy.definition import FallbackPolicyDefinition, definition_spec
from holdfast.components.fallback_policy.ladder import ladder_spec
from holdfast.scheduling.ladder import UNLIMITED, Ladder, Tier
from tests.support.fakes.pulumi_engine import record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.scheduling.json import Json, JsonValue

from dataclasses import replace

from holdfast.components.fallback_policy.ladder import facts_object, room_object
from holdfast.components.fallback_policy.schema import spec_schema
from holdfast.components.fallback_policy.tier_schema import facts_schema
from holdfast.fallback.policy.parser import parse_policy
from holdfast.fallback.policy.policy import NoPolicy, Policy
from holdfast.scheduling.labels import POOL, CapacityType
from holdfast.scheduling.pools import summarize_pool
from holdfast.scheduling.reachability.machine_capacity import MOST_CAPACITIES, Provisioner, machine_capacity
from holdfast.scheduling.taints import GPU, SPOT
from tests.support.json_objects import obj, objects
from tests.support.ladders import A100_SPOT, CONDUCT, FACTS, MACHINES, SHAPES, TIERS


def schemas(value: JsonValue) -> Iterator[Json]:
    """Every schema within a schema, itself included."""
    if isinstance(value, Mapping):
        if isinstance(value.get("type"), str):
            yield value
        for each in value.values():
            yield from schemas(each)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for each in value:
            yield from schemas(each)


def test_the_definition_arrives_at_the_engine_as_it_was_rendered() -> None:
    definition = record(lambda: FallbackPolicyDefinition("fallback-policy")).one(":CustomResourceDefinition")
    assert definition.inputs["metadata"] == {"name": "fallbackpolicies.holdfast.dev"}, (
        "plural and group, as the API asks"
    )
    assert definition.inputs["spec"] == definition_spec(), (
        "the SDK must pass the API's own field names through"
    )


@pytest.mark.parametrize(("kind", "bound"), [("array", "maxItems"), ("string", "maxLength")])
def test_everything_that_can_grow_is_bounded(kind: str, bound: str) -> None:
    found = [
        schema
        for schema in schemas(definition_spec()["versions"])
        if schema["type"] == kind and not {"name", "enum"} & schema.keys()
    ]
    assert found, f"the definition has a schema of type {kind}"
    for schema in found:
        assert bound in schema, f"without {bound} the cost of a rule over {schema} has no bound"


def test_a_ladder_is_written_with_what_it_says_and_nothing_else() -> None:
    ladder = Ladder(
        tiers=(
            Tier(pool="a100-spot", max_failures=5, procurement_timeout=timedelta(minutes=90)),
            Tier(pool="h100-spot", procurement_timeout=timedelta(seconds=45)),
            Tier(pool="a100"),
        )
    )
    assert ladder_spec(ladder) == {
        "tiers": [
            {"pool": "a100-spot", "maxFailures": 5, "procurementTimeout": "1h30m"},
            {"pool": "h100-spot", "procurementTimeout": "45s"},
            {"pool": "a100"},
        ]
    }, "what a tier leaves open must stay absent, since absent means without end"


def test_staying_for_ever_is_written_aloud() -> None:
    ladder = Ladder(tiers=(Tier(pool="a100-spot", max_failures=UNLIMITED),))
    assert ladder_spec(ladder) == {"tiers": [{"pool": "a100-spot", "maxFailures": -1}]}, (
        "-1 is a statement of the author and not the same as silence"
    )


def test_a_limit_of_no_failures_is_not_taken_for_none() -> None:
    ladder = Ladder(tiers=(Tier(pool="a100-spot", max_failures=0), Tier(pool="a100")))
    assert ladder_spec(ladder)["tiers"] == [{"pool": "a100-spot", "maxFailures": 0}, {"pool": "a100"}], (
        "0 leaves the tier at its first failure; absent never does"
    )


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


def test_what_pods_get_of_machines_is_written_for_the_api_server() -> None:
    known = summarize_pool(A100_SPOT, MACHINES, A100_SPOT.taints, provisioner=Provisioner.LOCAL)
    assert facts_object(known)["machines"] == [
        {"name": "large", "cpu": "95900m", "memory": "1179638Mi", "gpus": 8, "pods": 110},
        {"name": "larger", "cpu": "127900m", "memory": "999990Mi", "gpus": 8, "pods": 110},
    ], "without what is reserved there; neither has all that the other has"


def test_of_machines_that_are_not_known_nothing_is_written() -> None:
    assert "machines" not in facts_object(FACTS), (
        "who makes its nodes, and with that what is left, is not known"
    )


def test_the_schema_takes_as_many_machines_as_are_written_at_most() -> None:
    machines = obj(obj(facts_schema()["properties"])["machines"])
    assert machines["maxItems"] == MOST_CAPACITIES, (
        "an unbounded list would be beyond what an expression may cost"
    )
    room = room_object(replace(machine_capacity(MACHINES[0], Provisioner.LOCAL), accelerator="a100"))
    assert room.keys() == obj(obj(machines["items"])["properties"]).keys(), "what it does not know it drops"
