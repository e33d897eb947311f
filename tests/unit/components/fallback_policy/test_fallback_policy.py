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
