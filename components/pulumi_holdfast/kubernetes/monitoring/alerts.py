"""The alerts on the fallback controller's metrics, as rules of the Prometheus operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pulumi_holdfast.kubernetes.admission.job_validation import CAN_FALL_BACK
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
