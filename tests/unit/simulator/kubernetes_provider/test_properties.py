"""Objects pass between the engine and the API server unharmed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.scheduling.json import JsonValue
from holdfast.simulator.kubernetes_provider.properties import mark_secrets, to_object, to_properties
from holdfast.simulator.pulumi.values import UNKNOWN, Properties, Secret

_json = st.recursive(
    st.one_of(st.booleans(), st.integers(), st.text(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=3), _json, max_size=3))
def test_an_object_comes_back_as_it_went(obj: dict[str, JsonValue]) -> None:
    assert to_object(to_properties(obj)) == obj, "an unchanged object would show a difference"


def test_fields_with_dashes_have_the_names_the_sdks_know() -> None:
    properties: Properties = {"schema": {"x_kubernetes_list_map_keys": ["name"]}}
    obj = to_object(properties)
    assert obj == {"schema": {"x-kubernetes-list-map-keys": ["name"]}}, (
        "the CRD's schema would lose the field"
    )
    assert to_properties(obj) == properties, "programs could not read it back"


def test_nulls_are_left_out() -> None:
    assert to_object({"spec": {"a": None, "b": [{"c": None}]}}) == {"spec": {"b": [{}]}}, (
        "a server that applies a null takes a field the program did not set"
    )


def test_an_unknown_part_has_no_object() -> None:
    with pytest.raises(ValueError, match="UNKNOWN"):
        to_object({"spec": UNKNOWN})


def test_what_a_secret_holds_is_secret_always() -> None:
    marked = mark_secrets({"kind": "Secret", "data": {"a": "b"}, "type": "Opaque"}, {})
    assert marked["data"] == Secret({"a": "b"}), "a password would stand in the state in plain text"
    assert marked["type"] == "Opaque", "its type is nobody's secret"


def test_what_went_in_as_a_secret_comes_back_as_one() -> None:
    known: Properties = {"spec": {"token": Secret("t"), "args": ["a", Secret("b")], "size": 1}}
    marked = mark_secrets({"spec": {"token": "t", "args": ["a", "b"], "size": 1}}, known)
    assert marked == {"spec": {"token": Secret("t"), "args": Secret(["a", "b"]), "size": 1}}, (
        "the API server hands secrets back in plain text"
    )
