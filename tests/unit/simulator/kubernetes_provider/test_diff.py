"""A change is an update or a replacement as the API server would have it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pulumi.runtime.proto import provider_pb2

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.kubernetes_provider.diff import (
    covers,
    live_inputs,
    object_diff,
    without_system_fields,
)
from holdfast.simulator.kubernetes_provider.operation import Settings
from holdfast.simulator.pulumi.values import UNKNOWN, Properties, Secret, Value

SOME = provider_pb2.DiffResponse.DIFF_SOME
NONE = provider_pb2.DiffResponse.DIFF_NONE


def obj(kind: str = "ConfigMap", api_version: str = "v1", name: str = "a", **fields: Value) -> Properties:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name}, **fields}


def diff(old: Properties, new: Properties, settings: Settings | None = None) -> provider_pb2.DiffResponse:
    return object_diff(old, new, settings=settings or Settings())


def test_equal_inputs_need_nothing() -> None:
    assert diff(obj(data={"k": "v"}), obj(data={"k": "v"})).changes == NONE, "a second up would change it"


def test_the_default_namespace_may_be_named_or_not() -> None:
    named: Properties = {**obj(), "metadata": {"name": "a", "namespace": "default"}}
    assert diff(named, obj()).changes == NONE, "naming the namespace an object is in would replace it"


def test_a_change_is_told_at_its_path() -> None:
    old = obj("Service", spec={"ports": [{"port": 80}]})
    new = obj("Service", spec={"ports": [{"port": 81}]})
    found = diff(old, new)
    assert set(found.detailedDiff) == {"spec.ports[0].port"}, "the plan would not say what changes"
    assert not found.replaces, "a port is changed in place"


@pytest.mark.parametrize(
    ("kind", "api_version", "old", "new", "path"),
    [
        (
            "Deployment",
            "apps/v1",
            {"spec": {"selector": {"a": 1}}},
            {"spec": {"selector": {"a": 2}}},
            "spec.selector.a",
        ),
        (
            "Job",
            "batch/v1",
            {"spec": {"template": {"a": 1}}},
            {"spec": {"template": {"a": 2}}},
            "spec.template.a",
        ),
        ("ConfigMap", "v1", {"data": {"k": "1"}}, {"data": {"k": "2"}}, "data.k"),
        ("Secret", "v1", {"stringData": {"k": "1"}}, {"stringData": {"k": "2"}}, "stringData.k"),
        (
            "Pod",
            "v1",
            {"spec": {"containers": [{"image": "a", "name": "c"}]}},
            {"spec": {"containers": [{"image": "b", "name": "c"}]}},
            "spec.containers[0].image",
        ),
        (
            "RoleBinding",
            "rbac.authorization.k8s.io/v1",
            {"roleRef": {"name": "a"}},
            {"roleRef": {"name": "b"}},
            "roleRef.name",
        ),
    ],
)
def test_what_the_server_would_not_change_is_replaced(
    kind: str, api_version: str, old: dict[str, Value], new: dict[str, Value], path: str
) -> None:
    found = diff({**obj(kind, api_version), **old}, {**obj(kind, api_version), **new})
    assert list(found.replaces) == [path], "up would fail on a field that cannot be changed"


@pytest.mark.parametrize("kind", ["ConfigMap", "Secret"])
def test_content_is_changed_in_place_where_the_provider_says_so(kind: str) -> None:
    mutable = Settings(config_maps_mutable=True, secrets_mutable=True)
    old, new = obj(kind, data={"k": "1"}), obj(kind, data={"k": "2"})
    assert not diff(old, new, mutable).replaces, "the setting is passed over"


def test_an_object_marked_immutable_is_replaced_all_the_same() -> None:
    mutable = Settings(config_maps_mutable=True)
    old, new = obj(data={"k": "1"}, immutable=True), obj(data={"k": "2"}, immutable=True)
    assert diff(old, new, mutable).replaces, "the API server refuses the change"


@pytest.mark.parametrize(
    ("autonamed", "new_name", "first"),
    [(False, "a", True), (False, "b", False), (True, "a", False)],
)
def test_the_old_object_goes_first_only_where_names_clash(
    autonamed: bool, new_name: str, first: bool
) -> None:
    annotations: Properties = {"pulumi.com/autonamed": "true"} if autonamed else {}
    old: Properties = {**obj(data={"k": "1"}), "metadata": {"name": "a", "annotations": annotations}}
    new: Properties = {**obj(data={"k": "2"}), "metadata": {"name": new_name, "annotations": annotations}}
    assert diff(old, new).deleteBeforeReplace is first, "the two would be there at once, or neither would"


def test_another_name_is_another_object() -> None:
    assert list(diff(obj(name="a"), obj(name="b")).replaces) == ["metadata.name"], "names cannot be changed"


def test_what_is_not_known_yet_is_a_change() -> None:
    assert diff(obj(data={"k": "1"}), obj(data={"k": UNKNOWN})).changes == SOME, (
        "preview would hide an update"
    )


def test_a_secret_of_the_same_value_is_no_change() -> None:
    found = diff(obj(data=Secret({"k": "1"})), obj(data={"k": Secret("1")}))
    assert found.changes == NONE, "where the mark of secrecy sits is no change of the object"


def test_a_patch_changes_anything_but_whose_it_is_in_place() -> None:
    old, new = obj(data={"k": "1"}), obj(data={"k": "2"})
    found = object_diff(old, new, settings=Settings(), patches=True)
    assert found.changes == SOME, "the patch would not be changed"
    assert not found.replaces, "somebody else's object would be replaced"


_json = st.recursive(
    st.one_of(st.booleans(), st.integers(), st.text(max_size=3)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
_objects = st.dictionaries(st.text(max_size=3), _json, max_size=4)


@given(_objects, _objects)
def test_an_object_that_is_as_expected_has_not_drifted(inputs: Json, expected: Json) -> None:
    assert live_inputs(inputs, expected=expected, live=expected) == inputs, (
        "whatever the server makes of the inputs, that is no drift"
    )


@given(_objects)
def test_what_others_add_is_not_drift(inputs: dict[str, JsonValue]) -> None:
    live = {**inputs, "added by others": True}
    assert covers(live, inputs), "defaults and status would be taken for drift"
    assert live_inputs(inputs, expected=inputs, live=live) == inputs, "up would try to remove what others add"


def test_the_servers_way_of_writing_is_not_drift() -> None:
    found = live_inputs({"cpu": "1000m"}, expected={"cpu": "1"}, live={"cpu": "1"})
    assert found == {"cpu": "1000m"}, "up would write 1000m for ever"


def test_a_changed_field_is_drift_beside_one_written_otherwise() -> None:
    inputs: Json = {"spec": {"cpu": "1000m", "replicas": 2}}
    expected: Json = {"spec": {"cpu": "1", "replicas": 2}}
    live: Json = {"spec": {"cpu": "1", "replicas": 5, "paused": False}}
    assert live_inputs(inputs, expected=expected, live=live) == {"spec": {"cpu": "1000m", "replicas": 5}}, (
        "somebody scaled it, and nothing else"
    )


def test_a_removed_field_is_drift() -> None:
    found = live_inputs(
        {"data": {"a": "1", "b": "2"}}, expected={"data": {"a": "1", "b": "2"}}, live={"data": {"a": "1"}}
    )
    assert found == {"data": {"a": "1"}}, "up would not bring it back"


def test_what_is_only_ever_written_is_not_drift() -> None:
    inputs: Json = {"stringData": {"p": "w"}}
    live: Json = {"data": {"p": "dw=="}}
    assert live_inputs(inputs, expected=live, live=live) == inputs, (
        "a Secret would be replaced after each refresh"
    )


def test_one_entry_of_a_list_drifts_alone() -> None:
    def containers(image: str, cpu: str) -> Json:
        return {"containers": [{"image": image, "cpu": cpu}]}

    found = live_inputs(containers("a", "1000m"), expected=containers("a", "1"), live=containers("b", "1"))
    assert found == containers("b", "1000m"), "the plan would show the whole list"


def test_an_import_leaves_out_what_the_server_wrote() -> None:
    live: Json = {
        "kind": "ConfigMap",
        "metadata": {"name": "a", "uid": "u", "annotations": {"deployment.kubernetes.io/revision": "1"}},
        "status": {"x": 1},
    }
    assert without_system_fields(live, ("uid",)) == {"kind": "ConfigMap", "metadata": {"name": "a"}}, (
        "the first up after an import would change the object"
    )
