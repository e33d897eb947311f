"""The shapes that the policies judge are those that a stack declares."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from hypothesis import given
from hypothesis import strategies as st

from holdfast.components.fallback_policy.ladder import ladder_spec
from holdfast.policies.known_values import UNKNOWN
from holdfast.policies.ladders import ladder_of
from holdfast.policies.shapes import declared_shapes, shapes_of
from holdfast.scheduling.ladder import Ladder, Tier
from holdfast.scheduling.quantities import MOST_CPU_MILLIS, MOST_MEMORY_MIB
from holdfast.scheduling.reachability.shape import LEAST, MOST_GPUS, WIDEST_GANG, Resources, Shape
from tests.support.stack_resources import FALLBACK_POLICY_TYPE, resource

if TYPE_CHECKING:
    from holdfast.policies.findings import StackResource
    from holdfast.policies.known_values import Value

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
def test_a_shape_means_to_the_policies_what_it_meant_in_the_stack(declared: list[Shape]) -> None:
    ladder = ladder_of(policy(cast("Value", ladder_spec(LADDER, shapes=declared))))
    assert shapes_of(ladder, []) == tuple(declared), "nothing is lost or changed on the way"


def test_what_a_shape_leaves_out_is_as_small_as_can_be() -> None:
    ladder = ladder_of(policy({"shapes": [{"name": "fit"}]}))
    assert shapes_of(ladder, []) == (Shape(name="fit", requests=LEAST),), "as the definition says"


def test_one_shape_that_is_not_known_yet_hides_no_other() -> None:
    known = declared_shapes(policy({"shapes": [{"name": "fit"}, UNKNOWN, {"name": "wide", "pods": UNKNOWN}]}))
    assert [shape.name for shape in known] == ["fit"], "what is known is judged"
    assert declared_shapes(policy({"shapes": UNKNOWN})) == (), "and what is not is not"
