"""An operator made of two charts, so that an upgrade upgrades its CRDs too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pulumi import ComponentResource, ResourceOptions
from pulumi_kubernetes.core.v1 import ConfigMap, Namespace
from pulumi_kubernetes.helm.v3 import Release, ReleaseArgs, RepositoryOptsArgs

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json


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


def repository_opts(reference: ChartReference) -> RepositoryOptsArgs | None:
    """The repository, None where the chart's own name is an address or a path."""
    return None if reference.repository is None else RepositoryOptsArgs(repo=reference.repository)


#: A controller whose image is pulled on a fresh node is up well within this many seconds.
_TIMEOUT: Final = 600


@dataclass(frozen=True, kw_only=True)
class ChartedOperatorArgs:
    """An operator's names, versions and values.

    `release` and `crds_release` name the helm releases in `namespace`. `crds_chart` is a chart of this package;
    `charts` is the directory or address which `chart` is taken from, None for upstream's own. `version` is the
    operator's, `chart_version` its chart's. `config_maps` maps names to the files which the operator's pods mount.
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
    config_maps: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])


class ChartedOperator(ComponentResource):
    """One operator.

    Creates its namespace, the release of its CRDs, the ConfigMaps it mounts, and the release of its controller. Each
    waits for the one before; on destroy the controller goes while its CRDs are still there.
    """

    def __init__(self, name: str, args: ChartedOperatorArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:ChartedOperator", name, None, opts)
        namespace = Namespace(
            f"{name}-namespace",
            metadata={"name": args.namespace},
            opts=ResourceOptions(parent=self),
        )
        crds = Release(
            f"{name}-crds",
            ReleaseArgs(
                name=args.crds_release,
                namespace=args.namespace,
                chart=crd_chart(args.crds_chart).chart,
                version=args.version,
                timeout=_TIMEOUT,
            ),
            opts=ResourceOptions(parent=self, depends_on=[namespace]),
        )
        config_maps = [
            ConfigMap(
                f"{name}-{config_map}",
                metadata={"name": config_map, "namespace": args.namespace},
                data=files,
                opts=ResourceOptions(parent=self, depends_on=[namespace]),
            )
            for config_map, files in args.config_maps.items()
        ]
        reference = chart_reference(args.charts, args.chart)
        Release(
            f"{name}-controller",
            ReleaseArgs(
                name=args.release,
                namespace=args.namespace,
                chart=reference.chart,
                repository_opts=repository_opts(reference),
                version=args.chart_version,
                values=args.values,
                # Helm installs a chart's CRDs once and never upgrades them: they have a release of their own.
                skip_crds=True,
                timeout=_TIMEOUT,
            ),
            opts=ResourceOptions(parent=self, depends_on=[crds, *config_maps]),
        )
        self.register_outputs({})
