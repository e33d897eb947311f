"""What is kept and shown of a release is what helm shows, without its secrets."""

from holdfast.scheduling.json import Json
from holdfast.simulator.kubernetes_provider.release_state import inputs_now, outputs_of, without_secrets
from holdfast.simulator.pulumi.values import Properties, Secret

SHOWN: Json = {"name": "j", "namespace": "n", "chart": "jobset", "version": "1.0.0", "status": "deployed"}
INPUTS: Properties = {"name": "j", "namespace": "n", "chart": "c", "version": "1.0.0", "values": {"a": 1}}


def test_unchanged_values_are_no_drift() -> None:
    assert inputs_now(INPUTS, SHOWN, {"a": 1}) == INPUTS, "every refresh would be followed by an upgrade"


def test_values_changed_by_hand_are_drift() -> None:
    assert inputs_now(INPUTS, SHOWN, {"a": 2})["values"] == {"a": 2}, "a helm upgrade by hand stays unseen"


def test_secret_values_stay_secret_when_they_drift() -> None:
    inputs: Properties = {**INPUTS, "values": {"a": Secret("x")}}
    assert inputs_now(inputs, SHOWN, {"a": "y"})["values"] == Secret({"a": "y"}), "the password would show"


def test_another_chart_version_is_drift() -> None:
    assert inputs_now(INPUTS, {**SHOWN, "version": "2.0.0"}, {"a": 1})["version"] == "2.0.0", (
        "it stays unseen"
    )


def test_an_import_takes_what_helm_shows() -> None:
    found = inputs_now({}, SHOWN, {"a": 1})
    assert found == {
        "name": "j",
        "namespace": "n",
        "chart": "jobset",
        "version": "1.0.0",
        "values": {"a": 1},
    }, "the import cannot be told from the program"


def test_the_inputs_are_kept_secret_as_a_whole() -> None:
    outputs = outputs_of(SHOWN, INPUTS, manifest="")
    assert outputs["__inputs"] == Secret(INPUTS), "values may hold what nobody marked"


def test_no_secret_reaches_a_message() -> None:
    inputs: Properties = {"values": {"a": [Secret({"b": "hunter2"})], "c": "plain"}}
    assert without_secrets("bad hunter2 in plain", inputs) == "bad [secret] in plain", "helm quotes values"
