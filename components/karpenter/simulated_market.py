"""What the simulated cloud sells, as Karpenter's kwok provider reads it. Pure."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from holdfast.scheduling.labels import CAPACITY_TYPE, GPU_RESOURCE, ZONE, CapacityType

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from holdfast.scheduling.json import Json
    from holdfast.scheduling.machines import Machine

#: A spot machine's price as a share of the on-demand one, as in the cost model: spot is bought at 10 %.
SPOT_SHARE: Final = 0.1

_PRICE: Final = {CapacityType.ON_DEMAND: 1.0, CapacityType.SPOT: SPOT_SHARE}


def instance_types_file(machines: Iterable[Machine], zones: Sequence[str]) -> str:
    """The file of instance types: each machine, in each zone, on-demand and spot."""
    types = [_instance_type(machine, zones) for machine in sorted(machines, key=lambda machine: machine.name)]
    return json.dumps(types, separators=(",", ":"), sort_keys=True)


def fingerprint(file: str) -> str:
    """What changes when the file does: Karpenter reads it once, when it starts."""
    return sha256(file.encode()).hexdigest()


def _instance_type(machine: Machine, zones: Sequence[str]) -> Json:
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
        "offerings": [_offering(machine, capacity, zone) for zone in zones for capacity in CapacityType],
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
