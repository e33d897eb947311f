"""What JobSet's chart is told. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from components.operators.placement import SYSTEM_NODE_SELECTOR, SYSTEM_TOLERATIONS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scheduling.json import Json


def jobset_values(version: str, replicas: int, pod_annotations: Mapping[str, str]) -> Json:
    """The values of a JobSet controller of this version."""
    return {
        # The chart's own default is a moving tag in the staging registry.
        "image": {
            "repository": "registry.k8s.io/jobset/jobset",
            "tag": f"v{version}",
            "pullPolicy": "IfNotPresent",
        },
        "controller": {
            "replicas": replicas,
            "leaderElection": {"enable": replicas > 1},
            "podAnnotations": pod_annotations,
            "nodeSelector": SYSTEM_NODE_SELECTOR,
            "tolerations": SYSTEM_TOLERATIONS,
        },
    }
