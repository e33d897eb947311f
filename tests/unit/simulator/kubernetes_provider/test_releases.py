"""A release's inputs are completed as the plugin completes them; what cannot be rehearsed is refused."""

from pathlib import Path

import pytest

from holdfast.scheduling.json import Json
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_provider.helm import ChartMirror
from holdfast.simulator.kubernetes_provider.operation import Naming
from holdfast.simulator.kubernetes_provider.releases import (
    chart_of,
    complete_release_inputs,
    inputs_now,
    outputs_of,
    plan_of,
    without_secrets,
)
from holdfast.simulator.pulumi.values import UNKNOWN, Properties, Secret, Value

NAMING = Naming(logical_name="jobset", seed=b"seed")


def complete(inputs: Properties | None = None, *, olds: Properties | None = None) -> dict[str, Value]:
    given: Properties = {"chart": "charts/jobset", **(inputs or {})}
    return complete_release_inputs(given, olds or {}, naming=NAMING, namespace="default")


def test_name_namespace_and_timeout_are_filled_in() -> None:
    inputs = complete()
    assert str(inputs["name"]).startswith("jobset-"), "the release has no name"
    assert (inputs["namespace"], inputs["timeout"]) == ("default", 300), "the plugin's defaults differ"


def test_a_name_once_given_is_kept() -> None:
    assert complete(olds={"name": "jobset-1234"})["name"] == "jobset-1234", (
        "every run would replace the release"
    )


def test_a_release_that_is_not_waited_for_has_no_timeout() -> None:
    assert "timeout" not in complete({"skipAwait": True}), "the plugin sets none"


@pytest.mark.parametrize("name", ["postrender", "valueYamlFiles", "verify"])
def test_what_cannot_be_rehearsed_is_refused_by_name(name: str) -> None:
    with pytest.raises(RehearsalError, match=f"{name} is not rehearsed"):
        complete({name: "x"})


@pytest.mark.parametrize("value", [False, None, ""])
def test_what_is_switched_off_is_not_refused(value: Value) -> None:
    assert "verify" not in complete({"verify": value}), "an option that asks for nothing stands in the way"


def test_a_release_without_a_chart_is_refused() -> None:
    with pytest.raises(RehearsalError, match="chart is not set"):
        complete_release_inputs({}, {}, naming=NAMING, namespace="default")


def test_a_chart_that_is_not_known_yet_is_looked_up_later() -> None:
    mirror = ChartMirror(Path("charts"))
    assert chart_of({"chart": UNKNOWN}, mirror) is None, "preview would look for a chart named UNKNOWN"


def test_each_flag_reaches_helm() -> None:
    flags: Properties = {"skipCrds": True, "createNamespace": True, "atomic": True}
    inputs = complete({"name": "j", "maxHistory": 3, "timeout": 7, **flags})
    plan = plan_of(inputs, Path("c"))
    assert (plan.skip_crds, plan.create_namespace, plan.atomic) == (True, True, True), "a flag is lost"
    assert (plan.max_history, plan.timeout, plan.namespace) == (3, 7.0, "default"), "a setting is lost"


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
