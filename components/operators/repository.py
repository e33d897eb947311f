"""A chart's repository as a release takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulumi_kubernetes.helm.v3 import RepositoryOptsArgs

if TYPE_CHECKING:
    from holdfast.components.operators.chart_source import ChartReference


def repository_opts(reference: ChartReference) -> RepositoryOptsArgs | None:
    """The repository, None where the chart's own name is an address or a path."""
    return None if reference.repository is None else RepositoryOptsArgs(repo=reference.repository)
