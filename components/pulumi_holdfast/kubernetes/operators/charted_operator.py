"""Helm installation of an operator: one chart for its CRDs, so that upgrades include them, and one for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pulumi import ComponentResource, ResourceOptions

from pulumi_holdfast.config.loader import from_program
from pulumi_holdfast.kubernetes.kubernetes_object import HelmRelease, KubernetesObject
from pulumi_holdfast.kubernetes.network import network_policy, system_spec
from pulumi_holdfast.kubernetes.operators.pod_settings import allow_system_priority
from pulumi_holdfast.ladder.operators import OPERATORS

if TYPE_CHECKING:
    from pulumi_holdfast.ladder.json import Json


_OWN_CHARTS: Final = Path(__file__).resolve().parents[1] / "charts"

#: Where each project publishes its chart.
UPSTREAM: Final[Mapping[str, str]] = {
    "aws-efa-k8s-device-plugin": "https://aws.github.io/eks-charts",
    "nvidia-device-plugin": "https://nvidia.github.io/k8s-device-plugin",
    **{chart: operator.charts for chart, operator in OPERATORS.items()},
}


@dataclass(frozen=True, kw_only=True)
class ChartReference:
    """A chart in the form of a Release; `repository` is set only for chart repositories (`https://…`)."""

    chart: str
    repository: str | None = None


def crd_chart(name: str) -> ChartReference:
    """Return a chart of CRDs, which this package contains."""
    return ChartReference(chart=from_program(_OWN_CHARTS / name))


def chart_reference(charts: str | None, chart: str) -> ChartReference:
    """Return a chart from a directory, an OCI registry (`oci://…`) or a repository (`https://…`).

    `charts` None means the project's own source.
    """
    source = UPSTREAM[chart] if charts is None else charts
    if source.startswith("https://"):
        return ChartReference(chart=chart, repository=source)
    return ChartReference(chart=f"{source.rstrip('/')}/{chart}")


def chart_fields(reference: ChartReference) -> Json:
    """Return the fields of a Release that say where its chart is."""
    if reference.repository is None:
        return {"chart": reference.chart}
    return {"chart": reference.chart, "repositoryOpts": {"repo": reference.repository}}


#: In seconds; enough to pull a controller's image on a new node.
_TIMEOUT: Final = 600


@dataclass(frozen=True, kw_only=True)
class ChartedOperatorArgs:
    """An operator's names, versions and values.

    `release` and `crds_release` are the names of the Helm releases in `namespace`. `crds_chart` is a chart of
    this package. `chart` comes from the directory or address `charts`, None for the project's own. `version`
    is the operator's version, `chart_version` its chart's. `config_maps` maps names to files that the
    operator's pods mount. `allow_from` are the namespaces that reach its pods, `webhook_port` is the port that the API server calls.
    """

    namespace: str
    release: str
    crds_release: str
    crds_chart: str
    charts: str | None
    chart: str
    version: str
    chart_version: str
    values: Json
    allow_from: Sequence[str] = ()
    webhook_port: int | None = None
    config_maps: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])


class ChartedOperator(ComponentResource):
    """An operator installed from two charts (`holdfast:index:ChartedOperator`).

    Creates its namespace, where pods may have a system priority class, with its NetworkPolicy, the release of its CRDs, its ConfigMaps, and the release of its controller, in this
    order: on destroy the controller is removed before its CRDs.
    """

    def __init__(self, name: str, args: ChartedOperatorArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:ChartedOperator", name, None, opts)
        namespace = KubernetesObject(
            f"{name}-namespace",
            "v1",
            "Namespace",
            {"metadata": {"name": args.namespace}},
            opts=ResourceOptions(parent=self),
        )
        priority = allow_system_priority(
            f"{name}-priority", args.namespace, ResourceOptions(parent=self, depends_on=[namespace])
        )
        network_policy(
            f"{name}-network",
            args.namespace,
            system_spec(args.allow_from, args.webhook_port),
            ResourceOptions(parent=self, depends_on=[namespace]),
        )
        crds = HelmRelease(
            f"{name}-crds",
            {
                "name": args.crds_release,
                "namespace": args.namespace,
                **chart_fields(crd_chart(args.crds_chart)),
                "version": args.version,
                "timeout": _TIMEOUT,
            },
            opts=ResourceOptions(parent=self, depends_on=[namespace]),
        )
        config_maps = [
            KubernetesObject(
                f"{name}-{config_map}",
                "v1",
                "ConfigMap",
                {"metadata": {"name": config_map, "namespace": args.namespace}, "data": files},
                opts=ResourceOptions(parent=self, depends_on=[namespace]),
            )
            for config_map, files in args.config_maps.items()
        ]
        HelmRelease(
            f"{name}-controller",
            {
                "name": args.release,
                "namespace": args.namespace,
                **chart_fields(chart_reference(args.charts, args.chart)),
                "version": args.chart_version,
                "values": args.values,
                # Helm installs a chart's CRDs but never upgrades them, so they have their own release.
                "skipCrds": True,
                "timeout": _TIMEOUT,
            },
            opts=ResourceOptions(parent=self, depends_on=[priority, crds, *config_maps]),
        )
        self.register_outputs({})
