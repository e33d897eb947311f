"""An operator made of two charts, so that an upgrade upgrades its CRDs too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pulumi import ComponentResource, ResourceOptions
from pulumi_kubernetes.core.v1 import ConfigMap, Namespace
from pulumi_kubernetes.helm.v3 import Release, ReleaseArgs

from holdfast.components.operators.chart_source import chart_reference, crd_chart
from holdfast.components.operators.repository import repository_opts

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json

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
