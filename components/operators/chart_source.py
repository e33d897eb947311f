"""Where charts come from: beside this module for CRDs, from upstream or a mirror for all others. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

_OWN_CHARTS: Final = Path(__file__).parents[1] / "charts"

#: Where each project publishes its chart.
UPSTREAM: Final[Mapping[str, str]] = {
    "aws-efa-k8s-device-plugin": "https://aws.github.io/eks-charts",
    "jobset": "oci://registry.k8s.io/jobset/charts",
    "karpenter": "oci://public.ecr.aws/karpenter",
    "kuberay-operator": "https://ray-project.github.io/kuberay-helm",
    "nvidia-device-plugin": "https://nvidia.github.io/k8s-device-plugin",
}


@dataclass(frozen=True, kw_only=True)
class ChartReference:
    """A chart as a release names it; `repository` only where the chart's name alone does not say where it lies."""

    chart: str
    repository: str | None = None


def crd_chart(name: str) -> ChartReference:
    """A chart of CRDs, which is part of this package wherever it is run from."""
    return ChartReference(chart=str(_OWN_CHARTS / name))


def chart_reference(charts: str | None, chart: str) -> ChartReference:
    """A chart in a directory, an OCI registry (`oci://…`) or a chart repository (`https://…`); None: upstream's."""
    source = UPSTREAM[chart] if charts is None else charts
    if source.startswith("https://"):
        return ChartReference(chart=chart, repository=source)
    return ChartReference(chart=f"{source.rstrip('/')}/{chart}")
