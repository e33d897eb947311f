"""What KubeRay's chart is told. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from components.operators.placement import SYSTEM_NODE_SELECTOR, SYSTEM_TOLERATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scheduling.json import Json


def kuberay_values(version: str, replicas: int, pod_annotations: Mapping[str, str]) -> Json:
    """The values of a KubeRay operator of this version."""
    return {
        "image": {"repository": "quay.io/kuberay/operator", "tag": f"v{version}"},
        "replicas": replicas,
        "leaderElectionEnabled": replicas > 1,
        # The chart puts these on its pods and on nothing else.
        "annotations": pod_annotations,
        "nodeSelector": SYSTEM_NODE_SELECTOR,
        "tolerations": SYSTEM_TOLERATIONS,
    }
