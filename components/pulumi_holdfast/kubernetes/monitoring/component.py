"""Creates the dashboard and the alerts of the fallback controller in its namespace."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
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


@dataclass(frozen=True, kw_only=True)
class MonitoringArgs:
    """What to create. `labels` are those by which a Prometheus selects its rules and monitors."""

    has_dashboard: bool
    has_alerts: bool
    labels: Mapping[str, str] = field(default_factory=dict[str, str])


def service_monitor_spec() -> Json:
    """Return the specification of the ServiceMonitor: every replica is scraped through the headless Service."""
    return {"selector": {"matchLabels": dict(LABELS)}, "endpoints": [{"port": "http", "path": "/metrics"}]}


class Monitoring(ComponentResource):
    """The dashboard and the alerts of the fallback controller (`holdfast:index:Monitoring`).

    Creates a ConfigMap with a Grafana dashboard, and a PrometheusRule with a ServiceMonitor, for which the Prometheus operator
    must be installed. Its namespace is the FallbackController's: depend on that.
    """

    def __init__(self, name: str, args: MonitoringArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:Monitoring", name, None, opts)
        inside = ResourceOptions(parent=self)
        if args.has_dashboard:
            KubernetesObject(
                f"{name}-dashboard",
                "v1",
                "ConfigMap",
                {
                    "metadata": {
                        "name": f"{NAME}-dashboard",
                        "namespace": CONTROLLER_NAMESPACE,
                        "labels": {**LABELS, **_DASHBOARD_LABEL},
                    },
                    "data": {"holdfast.json": json.dumps(dashboard(), indent=1)},
                },
                opts=inside,
            )
        if args.has_alerts:
            for kind, spec in (
                ("PrometheusRule", {"groups": [rule_group()]}),
                ("ServiceMonitor", service_monitor_spec()),
            ):
                KubernetesObject(
                    f"{name}-{kind.lower()}",
                    OPERATOR_API,
                    kind,
                    {
                        "metadata": {
                            "name": NAME,
                            "namespace": CONTROLLER_NAMESPACE,
                            "labels": {**LABELS, **args.labels},
                        },
                        "spec": spec,
                    },
                    opts=inside,
                )
        self.register_outputs({})
