"""What Prometheus and Grafana get of a cluster: rules for alerts, and a dashboard."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pulumi import ComponentResource, ResourceOptions

from pulumi_holdfast.kubernetes.admission.job_validation import CAN_FALL_BACK
from pulumi_holdfast.kubernetes.fallback_controller.component import LABELS
from pulumi_holdfast.kubernetes.kubernetes_object import KubernetesObject
from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.ladder.labels import CONTROLLER, CONTROLLER_NAMESPACE

#: The name of the rule group, the PrometheusRule and the ServiceMonitor.
NAME: Final = CONTROLLER

_DOCUMENTATION: Final = "See docs/fallback.md."

#: The API server's count of requests that a policy on jobs admitted although its evaluation failed.
_UNCHECKED: Final = f'apiserver_validating_admission_policy_check_total{{policy=~"training-.+{CAN_FALL_BACK}",enforcement_action="allow"}}'


@dataclass(frozen=True, kw_only=True)
class Alert:
    """One alert: a PromQL expression that must yield series for a while, and what it means."""

    name: str
    expression: str
    lasts: str
    severity: str
    summary: str
    fix: str


ALERTS: Final[Sequence[Alert]] = (
    Alert(
        name="HoldfastNoLeader",
        expression="(sum(holdfast_fallback_leader) or vector(0)) < 1",
        lasts="5m",
        severity="critical",
        summary="No fallback controller leads: no job is moved, and a job that is suspended for a move stays suspended.",
        fix=f"Read the logs and events of the pods in {CONTROLLER_NAMESPACE}.",
    ),
    Alert(
        name="HoldfastWritesRefused",
        expression='sum by (reason) (increase(holdfast_fallback_failed_writes_total{reason=~"4[0-9]{2}",reason!="409"}[15m])) > 0',
        lasts="15m",
        severity="warning",
        summary="The API server refuses writes of the fallback controller with status {{ $labels.reason }}.",
        fix="Read the WriteRejected events of the jobs: RBAC, an admission policy or a quota refuses them.",
    ),
    Alert(
        name="HoldfastJobsWaiting",
        expression='sum by (namespace, pool) (holdfast_fallback_jobs{phase="Waiting"}) > 0',
        lasts="2h",
        severity="warning",
        summary="Jobs of {{ $labels.namespace }} have waited for capacity in {{ $labels.pool }} for two hours.",
        fix="Raise the pool's maxNodes or its quota, add machine types, or shorten the tier's procurementTimeout.",
    ),
    Alert(
        name="HoldfastJobGivenUp",
        expression='sum by (namespace) (increase(holdfast_fallback_job_events_total{reason="GivenUp"}[1h])) > 0',
        lasts="0m",
        severity="critical",
        summary="A job of {{ $labels.namespace }} was given up on the last tier of its ladder and stays suspended.",
        fix="Provide capacity on the last tier, then resume the job.",
    ),
    Alert(
        name="HoldfastJobLate",
        expression="sum by (namespace, pool) (holdfast_fallback_late_jobs) > 0",
        lasts="5m",
        severity="warning",
        summary="Jobs of {{ $labels.namespace }} on {{ $labels.pool }} will miss their deadline.",
        fix="Read their DeadlineMissed events, which say when they will end.",
    ),
    Alert(
        name="HoldfastReconcileErrors",
        expression="increase(holdfast_fallback_reconcile_errors_total[30m]) > 0",
        lasts="30m",
        severity="warning",
        summary="Reconciliations of the fallback controller end in internal errors.",
        fix=f"Read the log of {{{{ $labels.pod }}}} in {CONTROLLER_NAMESPACE}, and report it as a defect.",
    ),
    Alert(
        name="HoldfastJobsNotChecked",
        # The API server's counter begins at 1, which is no increase.
        expression=f"sum by (policy) (increase({_UNCHECKED}[1h])) > 0 or sum by (policy) ({_UNCHECKED} unless {_UNCHECKED} offset 1h) > 0",
        lasts="0m",
        severity="warning",
        summary="The API server admitted a job of {{ $labels.policy }} without a check of whether it can fall back.",
        fix="Split the job, or merge templates that are alike; docs/emergencies.md says what exceeds the check.",
    ),
)


def rule_group() -> Json:
    """Return the group of alerts in the format of Prometheus' rule files."""
    rules: list[JsonValue] = [
        {
            "alert": alert.name,
            "expr": alert.expression,
            "for": alert.lasts,
            "labels": {"severity": alert.severity},
            "annotations": {"summary": alert.summary, "description": f"{alert.fix} {_DOCUMENTATION}"},
        }
        for alert in ALERTS
    ]
    return {"name": NAME, "rules": rules}


#: Grafana identifies a dashboard by it; the same one is updated, not duplicated.
UID: Final = "holdfast-fallback"

_COLUMNS: Final = 24
_PANEL_WIDTH: Final = 12
_PANEL_HEIGHT: Final = 8
_DATASOURCE: Final[Json] = {"type": "prometheus", "uid": "${datasource}"}
_NAMESPACES: Final = 'namespace=~"$namespace"'


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One graph: its expression in PromQL, the legend of a series, and the unit as Grafana calls it."""

    title: str
    expression: str
    legend: str
    unit: str = "short"
    description: str = ""


PANELS: Final[Sequence[Panel]] = (
    Panel(
        title="Jobs by tier",
        expression=f"sum by (pool, phase) (holdfast_fallback_jobs{{{_NAMESPACES}}})",
        legend="{{pool}} {{phase}}",
        description="Unfinished jobs that follow a ladder.",
    ),
    Panel(
        title="Jobs that wait for capacity",
        expression=f'sum by (namespace, pool) (holdfast_fallback_jobs{{{_NAMESPACES},phase="Waiting"}})',
        legend="{{namespace}} {{pool}}",
    ),
    Panel(
        title="Moves",
        expression=f"sum by (pool, purpose) (increase(holdfast_fallback_moves_total{{{_NAMESPACES}}}[1h]))",
        legend="to {{pool}}: {{purpose}}",
        description="Tiers entered in the last hour.",
    ),
    Panel(
        title="Outages",
        expression=f"sum by (pool, cause) (increase(holdfast_fallback_outages_total{{{_NAMESPACES}}}[1h]))",
        legend="{{pool}}: {{cause}}",
        description="Outages counted against a tier in the last hour.",
    ),
    Panel(
        title="Time until a gang has its nodes (95 %)",
        expression="histogram_quantile(0.95, sum by (le, pool) "
        f"(rate(holdfast_fallback_capacity_wait_seconds_bucket{{{_NAMESPACES}}}[6h])))",
        legend="{{pool}}",
        unit="s",
    ),
    Panel(
        title="Length of a move (95 %)",
        expression="histogram_quantile(0.95, sum by (le, pool) "
        f"(rate(holdfast_fallback_move_seconds_bucket{{{_NAMESPACES}}}[6h])))",
        legend="to {{pool}}",
        unit="s",
    ),
    Panel(
        title="Node hours by capacity type",
        expression=f"sum by (capacity) (increase(holdfast_fallback_node_seconds_total{{{_NAMESPACES}}}[1d])) / 3600",
        legend="{{capacity}}",
        description="Over the last day.",
    ),
    Panel(
        title="Jobs that will be late",
        expression=f"sum by (namespace, pool) (holdfast_fallback_late_jobs{{{_NAMESPACES}}})",
        legend="{{namespace}} {{pool}}",
    ),
    Panel(
        title="Failed writes",
        expression="sum by (reason) (increase(holdfast_fallback_failed_writes_total[1h]))",
        legend="{{reason}}",
        description="All of them are retried. Numbers are status codes of the API server.",
    ),
    Panel(
        title="Leader",
        expression="sum by (pod) (holdfast_fallback_leader)",
        legend="{{pod}}",
        description="One replica leads.",
    ),
)


def dashboard() -> Json:
    """Return the dashboard in Grafana's format, with variables for the data source and the namespaces."""
    panels: list[JsonValue] = [_panel(panel, number) for number, panel in enumerate(PANELS)]
    variables: list[JsonValue] = [
        {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"},
        {
            "name": "namespace",
            "label": "Namespace",
            "type": "query",
            "datasource": _DATASOURCE,
            "query": {"query": "label_values(holdfast_fallback_jobs, namespace)", "refId": "namespace"},
            "refresh": 2,
            "multi": True,
            "includeAll": True,
            "allValue": ".*",
            "current": {"text": "All", "value": "$__all"},
        },
    ]
    return {
        "uid": UID,
        "title": "Holdfast: jobs on their ladders",
        "tags": ["holdfast"],
        "schemaVersion": 39,
        "editable": False,
        "refresh": "1m",
        "time": {"from": "now-24h", "to": "now"},
        "templating": {"list": variables},
        "panels": panels,
    }


def _panel(panel: Panel, number: int) -> Json:
    per_row = _COLUMNS // _PANEL_WIDTH
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.description,
        "datasource": _DATASOURCE,
        "gridPos": {
            "x": number % per_row * _PANEL_WIDTH,
            "y": number // per_row * _PANEL_HEIGHT,
            "w": _PANEL_WIDTH,
            "h": _PANEL_HEIGHT,
        },
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": "A", "datasource": _DATASOURCE, "expr": panel.expression, "legendFormat": panel.legend}
        ],
    }


#: The API version of the Prometheus operator's kinds.
OPERATOR_API: Final = "monitoring.coreos.com/v1"

#: The label by which the sidecar of Grafana's chart finds dashboards.
_DASHBOARD_LABEL: Final[Mapping[str, str]] = {"grafana_dashboard": "1"}


def service_monitor_spec() -> Json:
    """Return the specification of the ServiceMonitor: every replica is scraped through the headless Service."""
    return {"selector": {"matchLabels": dict(LABELS)}, "endpoints": [{"port": "http", "path": "/metrics"}]}


class Monitoring(ComponentResource):
    """The dashboard and the alerts of the fallback controller (`holdfast:index:Monitoring`).

    Creates a ConfigMap with a Grafana dashboard, and a PrometheusRule with a ServiceMonitor, for which the Prometheus operator
    must be installed. `labels` are those by which a Prometheus selects its rules and monitors. Its namespace is the
    FallbackController's: depend on that.
    """

    def __init__(
        self,
        name: str,
        opts: ResourceOptions | None = None,
        *,
        has_dashboard: bool,
        has_alerts: bool,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__("holdfast:index:Monitoring", name, None, opts)

        def made(part: str, api_version: str, kind: str, fields: Json, **marks: str) -> None:
            metadata = {
                "name": NAME if part == kind.lower() else f"{NAME}-{part}",
                "namespace": CONTROLLER_NAMESPACE,
                "labels": {**LABELS, **marks},
            }
            inside = ResourceOptions(parent=self)
            KubernetesObject(
                f"{name}-{part}", api_version, kind, {"metadata": metadata, **fields}, opts=inside
            )

        if has_dashboard:
            data: Json = {"data": {"holdfast.json": json.dumps(dashboard(), indent=1)}}
            made("dashboard", "v1", "ConfigMap", data, **_DASHBOARD_LABEL)
        if has_alerts:
            rules: Json = {"spec": {"groups": [rule_group()]}}
            made("prometheusrule", OPERATOR_API, "PrometheusRule", rules, **(labels or {}))
            monitor: Json = {"spec": service_monitor_spec()}
            made("servicemonitor", OPERATOR_API, "ServiceMonitor", monitor, **(labels or {}))
        self.register_outputs({})
