"""Karpenter with its kwok provider, for simulated nodes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from pulumi import ComponentResource, ResourceOptions

from pulumi_holdfast.kubernetes.operators.charted_operator import ChartedOperator, ChartedOperatorArgs
from pulumi_holdfast.kubernetes.operators.pod_settings import SYSTEM_NODE_SELECTOR, SYSTEM_TOLERATIONS
from pulumi_holdfast.ladder.labels import (
    CAPACITY_TYPE,
    CONTROLLER_NAMESPACE,
    GPU_RESOURCE,
    RESERVATION_ID,
    ZONE,
    CapacityType,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pulumi_holdfast.ladder.json import Json
    from pulumi_holdfast.ladder.machines import Machine


#: A spot machine's price relative to on-demand, as in the cost model.
SPOT_SHARE: Final = 0.1

_PRICE: Final = {CapacityType.ON_DEMAND: 1.0, CapacityType.SPOT: SPOT_SHARE}


@dataclass(frozen=True, kw_only=True)
class KwokReservation:
    """A reservation of the simulated cloud: machines of these types, as many as `count` of each in each zone."""

    id: str
    types: frozenset[str]
    count: int


def instance_types_file(
    machines: Iterable[Machine], zones: Sequence[str], reservations: Sequence[KwokReservation] = ()
) -> str:
    """Return the instance types file: each machine in each zone, on-demand and spot, and what is reserved."""
    types = [
        _instance_type(machine, zones, [each for each in reservations if machine.name in each.types])
        for machine in sorted(machines, key=lambda machine: machine.name)
    ]
    return json.dumps(types, separators=(",", ":"), sort_keys=True)


def fingerprint(file: str) -> str:
    """Return a digest of the file, which Karpenter reads only when it starts."""
    return sha256(file.encode()).hexdigest()


def _instance_type(machine: Machine, zones: Sequence[str], reservations: Sequence[KwokReservation]) -> Json:
    gpus = {GPU_RESOURCE: str(machine.gpus)} if machine.gpus else {}
    return {
        "name": machine.name,
        "architecture": "amd64",
        "operatingSystems": ["linux"],
        "resources": {
            "cpu": str(machine.vcpus),
            "memory": f"{machine.memory_mib}Mi",
            "ephemeral-storage": "100Gi",
            "pods": "110",
            **gpus,
        },
        "offerings": [
            *(_offering(machine, capacity, zone) for zone in zones for capacity in _PRICE),
            *(_reserved(reservation, zone) for zone in zones for reservation in reservations),
        ],
    }


def _reserved(reservation: KwokReservation, zone: str) -> Json:
    return {
        # Paid for already: Karpenter prefers it to all others.
        "Price": 0,
        "Available": True,
        "ReservationCapacity": reservation.count,
        "Requirements": [
            {"key": CAPACITY_TYPE, "operator": "In", "values": [CapacityType.RESERVED.value]},
            {"key": RESERVATION_ID, "operator": "In", "values": [reservation.id]},
            {"key": ZONE, "operator": "In", "values": [zone]},
        ],
    }


def _offering(machine: Machine, capacity: CapacityType, zone: str) -> Json:
    return {
        "Price": round(machine.hourly_price * _PRICE[capacity], 6),
        "Available": True,
        "Requirements": [
            {"key": CAPACITY_TYPE, "operator": "In", "values": [capacity.value]},
            {"key": ZONE, "operator": "In", "values": [zone]},
        ],
    }


#: The ConfigMap with the instance types, and its file.
MARKET: Final = "instance-types"
MARKET_FILE: Final = "instance-types.json"

_MARKET_FOLDER: Final = "/etc/karpenter"


def kwok_karpenter_values(version: str, market: str) -> Json:
    """Return the chart's values; `market` is the digest of the instance types file."""
    return {
        "replicas": 1,
        "nodeSelector": SYSTEM_NODE_SELECTOR,
        "tolerations": SYSTEM_TOLERATIONS,
        # Restarts the pod when the file changes: it is read only at the start.
        "podAnnotations": {"holdfast.dev/instance-types": market},
        "extraVolumes": [{"name": MARKET, "configMap": {"name": MARKET}}],
        "controller": {
            # Simulated pods pull no image, but the chart requires one.
            "image": {"repository": "sigs.k8s.io/karpenter/kwok", "tag": f"v{version}"},
            # The chart passes both to the controller, which does not start without them.
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
        # The chart has no default for two of these, and the controller rejects an empty gate.
        "settings": {
            "featureGates": {
                "capacityBuffer": False,
                "nodeRepair": False,
                "spotToSpotConsolidation": False,
                "staticCapacity": False,
            }
        },
    }


NAMESPACE: Final = "karpenter"


@dataclass(frozen=True, kw_only=True)
class KwokKarpenterArgs:
    """Karpenter's source and what the simulated cloud offers.

    `charts` is a directory or address of charts, `version` Karpenter's version, `chart_version` its chart's.
    The simulated cloud offers `machines` in `zones`, and has `reservations`. `scrapers` are the namespaces that reach its metrics.
    """

    charts: str
    version: str
    chart_version: str
    machines: Sequence[Machine]
    zones: Sequence[str]
    reservations: Sequence[KwokReservation] = ()
    scrapers: Sequence[str] = ()


class KwokKarpenter(ComponentResource):
    """Karpenter with its provider of simulated machines (`holdfast:index:KwokKarpenter`).

    Creates the namespace `karpenter`, the release of its CRDs, the ConfigMap with the instance types, and the
    controller's release. It must outlive the pools: without it the finalizers of their nodes are never
    removed.
    """

    def __init__(self, name: str, args: KwokKarpenterArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:KwokKarpenter", name, None, opts)
        market = instance_types_file(args.machines, args.zones, args.reservations)
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
                allow_from=[CONTROLLER_NAMESPACE, *args.scrapers],
            ),
            opts=ResourceOptions(parent=self),
        )
        self.register_outputs({})
