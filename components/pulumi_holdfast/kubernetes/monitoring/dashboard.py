"""The Grafana dashboard of the fallback controller's metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi_holdfast.ladder.json import Json, JsonValue

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
