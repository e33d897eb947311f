"""Karpenter for simulated nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulumi import ComponentResource, ResourceOptions

from holdfast.components.karpenter.kwok_values import MARKET, MARKET_FILE, kwok_karpenter_values
from holdfast.components.karpenter.simulated_market import fingerprint, instance_types_file
from holdfast.components.operators.charted_operator import ChartedOperator, ChartedOperatorArgs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.scheduling.machines import Machine

NAMESPACE: Final = "karpenter"


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
                chart="karpenter-kwok",
                version=args.version,
                chart_version=args.chart_version,
                values=kwok_karpenter_values(args.version, fingerprint(market)),
                config_maps={MARKET: {MARKET_FILE: market}},
            ),
            opts=ResourceOptions(parent=self),
        )
        self.register_outputs({})
