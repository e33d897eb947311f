"""Inputs of a release get the defaults of the plugin; its outputs and messages contain no secrets."""

from pathlib import Path

import pytest

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.engine.values import UNKNOWN, Properties, Secret, Value
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.kubernetes_provider.helm import ChartMirror, ReleaseRecord
from pulumi_holdfast.rehearsal.kubernetes_provider.operation import Naming
from pulumi_holdfast.rehearsal.kubernetes_provider.releases import (
    chart_of,
    complete_release_inputs,
    live_release_inputs,
    outputs_of,
    plan_of,
    without_secrets,
)

NAMING = Naming(logical_name="jobset", seed=b"seed")


def complete(inputs: Properties | None = None, *, olds: Properties | None = None) -> dict[str, Value]:
    given: Properties = {"chart": "charts/jobset", **(inputs or {})}
    return complete_release_inputs(given, olds or {}, naming=NAMING, namespace="default")


def test_inputs_have_defaults_and_reach_helm() -> None:
    inputs = complete()
    assert str(inputs["name"]).startswith("jobset-"), "the release has no name"
    assert (inputs["namespace"], inputs["timeout"]) == ("default", 300), "the defaults of the plugin"
    assert complete(olds={"name": "jobset-1234"})["name"] == "jobset-1234", "every run replaces it"
    assert "timeout" not in complete({"skipAwait": True}), "the plugin sets none"
    flags: Properties = {"skipCrds": True, "createNamespace": True, "atomic": True}
    inputs = complete({"name": "j", "maxHistory": 3, "timeout": 7, **flags})
    plan = plan_of(inputs, Path("c"))
    assert plan.flags == set(flags), "a flag is lost"
    assert (plan.max_history, plan.timeout, plan.namespace) == (3, 7.0, "default"), "a setting is lost"


@pytest.mark.parametrize("name", ["postrender", "valueYamlFiles", "verify"])
def test_unsupported_input_is_refused(name: str) -> None:
    with pytest.raises(RehearsalError, match=f"{name} is not simulated"):
        complete({name: "x"})


@pytest.mark.parametrize("value", [False, None, ""])
def test_disabled_input_is_ignored(value: Value) -> None:
    assert "verify" not in complete({"verify": value}), "an unset option has no effect"


def test_release_needs_a_known_chart() -> None:
    with pytest.raises(RehearsalError, match="chart is not set"):
        complete_release_inputs({}, {}, naming=NAMING, namespace="default")
    mirror = ChartMirror(Path("charts"))
    assert chart_of({"chart": UNKNOWN}, mirror) is None, "no chart has the name UNKNOWN"


SHOWN: Json = {"name": "j", "namespace": "n", "chart": "jobset", "version": "1.0.0", "status": "deployed"}
INPUTS: Properties = {"name": "j", "namespace": "n", "chart": "c", "version": "1.0.0", "values": {"a": 1}}


def test_drift_is_found_and_secrets_stay_secret() -> None:
    assert live_release_inputs(INPUTS, SHOWN, {"a": 1}) == INPUTS, "every refresh would cause an upgrade"
    assert live_release_inputs(INPUTS, SHOWN, {"a": 2})["values"] == {"a": 2}, "a manual upgrade is drift"
    inputs: Properties = {**INPUTS, "values": {"a": Secret("x")}}
    assert live_release_inputs(inputs, SHOWN, {"a": "y"})["values"] == Secret({"a": "y"}), "a password"
    assert live_release_inputs(INPUTS, {**SHOWN, "version": "2.0.0"}, {"a": 1})["version"] == "2.0.0", (
        "a manual helm upgrade must be detected"
    )
    found = live_release_inputs({}, SHOWN, {"a": 1})
    assert found == {
        "name": "j",
        "namespace": "n",
        "chart": "jobset",
        "version": "1.0.0",
        "values": {"a": 1},
    }, "the program must match these inputs"
    outputs = outputs_of(ReleaseRecord(metadata=SHOWN, values={}, manifest=""), INPUTS)
    assert outputs["__inputs"] == Secret(INPUTS), "values may contain unmarked secrets"
    inputs: Properties = {"values": {"a": [Secret({"b": "hunter2"})], "c": "plain"}}
    assert without_secrets("bad hunter2 in plain", inputs) == "bad [secret] in plain", "helm quotes values"
