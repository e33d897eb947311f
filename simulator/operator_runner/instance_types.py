"""What a cloud sells, in the form that Karpenter's simulated provider reads. Pure."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from holdfast.scheduling.json import Json
from holdfast.scheduling.labels import CAPACITY_TYPE, GPU_RESOURCE, ZONE, CapacityType
from holdfast.scheduling.machines import Machine

EFA_RESOURCE: Final = "vpc.amazonaws.com/efa"

# As in the cost model: a spot machine costs a tenth.
_PRICE: Final = {CapacityType.ON_DEMAND: 1.0, CapacityType.SPOT: 0.1}

_LABELS: Final = "karpenter.k8s.aws"
# m7i-flex.large, u-3tb1.56xlarge: a category, for some how much memory, a generation, and what else it has.
_FAMILY: Final = re.compile(r"^(?P<category>[a-z]+)(-\d+tb)?(?P<generation>\d+).*\.")


def instance_types(
    machines: Iterable[Machine],
    zones: Sequence[str],
    labels: Callable[[Machine], Mapping[str, str]] | None = None,
) -> str:
    """The list of instance types: each machine, in each zone, on demand and, where it ever is, on spot.

    `labels` are those which its provider puts on a machine's node; by default AWS's.
    """
    labelled = labels or machine_labels
    by_name = sorted(machines, key=lambda machine: machine.name)
    types = [_instance_type(machine, zones, labelled(machine)) for machine in by_name]
    return json.dumps(types, separators=(",", ":"), sort_keys=True)


def machine_labels(machine: Machine) -> Mapping[str, str]:
    """The labels beside Kubernetes' own that AWS's provider puts on a machine's node, as far as they are known."""
    family, _, size = machine.name.partition(".")
    labels = {
        "instance-family": family,
        "instance-size": size,
        "instance-cpu": str(machine.vcpus),
        "instance-memory": str(machine.memory_mib),
    }
    named = _FAMILY.match(machine.name)
    if named:
        labels |= {"instance-category": named["category"], "instance-generation": named["generation"]}
    if machine.gpus and machine.accelerator:
        labels |= {
            "instance-gpu-name": machine.accelerator,
            "instance-gpu-manufacturer": "nvidia",
            "instance-gpu-count": str(machine.gpus),
        }
    return {f"{_LABELS}/{name}": value for name, value in labels.items()}


def _instance_type(machine: Machine, zones: Sequence[str], labels: Mapping[str, str]) -> Json:
    gpus = {GPU_RESOURCE: str(machine.gpus)} if machine.gpus else {}
    adapters = {EFA_RESOURCE: str(machine.efa_interfaces)} if machine.efa_interfaces else {}
    capacities = tuple(CapacityType) if machine.on_spot else (CapacityType.ON_DEMAND,)
    return {
        "name": machine.name,
        "architecture": machine.arch,
        "operatingSystems": ["linux"],
        "labels": labels,
        "resources": {
            "cpu": str(machine.vcpus),
            "memory": f"{machine.memory_mib}Mi",
            "ephemeral-storage": "100Gi",
            "pods": "110",
            **gpus,
            **adapters,
        },
        "offerings": [_offering(machine, capacity, zone) for zone in zones for capacity in capacities],
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
