"""What the chart of Karpenter's simulated provider is told. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.components.operators.pod_settings import SYSTEM_NODE_SELECTOR, SYSTEM_TOLERATIONS

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json

#: The ConfigMap with what is sold, and its file.
MARKET: Final = "instance-types"
MARKET_FILE: Final = "instance-types.json"

_MARKET_FOLDER: Final = "/etc/karpenter"


def kwok_karpenter_values(version: str, market: str) -> Json:
    """The chart's values; `market` is the fingerprint of what is sold."""
    return {
        "replicas": 1,
        "nodeSelector": SYSTEM_NODE_SELECTOR,
        "tolerations": SYSTEM_TOLERATIONS,
        # The file is read once, at the start: another catalogue must be another pod.
        "podAnnotations": {"holdfast.dev/instance-types": market},
        "extraVolumes": [{"name": MARKET, "configMap": {"name": MARKET}}],
        "controller": {
            # Simulated pods pull nothing, but the chart has no image of its own and the pod must name one.
            "image": {"repository": "sigs.k8s.io/karpenter/kwok", "tag": f"v{version}"},
            # The chart passes both on to the controller, which does not start without them.
            "resources": {
                "requests": {"cpu": "500m", "memory": "512Mi"},
                "limits": {"cpu": "1", "memory": "1Gi"},
            },
            "env": [
                {"name": "DISABLE_LEADER_ELECTION", "value": "true"},
                {"name": "INSTANCE_TYPES_FILE_PATH", "value": f"{_MARKET_FOLDER}/{MARKET_FILE}"},
            ],
            "extraVolumeMounts": [{"name": MARKET, "mountPath": _MARKET_FOLDER, "readOnly": True}],
        },
        # The chart leaves two of these out of its values, and the controller refuses an empty gate.
        "settings": {
            "featureGates": {
                "capacityBuffer": False,
                "nodeRepair": False,
                "spotToSpotConsolidation": False,
                "staticCapacity": False,
            }
        },
    }
