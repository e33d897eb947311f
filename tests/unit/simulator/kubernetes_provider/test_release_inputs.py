"""A release's inputs are completed as the plugin completes them; what cannot be rehearsed is refused."""

from pathlib import Path

import pytest

from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_provider.charts import ChartMirror
from holdfast.simulator.kubernetes_provider.inputs import Naming
from holdfast.simulator.kubernetes_provider.release_inputs import chart_of, checked_release, plan_of
from holdfast.simulator.pulumi.values import UNKNOWN, Properties, Value

NAMING = Naming(logical_name="jobset", seed=b"seed")


def complete(inputs: Properties | None = None, *, olds: Properties | None = None) -> dict[str, Value]:
    given: Properties = {"chart": "charts/jobset", **(inputs or {})}
    return checked_release(given, olds or {}, naming=NAMING, namespace="default")


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
        checked_release({}, {}, naming=NAMING, namespace="default")


def test_a_chart_that_is_not_known_yet_is_looked_up_later() -> None:
    mirror = ChartMirror(Path("charts"))
    assert chart_of({"chart": UNKNOWN}, mirror) is None, "preview would look for a chart named UNKNOWN"


def test_each_flag_reaches_helm() -> None:
    flags: Properties = {"skipCrds": True, "createNamespace": True, "atomic": True}
    inputs = complete({"name": "j", "maxHistory": 3, "timeout": 7, **flags})
    plan = plan_of(inputs, Path("c"))
    assert (plan.skip_crds, plan.create_namespace, plan.atomic) == (True, True, True), "a flag is lost"
    assert (plan.max_history, plan.timeout, plan.namespace) == (3, 7.0, "default"), "a setting is lost"
