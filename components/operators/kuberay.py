"""What KubeRay's chart is told. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.components.operators.images import image
from holdfast.components.operators.placement import SYSTEM_NODE_SELECTOR, SYSTEM_TOLERATIONS, apart

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json

# What the chart labels its pods with.
_PODS: Final = {"app.kubernetes.io/name": "kuberay-operator"}


def kuberay_values(version: str, images: str | None, replicas: int) -> Json:
    """The values of a KubeRay operator of this version, with its image from the registry `images`; None: upstream's."""
    return {
        "image": {"repository": image(images, "quay.io/kuberay/operator"), "tag": f"v{version}"},
        "replicas": replicas,
        "leaderElectionEnabled": replicas > 1,
        "nodeSelector": SYSTEM_NODE_SELECTOR,
        "affinity": apart(_PODS),
        "tolerations": SYSTEM_TOLERATIONS,
    }
