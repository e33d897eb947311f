"""Series for each alert: one set that makes it fire, and others that must not. Pure.

Values are in promtool's notation: `0+1x10` are 0, 1, … 10, one for each minute; `_` is a missing sample.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pulumi_holdfast.kubernetes.monitoring import ALERTS, rule_group
from pulumi_holdfast.ladder.json import Json

_LEADER: Final = 'holdfast_fallback_leader{pod="controller-%d"}'
_WRITES: Final = 'holdfast_fallback_failed_writes_total{reason="%s",pod="controller-0"}'
_JOBS: Final = 'holdfast_fallback_jobs{namespace="vision",pool="gpu-spot",phase="%s"}'
_EVENTS: Final = 'holdfast_fallback_job_events_total{namespace="vision",reason="%s"}'
_LATE: Final = 'holdfast_fallback_late_jobs{namespace="vision",pool="gpu"}'
_ERRORS: Final = 'holdfast_fallback_reconcile_errors_total{pod="controller-0"}'
_UNCHECKED: Final = (
    'apiserver_validating_admission_policy_check_total{policy="training-jobsets-can-fall-back",'
    'policy_binding="training-jobsets-can-fall-back",error_type="out_of_budget",enforcement_action="%s"}'
)


@dataclass(frozen=True, kw_only=True)
class Case:
    """What an alert does `minutes` after the first sample of `series`; `labels`: with which labels it fires, None if not."""

    alert: str
    what: str
    series: Mapping[str, str]
    minutes: int
    labels: Mapping[str, str] | None = None


CASES: Final = (
    Case(
        alert="HoldfastNoLeader",
        what="both replicas have lost the lease",
        series={_LEADER % 0: "1x5 0x20", _LEADER % 1: "0x25"},
        minutes=20,
        labels={},
    ),
    Case(
        alert="HoldfastNoLeader",
        what="the controller is gone, and its series with it",
        series={_LEADER % 0: "1x5 _x20"},
        minutes=20,
        labels={},
    ),
    Case(
        alert="HoldfastNoLeader",
        what="the other replica takes over within a minute",
        series={_LEADER % 0: "1x5 0x20", _LEADER % 1: "0x6 1x19"},
        minutes=20,
    ),
    Case(
        alert="HoldfastWritesRefused",
        what="an admission policy refuses every write",
        series={_WRITES % "403": "0+1x60"},
        minutes=40,
        labels={"reason": "403"},
    ),
    Case(
        alert="HoldfastWritesRefused",
        what="conflicts, and an API server that is away, are retried and succeed",
        series={_WRITES % "409": "0+5x60", _WRITES % "unreachable": "0+1x60", _WRITES % "503": "0+1x60"},
        minutes=40,
    ),
    Case(
        alert="HoldfastWritesRefused",
        what="one refusal is over",
        series={_WRITES % "403": "0x5 1x55"},
        minutes=40,
    ),
    Case(
        alert="HoldfastJobsWaiting",
        what="a job waits for three hours",
        series={_JOBS % "Waiting": "1x180", _JOBS % "Running": "4x180"},
        minutes=150,
        labels={"namespace": "vision", "pool": "gpu-spot"},
    ),
    Case(
        alert="HoldfastJobsWaiting",
        what="jobs wait for an hour, and run",
        series={_JOBS % "Waiting": "2x60 0x120", _JOBS % "Running": "0x60 2x120"},
        minutes=150,
    ),
    Case(
        alert="HoldfastJobGivenUp",
        what="a job is given up",
        series={_EVENTS % "GivenUp": "0x10 1x20"},
        minutes=15,
        labels={"namespace": "vision"},
    ),
    Case(
        alert="HoldfastJobGivenUp",
        what="jobs move, and one was given up two hours ago",
        series={_EVENTS % "Moved": "0+3x200", _EVENTS % "GivenUp": "0x10 1x190"},
        minutes=150,
    ),
    Case(
        alert="HoldfastJobLate",
        what="a deadline cannot be kept",
        series={_LATE: "0x5 1x20"},
        minutes=15,
        labels={"namespace": "vision", "pool": "gpu"},
    ),
    Case(alert="HoldfastJobLate", what="no job is late", series={_LATE: "0x30"}, minutes=20),
    Case(
        alert="HoldfastReconcileErrors",
        what="each reconciliation of a job ends in an error",
        series={_ERRORS: "0+1x120"},
        minutes=90,
        labels={"pod": "controller-0"},
    ),
    Case(
        alert="HoldfastReconcileErrors", what="one error is over", series={_ERRORS: "0x5 1x115"}, minutes=90
    ),
    Case(
        alert="HoldfastJobsNotChecked",
        what="the first job that is not checked begins the series",
        series={_UNCHECKED % "allow": "_x100 1x20"},
        minutes=110,
        labels={"policy": "training-jobsets-can-fall-back"},
    ),
    Case(
        alert="HoldfastJobsNotChecked",
        what="another one follows hours later",
        series={_UNCHECKED % "allow": "1x200 2x20"},
        minutes=210,
        labels={"policy": "training-jobsets-can-fall-back"},
    ),
    Case(
        alert="HoldfastJobsNotChecked",
        what="jobs are rejected, and the last that was not checked is hours ago",
        series={_UNCHECKED % "deny": "0+1x300", _UNCHECKED % "allow": "1x300"},
        minutes=250,
    ),
)


def file_of_rules() -> Json:
    """Return the alerts as a file of rules."""
    return {"groups": [rule_group()]}


def file_of_tests(rules: str) -> Json:
    """Return the cases as promtool's file of unit tests; `rules` is the name of the file of rules."""
    return {"rule_files": [rules], "evaluation_interval": "1m", "tests": [_test(case) for case in CASES]}


def _test(case: Case) -> Json:
    expected: list[Json] = [] if case.labels is None else [_firing(case.alert, case.labels)]
    return {
        "name": f"{case.alert}: {case.what}",
        "interval": "1m",
        "input_series": [{"series": series, "values": values} for series, values in case.series.items()],
        "alert_rule_test": [
            {"eval_time": f"{case.minutes}m", "alertname": case.alert, "exp_alerts": [*expected]}
        ],
    }


def _firing(name: str, labels: Mapping[str, str]) -> Json:
    """The alert as it reaches Alertmanager: with the values of its labels in its texts."""
    (alert,) = (each for each in ALERTS if each.name == name)
    rule = next(each for each in _rules() if each["alert"] == name)
    annotations = rule["annotations"]
    assert isinstance(annotations, Mapping), "as rule_group writes it"
    return {
        "exp_labels": {"severity": alert.severity, **labels},
        "exp_annotations": {key: _filled(str(text), labels) for key, text in annotations.items()},
    }


def _rules() -> list[Json]:
    rules = rule_group()["rules"]
    assert isinstance(rules, list), "as rule_group writes it"
    return [each for each in rules if isinstance(each, Mapping)]


def _filled(text: str, labels: Mapping[str, str]) -> str:
    for name, value in labels.items():
        text = text.replace(f"{{{{ $labels.{name} }}}}", value)
    return text
