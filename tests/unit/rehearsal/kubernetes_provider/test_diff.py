"""A change updates or replaces an object as the API server requires; drift is a change by others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pulumi.runtime.proto import provider_pb2

from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.rehearsal.engine.values import UNKNOWN, Properties, Secret, Value
from pulumi_holdfast.rehearsal.kubernetes_provider.diff import (
    covers,
    live_inputs,
    object_diff,
    without_system_fields,
)
from pulumi_holdfast.rehearsal.kubernetes_provider.operation import ProviderSettings

SOME = provider_pb2.DiffResponse.DIFF_SOME
NONE = provider_pb2.DiffResponse.DIFF_NONE


def obj(kind: str = "ConfigMap", api_version: str = "v1", name: str = "a", **fields: Value) -> Properties:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


def diff(
    old: Properties, new: Properties, settings: ProviderSettings | None = None
) -> provider_pb2.DiffResponse:
    return object_diff(old, new, settings=settings or ProviderSettings())


def test_changes_are_reported_with_their_path_and_patches_are_updated() -> None:
    assert diff(obj(data={"k": "v"}), obj(data={"k": "v"})).changes == NONE, "nothing changes"
    named: Properties = {**obj(), "metadata": {"name": "a", "namespace": "default"}}
    assert diff(named, obj()).changes == NONE, "the object is in the same namespace"
    found = diff(obj(data=Secret({"k": "1"})), obj(data={"k": Secret("1")}))
    assert found.changes == NONE, "the position of the secret mark does not matter"
    assert diff(obj(data={"k": "1"}), obj(data={"k": UNKNOWN})).changes == SOME, "it may be an update"
    old = obj("Service", spec={"ports": [{"port": 80}]})
    new = obj("Service", spec={"ports": [{"port": 81}]})
    found = diff(old, new)
    assert set(found.detailedDiff) == {"spec.ports[0].port"}, "the plan shows this path"
    assert not found.replaces, "a port can be updated"
    assert list(diff(obj(name="a"), obj(name="b")).replaces) == ["metadata.name"], "names cannot be changed"
    old, new = obj(data={"k": "1"}), obj(data={"k": "2"})
    found = object_diff(old, new, settings=ProviderSettings(), patches=True)
    assert found.changes == SOME, "the patch changes"
    assert not found.replaces, "the patched object must not be replaced"


def _image(name: str) -> dict[str, Value]:
    return {"containers": [{"image": name, "name": "c"}]}


@pytest.mark.parametrize(
    ("kind", "api_version", "field", "old", "new", "path"),
    [
        ("Deployment", "apps/v1", "spec", {"selector": {"a": 1}}, {"selector": {"a": 2}}, "spec.selector.a"),
        ("Job", "batch/v1", "spec", {"template": {"a": 1}}, {"template": {"a": 2}}, "spec.template.a"),
        ("ConfigMap", "v1", "data", {"k": "1"}, {"k": "2"}, "data.k"),
        ("Secret", "v1", "stringData", {"k": "1"}, {"k": "2"}, "stringData.k"),
        ("Pod", "v1", "spec", _image("a"), _image("b"), "spec.containers[0].image"),
        (
            "RoleBinding",
            "rbac.authorization.k8s.io/v1",
            "roleRef",
            {"name": "a"},
            {"name": "b"},
            "roleRef.name",
        ),
    ],
)
def test_change_of_an_immutable_field_replaces_the_object(
    kind: str, api_version: str, field: str, old: Value, new: Value, path: str
) -> None:
    found = diff({**obj(kind, api_version), field: old}, {**obj(kind, api_version), field: new})
    assert list(found.replaces) == [path], "the API server refuses the update"


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret"])
def test_mutable_setting_updates_the_data_of_objects_that_are_not_immutable(kind: str) -> None:
    mutable = ProviderSettings(config_maps_mutable=True, secrets_mutable=True)
    old, new = obj(kind, data={"k": "1"}), obj(kind, data={"k": "2"})
    assert not diff(old, new, mutable).replaces, "the setting allows the update"
    fixed = diff({**old, "immutable": True}, {**new, "immutable": True}, mutable)
    assert fixed.replaces, "the API server refuses the change"


@pytest.mark.parametrize(
    ("autonamed", "new_name", "first"), [(False, "a", True), (False, "b", False), (True, "a", False)]
)
def test_old_object_of_the_same_name_is_deleted_first(autonamed: bool, new_name: str, first: bool) -> None:
    annotations: Properties = {"pulumi.com/autonamed": "true"} if autonamed else {}
    old: Properties = {**obj(data={"k": "1"}), "metadata": {"name": "a", "annotations": annotations}}
    new: Properties = {**obj(data={"k": "2"}), "metadata": {"name": new_name, "annotations": annotations}}
    assert diff(old, new).deleteBeforeReplace is first, "two objects cannot have one name"


_json = st.recursive(
    st.one_of(st.booleans(), st.integers(), st.text(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
_objects = st.dictionaries(st.text(max_size=3), _json, max_size=4)


@given(_objects, _objects)
def test_expected_object_has_no_drift(inputs: Json, expected: Json) -> None:
    assert live_inputs(inputs, expected=expected, live=expected) == inputs, "defaults are no drift"


@given(_objects)
def test_added_fields_are_no_drift(inputs: dict[str, JsonValue]) -> None:
    live = {**inputs, "added by others": True}
    assert covers(live, inputs), "defaults and status are no drift"
    assert live_inputs(inputs, expected=inputs, live=live) == inputs, "an update would remove added fields"


def test_only_changes_by_others_are_drift() -> None:
    found = live_inputs({"cpu": "1000m"}, expected={"cpu": "1"}, live={"cpu": "1"})
    assert found == {"cpu": "1000m"}, "every update would write 1000m"
    inputs: Json = {"spec": {"cpu": "1000m", "replicas": 2}}
    expected: Json = {"spec": {"cpu": "1", "replicas": 2}}
    live: Json = {"spec": {"cpu": "1", "replicas": 5, "paused": False}}
    assert live_inputs(inputs, expected=expected, live=live) == {"spec": {"cpu": "1000m", "replicas": 5}}, (
        "only the scale changed"
    )
    inputs: Json = {"stringData": {"p": "w"}}
    live: Json = {"data": {"p": "dw=="}}
    assert live_inputs(inputs, expected=live, live=live) == inputs, "each refresh would replace the Secret"
    found = live_inputs(
        {"data": {"a": "1", "b": "2"}}, expected={"data": {"a": "1", "b": "2"}}, live={"data": {"a": "1"}}
    )
    assert found == {"data": {"a": "1"}}, "an update must restore it"

    def containers(image: str, cpu: str) -> Json:
        return {"containers": [{"image": image, "cpu": cpu}]}

    found = live_inputs(containers("a", "1000m"), expected=containers("a", "1"), live=containers("b", "1"))
    assert found == containers("b", "1000m"), "the plan shows only the changed entry"
    live: Json = {
        "kind": "ConfigMap",
        "metadata": {"name": "a", "uid": "u", "annotations": {"deployment.kubernetes.io/revision": "1"}},
        "status": {"x": 1},
    }
    assert without_system_fields(live, ("uid",)) == {"kind": "ConfigMap", "metadata": {"name": "a"}}, (
        "the first update after an import must change nothing"
    )
