from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from pulumi_holdfast.kubernetes.fallback_policy import (
    definition_spec,
    facts_object,
    fallback_policy_definition,
    ladder_spec,
    machine_capacity_object,
)
from pulumi_holdfast.ladder.fallback_policy import FACTS as FACTS_FIELDS
from pulumi_holdfast.ladder.fallback_policy import SPEC, parse_policy
from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.ladder.labels import POOL, CapacityType
from pulumi_holdfast.ladder.ladder import NEVER, UNLIMITED, Ladder, NoPolicy, Policy, Tier
from pulumi_holdfast.ladder.reachability.machine_capacity import (
    MOST_CAPACITIES,
    Provisioner,
    machine_capacity,
)
from pulumi_holdfast.ladder.reachability.pool_summary import summarize_pool
from pulumi_holdfast.ladder.reachability.shape import Placement
from pulumi_holdfast.ladder.taints import GPU, SPOT, Toleration
from tests.support.fakes.pulumi_engine import record
from tests.support.json_objects import obj, objects
from tests.support.ladders import A100_SPOT, FACTS, MACHINES, SETTINGS, SHAPES, TIERS


def schemas(value: JsonValue) -> Iterator[Json]:
    """All schemas in a schema, including itself; an amount that may be a number or a text counts as text."""
    if isinstance(value, Mapping):
        if value.get("x-kubernetes-int-or-string"):
            yield {**value, "type": "string"}
            return
        if isinstance(value.get("type"), str):
            yield value
        for each in value.values():
            yield from schemas(each)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for each in value:
            yield from schemas(each)


def test_the_definition_is_registered_as_rendered() -> None:
    definition = record(lambda: fallback_policy_definition("fallback-policy")).one(
        ":CustomResourceDefinition"
    )
    assert definition.inputs["metadata"] == {"name": "fallbackpolicies.holdfast.dev"}
    assert definition.inputs["spec"] == definition_spec(), "the SDK must keep the API's field names"


@pytest.mark.parametrize(("kind", "bound"), [("array", "maxItems"), ("string", "maxLength")])
def test_everything_in_the_schema_is_bounded(kind: str, bound: str) -> None:
    found = [
        schema
        for schema in schemas(definition_spec()["versions"])
        if schema["type"] == kind and not {"name", "enum"} & schema.keys()
    ]
    assert found, f"the definition has a schema of type {kind}"
    for schema in found:
        assert bound in schema, f"without {bound} the cost of a rule over {schema} is unbounded"


def test_a_ladder_contains_only_what_its_tiers_set() -> None:
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
    }
    unlimited = Ladder(tiers=(Tier(pool="a100-spot", max_failures=UNLIMITED),))
    assert ladder_spec(unlimited) == {"tiers": [{"pool": "a100-spot", "maxFailures": -1}]}
    none = Ladder(tiers=(Tier(pool="a100-spot", max_failures=0), Tier(pool="a100")))
    assert ladder_spec(none)["tiers"] == [{"pool": "a100-spot", "maxFailures": 0}, {"pool": "a100"}]
    assert ladder_spec(Ladder(tiers=TIERS)).keys() == {"tiers"}


def read(ladder: Ladder) -> Policy:
    found = parse_policy({"spec": ladder_spec(ladder, {"a100-spot": FACTS})})
    assert not isinstance(found, NoPolicy)
    return found


def test_a_ladder_whose_jobs_never_return_is_parsed_as_one() -> None:
    one_way = replace(SETTINGS, return_after=NEVER, hold_timeout=None)
    assert ladder_spec(one_way)["returnAfter"] == "never"
    assert read(one_way).return_after is None


def test_every_setting_has_a_name_in_the_schema() -> None:
    shape = replace(
        SHAPES[0],
        requests=replace(SHAPES[0].requests, devices={"example.com/nic": 1}),
        selector={"disk": "fast"},
        tolerations=(Toleration(key="dedicated"),),
        architectures=("amd64",),
        same_placement=Placement.ZONE,
    )
    written = ladder_spec(SETTINGS, shapes=(shape,))
    schema = obj(SPEC.schema["properties"])
    assert written.keys() == schema.keys(), "the API server drops unknown fields"
    assert (
        objects(written["shapes"])[0].keys() == obj(obj(obj(schema["shapes"])["items"])["properties"]).keys()
    )
    machines = obj(obj(FACTS_FIELDS.schema["properties"])["machines"])
    assert machines["maxItems"] == MOST_CAPACITIES, "an unbounded list would exceed the cost limit of rules"
    room = machine_capacity_object(
        replace(machine_capacity(MACHINES[0], Provisioner.LOCAL), accelerator="a100")
    )
    assert room.keys() == obj(obj(machines["items"])["properties"]).keys()


def test_shapes_are_written_with_their_defaults_and_ignored_by_the_controller() -> None:
    written = ladder_spec(SETTINGS, shapes=SHAPES)
    assert written["shapes"] == [
        {
            "name": "finetune",
            "pods": 4,
            "cpu": "48",
            "memory": "512Gi",
            "gpus": 8,
            "efa": 0,
            "accelerator": "a100",
        },
        {"name": "fit", "pods": 1, "cpu": "500m", "memory": "1500Mi", "gpus": 0, "efa": 0},
    ]
    with_shapes = parse_policy({"spec": written})
    assert with_shapes == parse_policy({"spec": ladder_spec(SETTINGS)})


def test_the_controller_parses_all_settings_and_facts() -> None:
    policy = read(SETTINGS)
    for name in (
        "failures",
        "outage_window",
        "give_up_after",
        "application_failures",
        "failure_window",
        "return_after",
        "hold_timeout",
        "start_timeout",
        "deadline",
        "restart_cost",
    ):
        assert getattr(policy, name) == getattr(SETTINGS, name), f"{name} has the same meaning for both"
    assert [(tier.pool, tier.max_failures, tier.procurement_timeout) for tier in policy.tiers] == [
        (tier.pool, tier.max_failures, tier.procurement_timeout) for tier in TIERS
    ]
    first, second, _ = policy.tiers
    assert first.facts.capacity is CapacityType.SPOT
    assert dict(first.facts.labels) == {POOL: "a100-spot", "disk": "fast"}
    assert first.facts.taints == (SPOT, GPU)
    assert first.facts.max_nodes == 8
    assert second.facts.capacity is None


def test_machines_are_written_without_reservations_and_left_out_if_unknown() -> None:
    known = summarize_pool(A100_SPOT, MACHINES, A100_SPOT.taints, provisioner=Provisioner.LOCAL)
    common = {"gpus": 8, "efa": 0, "pods": 110, "devices": {"ephemeral-storage": "100Gi"}, "allDevices": True}
    assert facts_object(known)["machines"] == [
        {"name": "large", "cpu": "95900m", "memory": "1179638Mi", **common},
        {"name": "larger", "cpu": "127900m", "memory": "999990Mi", **common},
    ]
    of_gke = summarize_pool(A100_SPOT, MACHINES, A100_SPOT.taints, provisioner=Provisioner.GKE)
    for machine in objects(facts_object(of_gke)["machines"]):
        assert "allDevices" not in machine
        assert obj(machine["devices"])["google.com/tpu"] == 0
    assert "machines" not in facts_object(FACTS)
    assert facts_object(FACTS)["machine"] == {"cpu": "96", "memory": "1000000Mi", "gpus": 8}
