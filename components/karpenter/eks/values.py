"""What Karpenter's chart is told on EKS. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holdfast.components.operators.pod_settings import SYSTEM_NODE_SELECTOR, SYSTEM_TOLERATIONS

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json

#: The chart's release and its service account, which the controller's identity is bound to.
SERVICE_ACCOUNT: Final = "karpenter"


@dataclass(frozen=True, kw_only=True)
class ControllerValues:
    """What differs between controllers; `repository` is the image's, without a tag."""

    cluster_name: str
    repository: str
    version: str
    digest: str
    replicas: int
    isolated: bool


def karpenter_values(controller: ControllerValues, queue: str) -> Json:
    """The chart's values; `queue` is the interruption queue's name.

    The chart itself keeps two controllers on two nodes in two zones, and off nodes that Karpenter made.
    """
    return {
        "replicas": controller.replicas,
        "serviceAccount": {"name": SERVICE_ACCOUNT},
        "nodeSelector": SYSTEM_NODE_SELECTOR,
        "tolerations": SYSTEM_TOLERATIONS,
        "controller": {
            # The chart in Karpenter's repository names the release before by tag and digest: both are given, since
            # a digest left over would win over the tag.
            "image": {
                "repository": controller.repository,
                "tag": controller.version,
                "digest": controller.digest,
            },
            # The chart passes both on to the controller. No limit on CPU: throttled, it would be late for a notice.
            "resources": {
                "requests": {"cpu": "500m", "memory": "1Gi"},
                "limits": {"memory": "1Gi"},
            },
        },
        "settings": {
            "clusterName": controller.cluster_name,
            "interruptionQueue": queue,
            "eksControlPlane": True,
            "isolatedVPC": controller.isolated,
        },
    }
