"""Inputs are completed like the plugin completes them; property values and objects convert without loss."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.scheduling.json import JsonValue
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_provider.inputs import (
    autoname,
    complete_inputs,
    fields,
    mark_secrets,
    objects_in,
    resource_names,
    to_object,
    to_properties,
)
from holdfast.simulator.kubernetes_provider.operation import Naming
from holdfast.simulator.pulumi.values import UNKNOWN, Properties, Secret, Value

CONFIG_MAP = "kubernetes:core/v1:ConfigMap"


def complete(
    news: Properties,
    *,
    token: str = CONFIG_MAP,
    olds: Properties | None = None,
    naming: Naming | None = None,
    namespace: str | None = None,
) -> dict[str, Value]:
    return complete_inputs(
        token,
        news,
        olds or {},
        naming=naming or Naming(logical_name="conf", seed=b"seed"),
        default_namespace=lambda: namespace,
    )


def test_token_determines_kind_and_api_version() -> None:
    inputs = complete({"metadata": {"name": "a"}})
    assert (inputs["apiVersion"], inputs["kind"]) == ("v1", "ConfigMap"), "the object would have no kind"


def test_object_without_a_name_is_named_after_the_resource() -> None:
    metadata = fields(complete({}), "metadata")
    assert re.fullmatch(r"conf-[0-9a-f]{8}", str(metadata["name"])), "the form of the plugin"
    assert fields(metadata, "annotations") == {"pulumi.com/autonamed": "true"}, (
        "the replacement can then be created before the deletion"
    )


def test_generated_name_is_kept() -> None:
    first = complete({"metadata": {"labels": {"a": "b"}}})
    second = complete({"data": {"k": "v"}}, olds=first, naming=Naming(logical_name="conf", seed=b"other"))
    names = [fields(inputs, "metadata")["name"] for inputs in (first, second)]
    assert names[0] == names[1], "every run would replace the object"


def test_name_proposed_by_the_engine_is_used() -> None:
    inputs = complete({}, naming=Naming(logical_name="conf", proposed="team-conf"))
    assert fields(inputs, "metadata")["name"] == "team-conf", "the stack can configure autonaming"


@pytest.mark.parametrize(
    ("news", "token", "naming", "reason"),
    [
        ({}, CONFIG_MAP, Naming(logical_name="conf", disabled=True), "autonaming is disabled"),
        ({"metadata": {"generateName": "a-"}}, CONFIG_MAP, None, "generateName"),
        ({"kind": "ConfigMap"}, "kubernetes:core/v1:ConfigMapPatch", None, "the name of the object to patch"),
        (
            {"kind": "ConfigMapList", "items": []},
            "kubernetes:core/v1:ConfigMapList",
            None,
            "cannot be created",
        ),
    ],
)
def test_invalid_inputs_are_refused(news: Properties, token: str, naming: Naming | None, reason: str) -> None:
    with pytest.raises(RehearsalError, match=reason):
        complete(news, token=token, naming=naming)


def test_read_only_metadata_is_removed() -> None:
    inputs = complete({"metadata": {"name": "a", "uid": "u", "resourceVersion": "1", "managedFields": []}})
    assert inputs["metadata"] == {"name": "a"}, "a manifest exported from a cluster must apply"


def test_default_namespace_is_used_only_without_a_namespace() -> None:
    named = complete({"metadata": {"name": "a", "namespace": "mine"}}, namespace="team")
    unnamed = complete({"metadata": {"name": "a"}}, namespace="team")
    assert fields(named, "metadata")["namespace"] == "mine", "the namespace of the program takes precedence"
    assert fields(unnamed, "metadata")["namespace"] == "team", "the default of the provider"


@pytest.mark.parametrize(
    "metadata", [UNKNOWN, {"name": UNKNOWN}, {"name": "a", "annotations": UNKNOWN}, {"annotations": UNKNOWN}]
)
def test_unknown_values_stay_unknown(metadata: Value) -> None:
    inputs = complete({"metadata": metadata})
    found = inputs["metadata"]
    kept = found is UNKNOWN or UNKNOWN in (
        fields(inputs, "metadata").get("name"),
        fields(inputs, "metadata").get("annotations"),
    )
    assert kept, "a preview must not show wrong values"


def test_data_of_a_secret_is_marked_secret() -> None:
    inputs = complete(
        {"metadata": {"name": "a"}, "stringData": {"p": "w"}}, token="kubernetes:core/v1:Secret"
    )
    assert inputs["stringData"] == Secret({"p": "w"}), "the state would contain the password"


@given(st.binary(min_size=1), st.from_regex(r"[a-z]{1,20}", fullmatch=True))
def test_same_seed_gives_the_same_name(seed: bytes, name: str) -> None:
    assert autoname(name, seed) == autoname(name, seed), "preview and update must agree"


_json = st.recursive(
    st.one_of(st.booleans(), st.integers(), st.text(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=3), _json, max_size=3))
def test_object_survives_the_conversion(obj: dict[str, JsonValue]) -> None:
    assert to_object(to_properties(obj)) == obj, "an unchanged object would show a difference"


def test_fields_with_dashes_have_the_names_of_the_sdks() -> None:
    properties: Properties = {"schema": {"x_kubernetes_list_map_keys": ["name"]}}
    obj = to_object(properties)
    assert obj == {"schema": {"x-kubernetes-list-map-keys": ["name"]}}, "the CRD schema would lose the field"
    assert to_properties(obj) == properties, "programs could not read it back"


def test_nulls_are_removed() -> None:
    assert to_object({"spec": {"a": None, "b": [{"c": None}]}}) == {"spec": {"b": [{}]}}, (
        "an applied null would own a field that the program does not set"
    )


def test_unknown_value_cannot_be_converted() -> None:
    with pytest.raises(ValueError, match="UNKNOWN"):
        to_object({"spec": UNKNOWN})


def test_data_of_a_live_secret_is_marked_secret() -> None:
    marked = mark_secrets({"kind": "Secret", "data": {"a": "b"}, "type": "Opaque"}, {})
    assert marked["data"] == Secret({"a": "b"}), "the state would contain a plain password"
    assert marked["type"] == "Opaque", "its type is not secret"


def test_secret_inputs_are_secret_outputs() -> None:
    known: Properties = {"spec": {"token": Secret("t"), "args": ["a", Secret("b")], "size": 1}}
    marked = mark_secrets({"spec": {"token": "t", "args": ["a", "b"], "size": 1}}, known)
    assert marked == {"spec": {"token": Secret("t"), "args": Secret(["a", "b"]), "size": 1}}, (
        "the API server returns plain values"
    )


def test_empty_documents_are_skipped() -> None:
    assert list(objects_in("---\n---\nkind: A\n---\n# nothing\n")) == [{"kind": "A"}], (
        "a comment is no object"
    )


def test_list_is_split_into_its_items() -> None:
    assert list(objects_in("kind: PodList\nitems: [{kind: Pod}, {kind: Pod}]")) == [{"kind": "Pod"}] * 2, (
        "the API server accepts no list"
    )


def test_date_is_read_as_text() -> None:
    found = next(objects_in("kind: A\nversion: 2024-01-02\n"))
    assert found["version"] == "2024-01-02", "JSON has no dates"


@pytest.mark.parametrize("text", ["a: [", "just words", "a: 1"])
def test_text_without_objects_is_refused(text: str) -> None:
    with pytest.raises(RehearsalError, match="YAML"):
        list(objects_in(text))


def test_resource_names_are_grouped_by_kind() -> None:
    manifest = """
kind: Deployment
apiVersion: apps/v1
metadata: {name: b, namespace: n}
---
kind: Deployment
apiVersion: apps/v1
metadata: {name: a, namespace: n}
---
kind: Namespace
apiVersion: v1
metadata: {name: n}
"""
    assert resource_names(manifest) == {
        "Deployment.apps/apps/v1": ["n/a", "n/b"],
        "Namespace/v1": ["n"],
    }, "programs find objects of a release by these keys"
