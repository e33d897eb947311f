"""Device plugins: what tells the kubelet of a node's GPUs and fabric adapters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulumi import ComponentResource, ResourceOptions
from pulumi_kubernetes.helm.v3 import Release, ReleaseArgs

from holdfast.components.operators.charted_operator import chart_reference, repository_opts
from holdfast.components.operators.pod_settings import image
from holdfast.scheduling.labels import EFA_NODE, EFA_NODE_VALUE, GPU_NODE, GPU_NODE_VALUE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.components.operators.charted_operator import ChartReference
    from holdfast.scheduling.json import Json


# Regions that came first share an account; each later one, and each partition, has its own.
_ACCOUNT: Final = "602401143452"
_ACCOUNTS: Final[Mapping[str, str]] = {
    "af-south-1": "877085696533",
    "ap-east-1": "800184023465",
    "ap-south-2": "900889452093",
    "ap-southeast-3": "296578399912",
    "ap-southeast-4": "491585149902",
    "ap-southeast-5": "151610086707",
    "ap-southeast-6": "333609536671",
    "ap-southeast-7": "121268973566",
    "ca-west-1": "761377655185",
    "cn-north-1": "918309763551",
    "cn-northwest-1": "961992271922",
    "eu-central-2": "900612956339",
    "eu-south-1": "590381155156",
    "eu-south-2": "455263428931",
    "il-central-1": "066635153087",
    "me-central-1": "759879836304",
    "me-south-1": "558608220178",
    "mx-central-1": "730335286997",
    "us-gov-east-1": "151742754352",
    "us-gov-west-1": "013241004608",
}


def eks_registry(region: str) -> str:
    """The registry of a region: the only one that a VPC without internet reaches, by its endpoint there."""
    suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    return f"{_ACCOUNTS.get(region, _ACCOUNT)}.dkr.ecr.{region}.{suffix}"


# A node that keeps its plugin out offers no devices: the plugin goes wherever its hardware is.
_EVERY_TAINT: Final[Sequence[Json]] = ({"operator": "Exists"},)


def nvidia_values(images: str | None) -> Json:
    """The values of NVIDIA's device plugin, with its image from the registry `images`; None: upstream's."""
    return {
        "image": {"repository": image(images, "nvcr.io/nvidia/k8s-device-plugin")},
        "tolerations": _EVERY_TAINT,
        # One of the labels that the chart's own affinity lets in. The others come from node feature discovery, which
        # would be one more agent on every node to find out what a pool's machine types say already.
        "nodeSelector": {GPU_NODE: GPU_NODE_VALUE},
        "gfd": {"enabled": False},
        "nfd": {"enabled": False},
    }


def efa_values(images: str | None, region: str) -> Json:
    """The values of AWS's EFA device plugin, with its image from the registry `images`; None: that of the region."""
    return {
        "image": {"repository": image(images, f"{eks_registry(region)}/eks/aws-efa-k8s-device-plugin")},
        "tolerations": _EVERY_TAINT,
        # In place of the chart's list of every type that could have an adapter: a node has one only if its pool does.
        "supportedInstanceLabels": {"keys": [EFA_NODE], "values": [EFA_NODE_VALUE]},
    }


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
