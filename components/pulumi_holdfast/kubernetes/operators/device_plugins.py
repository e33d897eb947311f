"""Device plugins, which report a node's GPUs and fabric adapters to the kubelet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pulumi import ComponentResource, ResourceOptions

from pulumi_holdfast.kubernetes.kubernetes_object import HelmRelease
from pulumi_holdfast.kubernetes.operators.charted_operator import chart_fields, chart_reference
from pulumi_holdfast.kubernetes.operators.pod_settings import image
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import EFA_NODE, EFA_NODE_VALUE, GPU_NODE, GPU_NODE_VALUE

# The account of the first regions; later regions and each partition have their own.
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
    """Return EKS's image registry of a region, the only one that an isolated VPC reaches."""
    return f"{_ACCOUNTS.get(region, _ACCOUNT)}{registries_of(region)}"


def registries_of(region: str) -> str:
    """Return the end of the hosts of a region's ECR registries, which follows their account."""
    suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    return f".dkr.ecr.{region}.{suffix}"


# The plugin runs on every node with its hardware, because a node without it offers no devices.
_EVERY_TAINT: Final[Sequence[Json]] = ({"operator": "Exists"},)


def nvidia_values(images: str | None) -> Json:
    """Return the values of NVIDIA's chart; `images` is a registry, None for NVIDIA's own."""
    return {
        "image": {"repository": image(images, "nvcr.io/nvidia/k8s-device-plugin")},
        "tolerations": _EVERY_TAINT,
        # A label that the chart's affinity accepts. Its other labels come from node feature discovery, which
        # would add an agent to every node to detect what the pool's machine types already say.
        "nodeSelector": {GPU_NODE: GPU_NODE_VALUE},
        "gfd": {"enabled": False},
        "nfd": {"enabled": False},
    }


def efa_values(images: str | None, region: str) -> Json:
    """Return the values of AWS's EFA chart; `images` is a registry, None for the region's EKS registry."""
    return {
        "image": {"repository": image(images, f"{eks_registry(region)}/eks/aws-efa-k8s-device-plugin")},
        "tolerations": _EVERY_TAINT,
        # Instead of the chart's list of all types that can have an adapter: only pools with EFA attach one.
        "supportedInstanceLabels": {"keys": [EFA_NODE], "values": [EFA_NODE_VALUE]},
    }


#: The namespace of node agents, where pods may use the system priority classes.
NAMESPACE: Final = "kube-system"

_NVIDIA: Final = "nvidia-device-plugin"
_EFA: Final = "aws-efa-k8s-device-plugin"


class DevicePlugins(ComponentResource):
    """The device plugins of NVIDIA and EFA (`holdfast:index:DevicePlugins`).

    Creates a release for each in `kube-system`. They tolerate every taint: without them the node never offers
    the resources that its pods request, and Karpenter never considers it ready. `charts` is a directory or address of charts,
    `images` a registry; None for the projects' own. The versions are the charts'; these determine the images. `efa_version` is
    None if no pool has fabric adapters; `region` selects the registry of that plugin's image.
    """

    def __init__(
        self,
        name: str,
        opts: ResourceOptions | None = None,
        *,
        charts: str | None,
        images: str | None,
        nvidia_version: str,
        efa_version: str | None,
        region: str,
    ) -> None:
        super().__init__("holdfast:index:DevicePlugins", name, None, opts)
        plugins = {
            "nvidia": (_NVIDIA, nvidia_version, nvidia_values(images)),
            "efa": (_EFA, efa_version, efa_values(images, region)),
        }
        for part, (chart, version, values) in plugins.items():
            if version is not None:
                release = {
                    "name": chart,
                    "namespace": NAMESPACE,
                    **chart_fields(chart_reference(charts, chart)),
                    "version": version,
                    "values": values,
                }
                HelmRelease(f"{name}-{part}", release, opts=ResourceOptions(parent=self))
        self.register_outputs({})
