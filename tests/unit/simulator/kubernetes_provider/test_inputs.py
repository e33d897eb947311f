"""Inputs are completed as the plugin completes them, and refused where no API server could take them."""

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


def test_kind_and_api_version_follow_from_the_token() -> None:
    inputs = complete({"metadata": {"name": "a"}})
    assert (inputs["apiVersion"], inputs["kind"]) == ("v1", "ConfigMap"), "the object would have no kind"


def test_an_object_without_a_name_is_named_after_the_resource() -> None:
    metadata = fields(complete({}), "metadata")
    assert re.fullmatch(r"conf-[0-9a-f]{8}", str(metadata["name"])), "the plugin names it in this form"
    assert fields(metadata, "annotations") == {"pulumi.com/autonamed": "true"}, (
        "a replacement could not be made before the old one goes"
    )


def test_a_name_once_given_is_kept() -> None:
    first = complete({"metadata": {"labels": {"a": "b"}}})
    second = complete({"data": {"k": "v"}}, olds=first, naming=Naming(logical_name="conf", seed=b"other"))
    names = [fields(inputs, "metadata")["name"] for inputs in (first, second)]
    assert names[0] == names[1], "every run would replace the object"


def test_the_engine_may_propose_the_name() -> None:
    inputs = complete({}, naming=Naming(logical_name="conf", proposed="team-conf"))
    assert fields(inputs, "metadata")["name"] == "team-conf", "the stack's own naming rule is passed over"


@pytest.mark.parametrize(
    ("news", "token", "naming", "reason"),
    [
        ({}, CONFIG_MAP, Naming(logical_name="conf", disabled=True), "autonaming is disabled"),
        ({"metadata": {"generateName": "a-"}}, CONFIG_MAP, None, "generateName"),
        ({"kind": "ConfigMap"}, "kubernetes:core/v1:ConfigMapPatch", None, "needs the name of the object"),
        (
            {"kind": "ConfigMapList", "items": []},
            "kubernetes:core/v1:ConfigMapList",
            None,
            "cannot be created",
        ),
    ],
)
def test_what_no_server_could_take_is_refused(
    news: Properties, token: str, naming: Naming | None, reason: str
) -> None:
    with pytest.raises(RehearsalError, match=reason):
        complete(news, token=token, naming=naming)


def test_what_the_server_writes_is_left_out() -> None:
    inputs = complete({"metadata": {"name": "a", "uid": "u", "resourceVersion": "1", "managedFields": []}})
    assert inputs["metadata"] == {"name": "a"}, "a manifest taken from a cluster could not be applied"


def test_the_providers_namespace_is_taken_only_where_none_is_named() -> None:
    named = complete({"metadata": {"name": "a", "namespace": "mine"}}, namespace="team")
    unnamed = complete({"metadata": {"name": "a"}}, namespace="team")
    assert fields(named, "metadata")["namespace"] == "mine", "the program's own word counts more"
    assert fields(unnamed, "metadata")["namespace"] == "team", "the provider's default is passed over"


@pytest.mark.parametrize(
    "metadata", [UNKNOWN, {"name": UNKNOWN}, {"name": "a", "annotations": UNKNOWN}, {"annotations": UNKNOWN}]
)
def test_unknown_parts_stay_unknown(metadata: Value) -> None:
    inputs = complete({"metadata": metadata})
    found = inputs["metadata"]
    kept = found is UNKNOWN or UNKNOWN in (
        fields(inputs, "metadata").get("name"),
        fields(inputs, "metadata").get("annotations"),
    )
    assert kept, "a preview would show what up does not make"


def test_a_secret_is_secret_from_the_start() -> None:
    inputs = complete(
        {"metadata": {"name": "a"}, "stringData": {"p": "w"}}, token="kubernetes:core/v1:Secret"
    )
    assert inputs["stringData"] == Secret({"p": "w"}), "the password would be written into the state"


@given(st.binary(min_size=1), st.from_regex(r"[a-z]{1,20}", fullmatch=True))
def test_the_same_seed_gives_the_same_name(seed: bytes, name: str) -> None:
    assert autoname(name, seed) == autoname(name, seed), "a preview would announce another name than up gives"


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


def test_empty_documents_are_no_objects() -> None:
    assert list(objects_in("---\n---\nkind: A\n---\n# nothing\n")) == [{"kind": "A"}], (
        "a comment became an object"
    )


def test_a_list_is_its_items() -> None:
    assert list(objects_in("kind: PodList\nitems: [{kind: Pod}, {kind: Pod}]")) == [{"kind": "Pod"}] * 2, (
        "no API server takes a list"
    )


def test_what_looks_like_a_date_is_text() -> None:
    found = next(objects_in("kind: A\nversion: 2024-01-02\n"))
    assert found["version"] == "2024-01-02", "JSON has no dates"


@pytest.mark.parametrize("text", ["a: [", "just words", "a: 1"])
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(RehearsalError, match="YAML"):
        list(objects_in(text))


def test_names_are_listed_by_kind() -> None:
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
    }, "programs look objects of a release up by these keys"
