"""What Prometheus and Grafana get of a cluster: rules for alerts, and dashboards."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pulumi import ComponentResource, ResourceOptions

from pulumi_holdfast.kubernetes.admission.job_validation import CAN_FALL_BACK
from pulumi_holdfast.kubernetes.fallback_controller.component import LABELS
from pulumi_holdfast.kubernetes.kubernetes_object import KubernetesObject
from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.ladder.labels import CONTROLLER, CONTROLLER_NAMESPACE, JOBSET_NAME, POOL, RAY_CLUSTER

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
JOBS_UID: Final = "holdfast-jobs"

_COLUMNS: Final = 24
_PANEL_WIDTH: Final = 12
_PANEL_HEIGHT: Final = 8
_DATASOURCE: Final[Json] = {"type": "prometheus", "uid": "${datasource}"}
_NAMESPACES: Final = 'namespace=~"$namespace"'


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One graph: its expression in PromQL, the legend of a series, and the unit as Grafana calls it.

    `more` are further expressions with their legends.
    """

    title: str
    expression: str
    legend: str
    unit: str = "short"
    description: str = ""
    more: Sequence[tuple[str, str]] = ()

    @property
    def queries(self) -> Sequence[tuple[str, str]]:
        """Each expression with its legend."""
        return ((self.expression, self.legend), *self.more)


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


#: A label that the series of a job get here: a JobSet's name, or that of a RayJob's attempt. Prometheus itself uses `job`.
_JOB: Final = "training_job"
_OF_JOBSET, _OF_RAY, _OF_POOL = (
    f"label_{re.sub(r'[^a-zA-Z0-9_]', '_', key)}" for key in (JOBSET_NAME, RAY_CLUSTER, POOL)
)
_OF_POD: Final = "on (namespace, pod)"
#: The pods of the chosen jobs, each 1, with the name of its job. Duplicates of another kube-state-metrics count once.
_PODS: Final = (
    f"max by (namespace, pod, {_JOB}) (label_join("
    f'kube_pod_labels{{{_NAMESPACES},{_OF_JOBSET}=~"$job"}} or kube_pod_labels{{{_NAMESPACES},{_OF_RAY}=~"$job"}}, '
    f'"{_JOB}", "", "{_OF_JOBSET}", "{_OF_RAY}"))'
)
_RUNNING: Final = f'max by (namespace, pod) (kube_pod_status_phase{{{_NAMESPACES},phase="Running"}})'
_NODES: Final = f'max by (namespace, pod, node) (kube_pod_info{{{_NAMESPACES},node!=""}})'
_POOLS: Final = f'max by (node, {_OF_POOL}) (kube_node_labels{{{_OF_POOL}!=""}})'


def _of_jobs(metric: str) -> str:
    """The series of a metric of GPUs that pods of the chosen jobs have, with the name of the job."""
    return f"{metric}{{{_NAMESPACES}}} * {_OF_POD} group_left ({_JOB}) {_PODS}"


def _in_an_hour(metric: str) -> str:
    return f"sum by (pool, capacity) (rate({metric}{{{_NAMESPACES}}}[1h])) * 3600"


#: One below the other, so that their times are.
JOB_PANELS: Final[Sequence[Panel]] = (
    Panel(
        title="GPU use",
        expression=f"avg by (namespace, {_JOB}) ({_of_jobs('DCGM_FI_DEV_GPU_UTIL')})",
        legend=f"{{{{namespace}}}} {{{{{_JOB}}}}}",
        unit="percent",
        description="The average of the GPUs of a job.",
    ),
    Panel(
        title="GPU memory",
        expression=f"sum by (namespace, {_JOB}) ({_of_jobs('DCGM_FI_DEV_FB_USED')}) / (sum by (namespace, {_JOB}) "
        f"({_of_jobs('DCGM_FI_DEV_FB_USED')}) + sum by (namespace, {_JOB}) ({_of_jobs('DCGM_FI_DEV_FB_FREE')}))",
        legend=f"{{{{namespace}}}} {{{{{_JOB}}}}}",
        unit="percentunit",
    ),
    Panel(
        title="Pods by pool",
        expression=f"sum by ({_OF_POOL}) ({_NODES} * {_OF_POD} group_left () {_RUNNING} * {_OF_POD} group_left ({_JOB}) {_PODS} "
        f"* on (node) group_left ({_OF_POOL}) {_POOLS})",
        legend=f"{{{{{_OF_POOL}}}}}",
        description="Running pods of the chosen jobs.",
    ),
    Panel(
        title="Evictions and moves",
        expression=f'sum by (pool) (increase(holdfast_fallback_outages_total{{{_NAMESPACES},cause="eviction"}}[10m]))',
        legend="evicted from {{pool}}",
        more=(
            (
                f"sum by (pool, purpose) (increase(holdfast_fallback_moves_total{{{_NAMESPACES}}}[10m]))",
                "to {{pool}}: {{purpose}}",
            ),
        ),
        description="Of all jobs of the namespaces, in the last 10 minutes.",
    ),
    Panel(
        title="Cost by pool, in an hour",
        expression=_in_an_hour("holdfast_fallback_cost_total"),
        legend="{{pool}} {{capacity}}",
        description="Of all jobs of the namespaces, in the currency of the tiers' prices.",
    ),
    Panel(
        title="Saved against on-demand, in an hour",
        expression=f"{_in_an_hour('holdfast_fallback_on_demand_cost_total')} - {_in_an_hour('holdfast_fallback_cost_total')}",
        legend="{{pool}} {{capacity}}",
        description="What the nodes would have cost at the price of the ladder's on-demand tier, less what they have cost.",
    ),
    Panel(
        title="Last XID error of a GPU",
        expression=f"max by (namespace, pod) ({_of_jobs('DCGM_FI_DEV_XID_ERRORS')}) > 0",
        legend="{{namespace}} {{pod}}",
        description="NVIDIA lists the meaning of each number.",
    ),
)


def dashboard() -> Json:
    """Return the dashboard of ladders in Grafana's format, with variables for the data source and the namespaces."""
    return _dashboard(UID, "Holdfast: jobs on their ladders", PANELS, _PANEL_WIDTH)


def job_dashboard() -> Json:
    """Return the dashboard of jobs, with a variable for the jobs, too."""
    jobs = _variable("job", "Job", f"query_result({_PODS.replace('$job', '.+')})", all_value=".+")
    found: Json = {**jobs, "regex": f'/{_JOB}="([^"]+)"/'}
    return _dashboard(JOBS_UID, "Holdfast: training jobs", JOB_PANELS, _COLUMNS, found)


def _dashboard(uid: str, title: str, panels: Sequence[Panel], width: int, *variables: Json) -> Json:
    namespaces = _variable(
        "namespace", "Namespace", "label_values(holdfast_fallback_jobs, namespace)", all_value=".*"
    )
    datasource: Json = {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
    }
    return {
        "uid": uid,
        "title": title,
        "tags": ["holdfast"],
        "schemaVersion": 39,
        "editable": False,
        "graphTooltip": 1,
        "refresh": "1m",
        "time": {"from": "now-24h", "to": "now"},
        "templating": {"list": [datasource, namespaces, *variables]},
        "panels": [_panel(panel, number, width) for number, panel in enumerate(panels)],
    }


def _variable(name: str, label: str, query: str, *, all_value: str) -> Json:
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": _DATASOURCE,
        "query": {"query": query, "refId": name},
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": all_value,
        "current": {"text": "All", "value": "$__all"},
    }


def _panel(panel: Panel, number: int, width: int) -> Json:
    per_row = _COLUMNS // width
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.description,
        "datasource": _DATASOURCE,
        "gridPos": {
            "x": number % per_row * width,
            "y": number // per_row * _PANEL_HEIGHT,
            "w": width,
            "h": _PANEL_HEIGHT,
        },
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [
            {"refId": chr(ord("A") + index), "datasource": _DATASOURCE, "expr": query, "legendFormat": legend}
            for index, (query, legend) in enumerate(panel.queries)
        ],
    }


#: The API version of the Prometheus operator's kinds.
OPERATOR_API: Final = "monitoring.coreos.com/v1"

#: The label by which the sidecar of Grafana's chart finds dashboards.
_DASHBOARD_LABEL: Final[Mapping[str, str]] = {"grafana_dashboard": "1"}


def service_monitor_spec() -> Json:
    """Return the specification of the ServiceMonitor: every replica is scraped through the headless Service.

    Its metrics are about other namespaces than its own.
    """
    endpoint: Json = {"port": "http", "path": "/metrics", "honorLabels": True}
    return {"selector": {"matchLabels": dict(LABELS)}, "endpoints": [endpoint]}


class Monitoring(ComponentResource):
    """The dashboards, and the alerts of the fallback controller (`holdfast:index:Monitoring`).

    Creates a ConfigMap with a Grafana dashboard of ladders and, with `has_jobs`, one of jobs, and a PrometheusRule with a ServiceMonitor,
    for which the Prometheus operator must be installed. `labels` are those by which a Prometheus selects its rules and monitors. Its namespace is the
    FallbackController's: depend on that.
    """

    def __init__(
        self,
        name: str,
        opts: ResourceOptions | None = None,
        *,
        has_dashboard: bool,
        has_alerts: bool,
        has_jobs: bool = False,
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
            shown = {"holdfast.json": dashboard(), **({"jobs.json": job_dashboard()} if has_jobs else {})}
            data: Json = {"data": {file: json.dumps(each, indent=1) for file, each in shown.items()}}
            made("dashboard", "v1", "ConfigMap", data, **_DASHBOARD_LABEL)
        if has_alerts:
            rules: Json = {"spec": {"groups": [rule_group()]}}
            made("prometheusrule", OPERATOR_API, "PrometheusRule", rules, **(labels or {}))
            monitor: Json = {"spec": service_monitor_spec()}
            made("servicemonitor", OPERATOR_API, "ServiceMonitor", monitor, **(labels or {}))
        self.register_outputs({})
