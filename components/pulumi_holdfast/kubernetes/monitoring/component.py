"""Creates the dashboard and the alerts of the fallback controller in its namespace."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from pulumi import ComponentResource, ResourceOptions

from pulumi_holdfast.kubernetes.fallback_controller.component import LABELS
from pulumi_holdfast.kubernetes.kubernetes_object import KubernetesObject
from pulumi_holdfast.kubernetes.monitoring.alerts import NAME, rule_group
from pulumi_holdfast.kubernetes.monitoring.dashboard import dashboard
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import CONTROLLER_NAMESPACE

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
