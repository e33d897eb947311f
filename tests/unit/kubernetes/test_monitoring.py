import asyncio
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache

import pytest
from prometheus_client import Counter, Histogram
from prometheus_client.parser import text_string_to_metric_families

from pulumi_holdfast.controller.jobs.actions import EventReason
from pulumi_holdfast.controller.jobs.state import Phase
from pulumi_holdfast.controller.kube.leader_election import Fence
from pulumi_holdfast.controller.kube.objects import labels_of
from pulumi_holdfast.controller.loop.controller import Controller
from pulumi_holdfast.controller.loop.metrics import MetricName, Metrics, Sample
from pulumi_holdfast.controller.loop.settings import parse_settings
from pulumi_holdfast.kubernetes.fallback_controller.component import LABELS, PORT, metrics_service_spec
from pulumi_holdfast.kubernetes.monitoring import (
    ALERTS,
    PANELS,
    Monitoring,
    dashboard,
    rule_group,
    service_monitor_spec,
)
from tests.support.fakes.api_server import FakeApi
from tests.support.fakes.pulumi_engine import record
from tests.support.json_objects import obj, objects

EXPRESSIONS = [each.expression for each in (*ALERTS, *PANELS)]

#: What the API server counts of policies; tests/cluster/admission/test_unchecked_jobs.py reads it there.
OF_THE_API_SERVER = {
    "apiserver_validating_admission_policy_check_total": {
        "policy",
        "policy_binding",
        "error_type",
        "enforcement_action",
    }
}

#: Added by Prometheus to every series that it scrapes from a pod, and to the buckets of a histogram.
FROM_SCRAPE = {"pod", "le"}


class ExposedMetrics(Metrics):
    """The controller's metrics, with one value of each."""

    def gauge_on_scrape(
        self, name: MetricName, text: str, labels: Iterable[str], read: Callable[[], Iterable[Sample]]
    ) -> None:
        del read
        names = tuple(labels)
        super().gauge_on_scrape(name, text, names, lambda: [(tuple("x" for _ in names), 1.0)])

    def use_all(self) -> None:
        """Give each counter and histogram a value, whatever number of labels it has."""
        for each in vars(self).values():
            for number in range(1, 5):
                if isinstance(each, Counter | Histogram):
                    with suppress(ValueError):
                        each.labels(*["x"] * number)


@cache
def exposed_metrics() -> str:
    """What the controller serves to Prometheus."""

    async def serve() -> str:
        loop = asyncio.get_running_loop()
        metrics = ExposedMetrics(process=False)
        Controller(parse_settings([], {}), FakeApi(), metrics, Fence(loop.time), monotonic=loop.time)
        metrics.use_all()
        return metrics.text().decode()

    return asyncio.run(serve())


def series_of(text: str) -> Mapping[str, set[str]]:
    """The labels of each exposed series, by its name."""
    found: dict[str, set[str]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


def asked(expression: str) -> Iterator[tuple[str, set[str]]]:
    """Each series of an expression, with the labels that it is matched and summed by."""
    summed = {
        label.strip() for labels in re.findall(r"by \(([^)]*)\)", expression) for label in labels.split(",")
    }
    for name, matchers in re.findall(r"((?:holdfast|apiserver)_\w+)(?:\{([^}]*)\})?", expression):
        yield name, {*re.findall(r"(\w+)(?:=~|!=|!~|=)", matchers), *summed}


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_query_asks_for_exposed_series_and_labels(expression: str) -> None:
    series = {**series_of(exposed_metrics()), **OF_THE_API_SERVER}
    queries = list(asked(expression))
    assert queries, f"{expression} asks for no metric that is known here"
    for name, labels in queries:
        assert name in series, f"nothing exposes {name}: the graph would be empty"
        assert labels - FROM_SCRAPE <= series[name], f"{name} has {series[name]}, not {labels}"


def test_matched_reasons_and_phases_exist() -> None:
    text = " ".join(EXPRESSIONS)
    assert set(re.findall(r'phase="(\w+)"', text)) <= {phase.value for phase in Phase}
    assert set(re.findall(r'[^_]reason="([A-Z]\w+)"', text)) <= {each.value for each in EventReason}


def test_each_alert_says_what_is_wrong_and_what_to_do() -> None:
    rules = objects(rule_group()["rules"])
    names = [str(rule["alert"]) for rule in rules]
    assert len(set(names)) == len(names) == len(ALERTS)
    for rule in rules:
        annotations = obj(rule["annotations"])
        assert annotations["summary"], f"{rule['alert']} says what is wrong"
        assert annotations["description"], f"{rule['alert']} says what to do"
        assert obj(rule["labels"])["severity"] in {"warning", "critical"}


def test_panels_do_not_overlap_and_use_the_chosen_data_source() -> None:
    places = [obj(panel["gridPos"]) for panel in objects(dashboard()["panels"])]
    assert len({(place["x"], place["y"]) for place in places}) == len(PANELS)
    for panel in objects(dashboard()["panels"]):
        assert obj(panel["datasource"])["uid"] == "${datasource}"


def test_only_what_is_asked_for_is_created() -> None:
    shown = record(lambda: Monitoring("m", has_dashboard=True, has_alerts=False))
    (dashboards,) = shown.of(":ConfigMap")
    assert labels_of(dashboards.inputs)["grafana_dashboard"] == "1"
    assert json.loads(str(obj(dashboards.inputs["data"])["holdfast.json"])) == dashboard()
    assert not shown.of(":PrometheusRule")
    labels = {"release": "stack"}
    alerted = record(lambda: Monitoring("m", has_dashboard=False, has_alerts=True, labels=labels))
    assert not alerted.of(":ConfigMap")
    for kind in (":PrometheusRule", ":ServiceMonitor"):
        found = labels_of(alerted.one(kind).inputs)
        assert found["release"] == "stack", f"Prometheus selects the {kind} by it"


def test_the_service_monitor_selects_the_metrics_service() -> None:
    (endpoint,) = objects(service_monitor_spec()["endpoints"])
    (port,) = objects(metrics_service_spec()["ports"])
    assert (endpoint["port"], port["port"]) == (port["name"], PORT)
    assert obj(service_monitor_spec()["selector"])["matchLabels"] == LABELS
