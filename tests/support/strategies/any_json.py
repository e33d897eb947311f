"""Arbitrary JSON documents."""

from hypothesis import strategies as st

from pulumi_holdfast.ladder.json import JsonValue


def any_json(*keys: str) -> st.SearchStrategy[JsonValue]:
    """Any JSON whose mappings have some of these keys."""
    return st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(keys), inner, max_size=5),
        max_leaves=14,
    )
