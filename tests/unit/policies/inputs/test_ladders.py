"""Shapes that are read from a FallbackPolicy."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hypothesis import given
from hypothesis import strategies as st

from holdfast.components.fallback_policy.ladder import ladder_spec
from holdfast.policies.inputs.ladders import ladder_of, shapes_of
from holdfast.scheduling.json import UNKNOWN
from holdfast.scheduling.ladder import Ladder, Tier
from holdfast.scheduling.quantities import MOST_CPU_MILLIS, MOST_MEMORY_MIB
from holdfast.scheduling.reachability.shape import LEAST, MOST_GPUS, WIDEST_GANG, Resources, Shape
from tests.support.builders.stack_resources import FALLBACK_POLICY_TYPE, resource

if TYPE_CHECKING:
    from holdfast.policies.resources import StackResource, Value

LADDER = Ladder(tiers=(Tier(pool="a100"),))

shapes = st.builds(
    Shape,
    name=st.from_regex(r"[a-z]{1,8}", fullmatch=True),
    pods=st.integers(1, WIDEST_GANG),
    requests=st.builds(
        Resources,
        cpu_millis=st.integers(1, MOST_CPU_MILLIS),
        memory_mib=st.integers(1, MOST_MEMORY_MIB),
        gpus=st.integers(0, MOST_GPUS),
    ),
    accelerator=st.none() | st.just("a100"),
)


def policy(spec: Value) -> StackResource:
    return resource(
        FALLBACK_POLICY_TYPE, "ladder", {"metadata": {"name": "ladder", "namespace": "vision"}, "spec": spec}
    )


@given(st.lists(shapes, min_size=1, max_size=4))
def test_shapes_of_a_stack_are_read_back_unchanged(declared: list[Shape]) -> None:
    ladder = ladder_of(policy(cast("Value", ladder_spec(LADDER, shapes=declared))))
    assert shapes_of(ladder, []) == tuple(declared), "the round trip loses nothing"


def test_omitted_fields_of_a_shape_have_the_smallest_values() -> None:
    ladder = ladder_of(policy({"shapes": [{"name": "fit"}]}))
    assert shapes_of(ladder, []) == (Shape(name="fit", requests=LEAST),), "as in the CRD"


def test_unknown_shape_hides_no_known_one() -> None:
    ladder = ladder_of(policy({"shapes": [{"name": "fit"}, UNKNOWN, {"name": "wide", "pods": UNKNOWN}]}))
    assert [shape.name for shape in ladder.known_shapes] == ["fit"], "the known shape is checked"
    assert shapes_of(ladder, []) is UNKNOWN, "a proof needs all of them"
    assert ladder_of(policy({"shapes": UNKNOWN})).known_shapes == (), "none is known"
