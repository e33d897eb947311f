"""What the device plugins' charts are told. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.components.operators.eks_registry import eks_registry
from holdfast.components.operators.images import image
from holdfast.scheduling.labels import EFA_NODE, EFA_NODE_VALUE, GPU_NODE, GPU_NODE_VALUE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.scheduling.json import Json

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
