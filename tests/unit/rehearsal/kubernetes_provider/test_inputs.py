"""Inputs are completed like the plugin completes them; property values and objects convert without loss."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.ladder.json import JsonValue
from pulumi_holdfast.rehearsal.engine.values import UNKNOWN, Properties, Secret, Value
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.kubernetes_provider.inputs import (
    autoname,
    complete_inputs,
    fields,
    mark_secrets,
    objects_in,
    resource_names,
    to_object,
    to_properties,
)
from pulumi_holdfast.rehearsal.kubernetes_provider.operation import Naming

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


def test_kind_metadata_and_namespace_are_completed() -> None:
    inputs = complete({"metadata": {"name": "a"}})
    assert (inputs["apiVersion"], inputs["kind"]) == ("v1", "ConfigMap"), "the object would have no kind"
    inputs = complete({"metadata": {"name": "a", "uid": "u", "resourceVersion": "1", "managedFields": []}})
    assert inputs["metadata"] == {"name": "a"}, "a manifest exported from a cluster must apply"
    named = complete({"metadata": {"name": "a", "namespace": "mine"}}, namespace="team")
    unnamed = complete({"metadata": {"name": "a"}}, namespace="team")
    assert fields(named, "metadata")["namespace"] == "mine", "the namespace of the program takes precedence"
    assert fields(unnamed, "metadata")["namespace"] == "team", "the default of the provider"


def test_object_without_a_name_gets_one_that_is_kept() -> None:
    metadata = fields(complete({}), "metadata")
    assert re.fullmatch(r"conf-[0-9a-f]{8}", str(metadata["name"])), "the form of the plugin"
    assert fields(metadata, "annotations") == {"pulumi.com/autonamed": "true"}, "it can be replaced"
    first = complete({"metadata": {"labels": {"a": "b"}}})
    second = complete({"data": {"k": "v"}}, olds=first, naming=Naming(logical_name="conf", seed=b"other"))
    names = [fields(inputs, "metadata")["name"] for inputs in (first, second)]
    assert names[0] == names[1], "every run would replace the object"
    inputs = complete({}, naming=Naming(logical_name="conf", proposed="team-conf"))
    assert fields(inputs, "metadata")["name"] == "team-conf", "the stack can configure autonaming"


@pytest.mark.parametrize(
    ("news", "token", "reason"),
    [
        ({"metadata": {"generateName": "a-"}}, CONFIG_MAP, "generateName"),
        ({"kind": "ConfigMap"}, f"{CONFIG_MAP}Patch", "the name of the object to patch"),
        ({"kind": "ConfigMapList", "items": []}, f"{CONFIG_MAP}List", "cannot be created"),
    ],
)
def test_invalid_inputs_are_refused(news: Properties, token: str, reason: str) -> None:
    with pytest.raises(RehearsalError, match=reason):
        complete(news, token=token)
    with pytest.raises(RehearsalError, match="autonaming is disabled"):
        complete({}, naming=Naming(logical_name="conf", disabled=True))


@pytest.mark.parametrize(
    "metadata", [UNKNOWN, {"name": UNKNOWN}, {"name": "a", "annotations": UNKNOWN}, {"annotations": UNKNOWN}]
)
def test_unknown_values_stay_unknown(metadata: Value) -> None:
    inputs = complete({"metadata": metadata})
    found = [fields(inputs, "metadata").get(name) for name in ("name", "annotations")]
    assert UNKNOWN in (inputs["metadata"], *found), "a preview must not show wrong values"


def test_secret_data_and_inputs_are_marked_secret() -> None:
    secret: Properties = {"metadata": {"name": "a"}, "stringData": {"p": "w"}}
    inputs = complete(secret, token="kubernetes:core/v1:Secret")
    assert inputs["stringData"] == Secret({"p": "w"}), "the state would contain the password"
    marked = mark_secrets({"kind": "Secret", "data": {"a": "b"}, "type": "Opaque"}, {})
    assert marked["data"] == Secret({"a": "b"}), "the state would contain a plain password"
    assert marked["type"] == "Opaque", "its type is not secret"
    known: Properties = {"spec": {"token": Secret("t"), "args": ["a", Secret("b")], "size": 1}}
    marked = mark_secrets({"spec": {"token": "t", "args": ["a", "b"], "size": 1}}, known)
    assert marked == {"spec": {"token": Secret("t"), "args": Secret(["a", "b"]), "size": 1}}, "both stay"


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


def test_objects_convert_and_documents_are_split() -> None:
    properties: Properties = {"schema": {"x_kubernetes_list_map_keys": ["name"]}}
    obj = to_object(properties)
    assert obj == {"schema": {"x-kubernetes-list-map-keys": ["name"]}}, "the CRD schema would lose the field"
    assert to_properties(obj) == properties, "programs could not read it back"
    assert to_object({"spec": {"a": None, "b": [{"c": None}]}}) == {"spec": {"b": [{}]}}, "no null is owned"
    with pytest.raises(ValueError, match="UNKNOWN"):
        to_object({"spec": UNKNOWN})
    assert list(objects_in("---\n---\nkind: A\n---\n# nothing\n")) == [{"kind": "A"}], "only one object"
    pods = list(objects_in("kind: PodList\nitems: [{kind: Pod}, {kind: Pod}]"))
    assert pods == [{"kind": "Pod"}] * 2, "the API server accepts no list"
    found = next(objects_in("kind: A\nversion: 2024-01-02\n"))
    assert found["version"] == "2024-01-02", "JSON has no dates"
    for text in ("a: [", "just words", "a: 1"):
        with pytest.raises(RehearsalError, match="YAML"):
            list(objects_in(text))


def test_resource_names_are_grouped_by_kind() -> None:
    deployment = "kind: Deployment\napiVersion: apps/v1\nmetadata: {{name: {name}, namespace: n}}\n"
    deployments = [deployment.format(name=name) for name in "ba"]
    namespace = "kind: Namespace\napiVersion: v1\nmetadata: {name: n}\n"
    names = resource_names("---\n".join([*deployments, namespace]))
    assert names == {"Deployment.apps/apps/v1": ["n/a", "n/b"], "Namespace/v1": ["n"]}, "keys of a release"
