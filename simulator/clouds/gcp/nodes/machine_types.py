"""What a machine of a node pool holds."""

from collections.abc import Mapping
from typing import Final

from holdfast.scheduling.json import Json
from holdfast.scheduling.labels import GPU_RESOURCE
from holdfast.scheduling.machines import Machine, machine_catalogue
from holdfast.simulator.kubernetes_client.objects import mapping, sequence

# GKE's own defaults.
_DEFAULT_TYPE: Final = "e2-medium"
_DEFAULT_DISK_GIB: Final = 100
_DEFAULT_PODS: Final = 110
# What GKE would not take, and what is in no table, holds what the default does.
_SMALLEST: Final = Machine(name=_DEFAULT_TYPE, vcpus=2, memory_mib=4096, gpus=0, hourly_price=0.03350571)


def type_name(config: Json) -> str:
    """Return the machine type of a node configuration."""
    return str(config.get("machineType") or _DEFAULT_TYPE)


def machine_of(config: Json) -> Machine:
    """Return the machine of a node configuration, as far as it is known."""
    return machine_catalogue("gcp").get(type_name(config), _SMALLEST)


def accelerator_of(config: Json) -> tuple[str, int]:
    """Return the kind of GPU of a node configuration and how many a machine has; "" and 0 without."""
    for each in map(mapping, sequence(config.get("guestAccelerators"))):
        count = each.get("count")
        if isinstance(count, int | float) and count:
            return str(each.get("type") or ""), int(count)
    machine = machine_of(config)
    return machine.accelerator or "", machine.gpus


def capacity_of(config: Json, *, pods: int | None = None) -> Mapping[str, str]:
    """Return what a machine of a node configuration has, by resource; `pods`: how many it may run."""
    machine = machine_of(config)
    _, gpus = accelerator_of(config)
    disk = config.get("diskSizeGb")
    return {
        "cpu": str(machine.vcpus),
        "memory": f"{machine.memory_mib}Mi",
        "ephemeral-storage": f"{int(disk) if isinstance(disk, int | float) else _DEFAULT_DISK_GIB}Gi",
        "pods": str(pods or _DEFAULT_PODS),
        **({GPU_RESOURCE: str(gpus)} if gpus else {}),
    }
