"""What JobSet's chart is told. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.components.operators.images import image
from holdfast.components.operators.placement import SYSTEM_NODE_SELECTOR, SYSTEM_TOLERATIONS, apart

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json

# What the chart labels the pods of a release `jobset` with.
_PODS: Final = {"app.kubernetes.io/name": "jobset", "app.kubernetes.io/component": "controller"}


def jobset_values(version: str, images: str | None, replicas: int) -> Json:
    """The values of a JobSet controller of this version, with its image from the registry `images`; None: upstream's."""
    return {
        # The chart's own default is a moving tag in the staging registry.
        "image": {
            "repository": image(images, "registry.k8s.io/jobset/jobset"),
            "tag": f"v{version}",
            "pullPolicy": "IfNotPresent",
        },
        "controller": {
            "replicas": replicas,
            "leaderElection": {"enable": replicas > 1},
            "nodeSelector": SYSTEM_NODE_SELECTOR,
            "affinity": apart(_PODS),
            "tolerations": SYSTEM_TOLERATIONS,
        },
    }
