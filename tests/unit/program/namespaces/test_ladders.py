"""Shapes that are read from a FallbackPolicy."""

from typing import cast

from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.kubernetes.fallback_policy import ladder_spec
from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.ladder.ladder import Ladder, Tier
from pulumi_holdfast.ladder.reachability.shape import LEAST, Placement, Shape
from pulumi_holdfast.program.namespaces.ladders import ladder_of, shapes_of
from pulumi_holdfast.program.resources import StackResource, Value
from tests.support.builders.stack_resources import FALLBACK_POLICY_TYPE, resource
from tests.support.strategies.declared_shapes import declared_shapes

LADDER = Ladder(tiers=(Tier(pool="a100"),))


def policy(spec: Value) -> StackResource:
    return resource(
        FALLBACK_POLICY_TYPE, "ladder", {"metadata": {"name": "ladder", "namespace": "vision"}, "spec": spec}
    )


@given(st.lists(declared_shapes(valid=True), min_size=1, max_size=4))
def test_shapes_of_a_stack_are_read_back_unchanged(declared: list[Shape]) -> None:
    ladder = ladder_of(policy(cast("Value", ladder_spec(LADDER, shapes=declared))))
    assert shapes_of(ladder, []) == tuple(declared)


def test_omitted_fields_of_a_shape_have_the_smallest_values() -> None:
    ladder = ladder_of(policy({"shapes": [{"name": "fit"}]}))
    assert shapes_of(ladder, []) == (Shape(name="fit", requests=LEAST),)


def test_unknown_shape_hides_no_known_one() -> None:
    ladder = ladder_of(policy({"shapes": [{"name": "fit"}, UNKNOWN, {"name": "wide", "pods": UNKNOWN}]}))
    assert [shape.name for shape in ladder.known_shapes] == ["fit"]
    assert shapes_of(ladder, []) is UNKNOWN
    assert ladder_of(policy({"shapes": UNKNOWN})).known_shapes == ()


def test_unknown_part_of_a_shape_makes_the_shape_unknown() -> None:
    for part in (
        {"devices": {"rdma/ib": UNKNOWN}},
        {"selector": {"team": UNKNOWN}},
        {"tolerations": [{"key": UNKNOWN, "operator": "Exists"}]},
        {"architectures": [UNKNOWN]},
        {"samePlacement": UNKNOWN},
    ):
        declared: Value = {"name": "fit", **part}
        assert ladder_of(policy({"shapes": [declared]})).shapes == (UNKNOWN,), f"{part}: the update knows it"


def test_parts_of_a_shape_that_are_no_such_thing_are_left_out() -> None:
    declared: Value = {
        "name": "fit",
        "devices": {"rdma/ib": "many", "ephemeral-storage": "1.5Gi"},
        "tolerations": ["team", {"key": "team", "operator": "Like"}, {"value": "vision"}],
        "architectures": ["sparc", "arm64"],
        "samePlacement": "rack",
    }
    (shape,) = ladder_of(policy({"shapes": [declared]})).known_shapes
    assert shape.requests.devices == {"ephemeral-storage": 1536}
    assert (shape.tolerations, shape.architectures) == ((), ("arm64",))
    assert shape.same_placement not in {*Placement}
