"""Only what others changed is drift: not the server's way of writing, not what it adds."""

from hypothesis import given
from hypothesis import strategies as st

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.kubernetes_provider.drift import covers, live_inputs, without_system_fields

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
