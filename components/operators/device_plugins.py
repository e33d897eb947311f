"""Device plugins: what tells the kubelet of a node's GPUs and fabric adapters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulumi import ComponentResource, ResourceOptions
from pulumi_kubernetes.helm.v3 import Release, ReleaseArgs

from holdfast.components.operators.chart_source import chart_reference
from holdfast.components.operators.device_plugin_values import efa_values, nvidia_values
from holdfast.components.operators.repository import repository_opts

if TYPE_CHECKING:
    from holdfast.components.operators.chart_source import ChartReference
    from holdfast.scheduling.json import Json

#: Beside the cluster's own agents of each node, where pods may always have the priority that these have.
NAMESPACE: Final = "kube-system"

_NVIDIA: Final = "nvidia-device-plugin"
_EFA: Final = "aws-efa-k8s-device-plugin"


@dataclass(frozen=True, kw_only=True)
class DevicePluginsArgs:
    """`charts` is a directory or address of charts, `images` a registry, each None for upstream's own.

    Versions are the charts', which name their images' versions themselves. `efa_version` is None where no pool has
    fabric adapters; `region` is the one whose registry holds that plugin's image.
    """

    charts: str | None
    images: str | None
    nvidia_version: str
    efa_version: str | None
    region: str


class DevicePlugins(ComponentResource):
    """NVIDIA's device plugin on every node with GPUs, AWS's on every node with fabric adapters.

    Creates a release for each in `kube-system`. Without them Karpenter never takes a node of such a pool for ready,
    since the resource which its pods ask for does not appear: they tolerate every taint a node can have.
    """

    def __init__(self, name: str, args: DevicePluginsArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:DevicePlugins", name, None, opts)
        Release(
            f"{name}-nvidia",
            _release(
                chart_reference(args.charts, _NVIDIA),
                _NVIDIA,
                args.nvidia_version,
                nvidia_values(args.images),
            ),
            opts=ResourceOptions(parent=self),
        )
        if args.efa_version is not None:
            Release(
                f"{name}-efa",
                _release(
                    chart_reference(args.charts, _EFA),
                    _EFA,
                    args.efa_version,
                    efa_values(args.images, args.region),
                ),
                opts=ResourceOptions(parent=self),
            )
        self.register_outputs({})


def _release(reference: ChartReference, name: str, version: str, values: Json) -> ReleaseArgs:
    return ReleaseArgs(
        name=name,
        namespace=NAMESPACE,
        chart=reference.chart,
        repository_opts=repository_opts(reference),
        version=version,
        values=values,
    )
