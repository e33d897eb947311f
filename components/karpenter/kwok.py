"""Karpenter for simulated nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulumi import ComponentResource, ResourceOptions

from components.karpenter.simulated_market import fingerprint, instance_types_file
from components.operators.charted_operator import ChartedOperator, ChartedOperatorArgs
from components.operators.placement import SYSTEM_NODE_SELECTOR, SYSTEM_TOLERATIONS
from scheduling.labels import HOSTED, HOSTED_VALUE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from scheduling.json import Json
    from scheduling.machines import Machine

NAMESPACE: Final = "karpenter"

_MARKET: Final = "instance-types"
_MARKET_FILE: Final = "instance-types.json"
_MARKET_FOLDER: Final = "/etc/karpenter"


@dataclass(frozen=True, kw_only=True)
class KwokKarpenterArgs:
    """What is sold, and where Karpenter comes from.

    `charts` is a directory or address of charts; `version` Karpenter's, `chart_version` that of its chart. `machines`
    and `zones` are what the simulated cloud offers.
    """

    charts: str
    version: str
    chart_version: str
    machines: Sequence[Machine]
    zones: Sequence[str]


class KwokKarpenter(ComponentResource):
    """Karpenter with its provider of simulated machines.

    Creates the namespace `karpenter`, the release of its CRDs, the ConfigMap with what is sold, and the controller's
    release. It must outlive the pools: without it their nodes' finalizers are never removed.
    """

    def __init__(self, name: str, args: KwokKarpenterArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:KwokKarpenter", name, None, opts)
        market = instance_types_file(args.machines, args.zones)
        ChartedOperator(
            f"{name}-operator",
            ChartedOperatorArgs(
                namespace=NAMESPACE,
                release="karpenter",
                crds_release="karpenter-crds",
                crds_chart="karpenter-kwok-crds",
                charts=args.charts,
                chart="karpenter",
                version=args.version,
                chart_version=args.chart_version,
                values=values(args.version, fingerprint(market)),
                config_maps={_MARKET: {_MARKET_FILE: market}},
            ),
            opts=ResourceOptions(parent=self),
        )
        self.register_outputs({})


def values(version: str, market: str) -> Json:
    """The chart's values; `market` is the fingerprint of what is sold."""
    return {
        "replicas": 1,
        "nodeSelector": SYSTEM_NODE_SELECTOR,
        "tolerations": SYSTEM_TOLERATIONS,
        # The file is read once, at the start: another catalogue must be another pod.
        "podAnnotations": {HOSTED: HOSTED_VALUE, "holdfast.dev/instance-types": market},
        "extraVolumes": [{"name": _MARKET, "configMap": {"name": _MARKET}}],
        "controller": {
            # Simulated pods pull nothing; the image says what runs, and is what a pod is recognised by.
            "image": {"repository": "sigs.k8s.io/karpenter/kwok", "tag": f"v{version}"},
            # The chart passes both on to the controller, which does not start without them.
            "resources": {
                "requests": {"cpu": "500m", "memory": "512Mi"},
                "limits": {"cpu": "1", "memory": "1Gi"},
            },
            "env": [
                {"name": "DISABLE_LEADER_ELECTION", "value": "true"},
                {"name": "INSTANCE_TYPES_FILE_PATH", "value": f"{_MARKET_FOLDER}/{_MARKET_FILE}"},
            ],
            "extraVolumeMounts": [{"name": _MARKET, "mountPath": _MARKET_FOLDER, "readOnly": True}],
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
