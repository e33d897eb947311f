"""Malformed stacks: arbitrary values in place of parts of the properties of resources."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hypothesis import strategies as st

from holdfast.policies.program.resources import StackResource, Value
from holdfast.scheduling.json import UNKNOWN
from holdfast.scheduling.labels import CAPACITY_TYPE, POOL, TRAINING
from tests.support.builders.policy_programs import STACKS, recorded

WORDS: tuple[str, ...] = (
    "true",
    "ladder",
    "vision",
    "a100",
    "cpu",
    "In",
    "spot",
    "pool",
    "key",
    "values",
    "nodeSelector",
    "nodepools",
    "Auto",
    "Spot",
    "mode",
    "96Gi",
    "{}",
    "latest",
    "0.0.0.0/0",
    CAPACITY_TYPE,
    POOL,
    TRAINING,
)
scalars: st.SearchStrategy[Value] = st.one_of(
    st.none(), st.booleans(), st.floats(), st.integers(-2, 2), st.sampled_from(WORDS), st.just(UNKNOWN)
)


def nested(inner: st.SearchStrategy[Value]) -> st.SearchStrategy[Value]:
    """Lists and objects of these values."""
    lists: st.SearchStrategy[Value] = st.lists(inner, max_size=3)
    return st.one_of(lists, st.dictionaries(st.sampled_from(WORDS), inner, max_size=3))


values: st.SearchStrategy[Value] = st.recursive(scalars, nested, max_leaves=6)
unknown: st.SearchStrategy[Value] = st.just(UNKNOWN)


@st.composite
def damaged(draw: st.DrawFn, value: Value, by: st.SearchStrategy[Value] = values) -> Value:
    """The value, or a part of it, replaced by another value."""
    if draw(st.integers(0, 4)) == 0:
        return draw(by)
    if isinstance(value, Mapping) and value:
        key = draw(st.sampled_from(sorted(value)))
        return {**value, key: draw(damaged(value[key], by))}
    if isinstance(value, Sequence) and not isinstance(value, str) and value:
        index = draw(st.integers(0, len(value) - 1))
        return [*value[:index], draw(damaged(value[index], by)), *value[index + 1 :]]
    return draw(by)


@st.composite
def damaged_resource(
    draw: st.DrawFn, each: StackResource, by: st.SearchStrategy[Value] = values
) -> StackResource:
    """The resource with a part of its properties replaced."""
    if not each.props:
        return each
    key = draw(st.sampled_from(sorted(each.props)))
    return replace(each, props={**each.props, key: draw(damaged(each.props[key], by))})


@st.composite
def damaged_programs(draw: st.DrawFn) -> list[StackResource]:
    """One of the repository's stacks with some resources malformed: values, all properties, or the API version."""
    stack = list(recorded(draw(st.sampled_from(STACKS))))
    for index in draw(st.sets(st.integers(0, len(stack) - 1), min_size=1, max_size=4)):
        kind = draw(st.sampled_from(("value", "value", "value", "nothing", "version")))
        each = stack[index]
        if kind == "value":
            stack[index] = draw(damaged_resource(each))
        elif kind == "nothing":
            stack[index] = replace(each, props={})
        else:
            group, _, rest = each.type.rpartition("/")
            stack[index] = replace(
                each, type=f"{group}/v9beta9:{rest.rpartition(':')[2]}" if group else each.type
            )
    return stack


@st.composite
def hidden(draw: st.DrawFn, stack: Sequence[StackResource]) -> list[StackResource]:
    """The stack with some of its values unknown."""
    found = list(stack)
    for index in draw(st.sets(st.integers(0, len(found) - 1), min_size=1, max_size=5)):
        found[index] = draw(damaged_resource(found[index], unknown))
    return found
