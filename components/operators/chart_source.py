"""Where charts come from: beside this module for CRDs, from upstream or a mirror for controllers. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

_OWN_CHARTS: Final = Path(__file__).parents[1] / "charts"


@dataclass(frozen=True, kw_only=True)
class ChartReference:
    """A chart as a release names it; `repository` only where the chart's name alone does not say where it lies."""

    chart: str
    repository: str | None = None


def crd_chart(name: str) -> ChartReference:
    """A chart of CRDs, which is part of this package wherever it is run from."""
    return ChartReference(chart=str(_OWN_CHARTS / name))


def chart_reference(source: str, chart: str) -> ChartReference:
    """A chart in a source: a directory, an OCI registry (`oci://…`) or a chart repository (`https://…`)."""
    if source.startswith("https://"):
        return ChartReference(chart=chart, repository=source)
    return ChartReference(chart=f"{source.rstrip('/')}/{chart}")
