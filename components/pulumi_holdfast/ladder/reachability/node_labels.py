"""The labels that follow from a node's machine type, as each provisioner sets them.

Karpenter takes requirements on these labels for a choice among machine types. The AWS provider sets the labels in
pkg/providers/instancetype/types.go, the Azure provider in pkg/providers/instancetype/instancetype.go (both v1.14), and the
simulated one in kwok/cloudprovider/helpers.go.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from functools import cache
from types import MappingProxyType
from typing import Final, TypeAlias

from pulumi_holdfast.ladder.json import UNKNOWN, Unknown
from pulumi_holdfast.ladder.labels import ARCH, INSTANCE_TYPE, OS
from pulumi_holdfast.ladder.machines import Machine


class Provisioner(StrEnum):
    """What makes a pool's nodes; each sets other labels, and reserves other amounts."""

    EKS = "eks"  #: Karpenter on AWS
    AUTO = "auto"  #: EKS Auto Mode
    GKE = "gke"  #: GKE's cluster autoscaler
    NAP = "nap"  #: AKS node auto-provisioning (Karpenter on Azure)
    AKS = "aks"  #: AKS' cluster autoscaler
    LOCAL = "local"  #: Karpenter's simulated provider

    @property
    def tolerates_gpu_taint(self) -> bool:
        """Whether its cloud adds a toleration to pods that request GPUs (admission plugin ExtendedResourceToleration)."""
        return self in (Provisioner.GKE, Provisioner.AKS, Provisioner.NAP)


#: The value of a label on nodes of one machine type: None if they do not have it, UNKNOWN if no table has the value.
MachineLabel: TypeAlias = str | Unknown | None

#: Older names of labels, which Karpenter and the kubelet treat as the newer ones.
ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "beta.kubernetes.io/arch": ARCH,
        "beta.kubernetes.io/os": OS,
        "beta.kubernetes.io/instance-type": INSTANCE_TYPE,
        "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
    }
)


@cache
def machine_labels(machine: Machine, provisioner: Provisioner) -> Mapping[str, MachineLabel]:
    """The labels of nodes of this type that follow from it. A key that is not among them says nothing about the type."""
    return {
        INSTANCE_TYPE: machine.name,
        ARCH: machine.arch,
        OS: "linux",
        **dict(_LABELS[provisioner](machine)),
    }


def _number(value: int | None) -> str | None:
    return str(value) if value else None


# u-6tb1.56xlarge, p4d.24xlarge: the letters and the first digit of the family are category and generation.
_EC2_FAMILY: Final = re.compile(r"(?P<category>^[a-z]+)(-[0-9]+tb)?(?P<generation>[0-9]+).*\.", re.ASCII)

#: Labels of the AWS provider whose values no table has.
_EC2_UNKNOWN: Final = (
    "instance-ebs-bandwidth",
    "instance-network-bandwidth",
    "instance-cpu-sustained-clock-speed-mhz",
    "instance-encryption-in-transit-supported",
)


def _ec2(machine: Machine) -> Iterator[tuple[str, MachineLabel]]:
    """The labels of Karpenter on AWS without their domain; Auto Mode has most of them under another one."""
    family, _, size = machine.name.partition(".")
    parts = _EC2_FAMILY.match(machine.name)
    yield "instance-category", parts["category"] if parts else None
    yield "instance-generation", parts["generation"] if parts else None
    yield "instance-family", family
    yield "instance-size", size
    yield "instance-cpu", str(machine.vcpus)
    yield "instance-cpu-manufacturer", UNKNOWN if machine.processor is None else machine.processor
    yield "instance-memory", str(machine.memory_mib)
    yield "instance-hypervisor", UNKNOWN if machine.hypervisor is None else machine.hypervisor
    yield "instance-local-nvme", _number(machine.local_nvme_gb)
    yield "instance-capability-flex", "true" if "-flex" in family else "false"
    yield "instance-gpu-name", machine.accelerator
    yield "instance-gpu-manufacturer", _gpu_manufacturer(machine)
    yield "instance-gpu-count", _number(machine.gpus)
    yield "instance-gpu-memory", _number(machine.gpu_memory_mib)
    # The table has no machines with accelerators other than GPUs.
    for accelerator in ("name", "manufacturer", "count"):
        yield f"instance-accelerator-{accelerator}", None
    for name in _EC2_UNKNOWN:
        yield name, UNKNOWN


def _gpu_manufacturer(machine: Machine) -> str | None:
    """The tables have no other GPUs than NVIDIA's."""
    return "nvidia" if machine.gpus else None


def _eks(machine: Machine) -> Iterator[tuple[str, MachineLabel]]:
    for name, value in _ec2(machine):
        yield f"karpenter.k8s.aws/{name}", value


def _auto(machine: Machine) -> Iterator[tuple[str, MachineLabel]]:
    yield "eks.amazonaws.com/compute-type", "auto"
    for name, value in _ec2(machine):
        yield f"eks.amazonaws.com/{name}", value


# Standard_NC24ads_A100_v4: N is the family, ads the features, A100 the accelerator, 4 the version.
_VM_SIZE: Final = re.compile(
    r"Standard_(?P<family>[A-Z])(?P<sub>[A-Z]*)\d+(?:-\d+)?(?P<rest>[a-z]*)(?:_(?P<gpu>[A-Z]+\d+\w*?))?(?:_v(?P<version>\d+))?",
    re.ASCII,
)

#: Labels of the Azure provider whose values no table has.
_SKU_UNKNOWN: Final = (
    "sku-series",
    "sku-storage-ephemeralos-maxsize",
    "sku-storage-premium-capable",
    "sku-storage-ultra-ssd",
    "sku-networking-accelerated",
    "sku-hyperv-generation",
    "placement-scope",
)


def _nap(machine: Machine) -> Iterator[tuple[str, MachineLabel]]:
    parts = _VM_SIZE.fullmatch(machine.name)
    labels: dict[str, MachineLabel] = {
        "sku-name": machine.name,
        "sku-family": parts["family"] if parts else UNKNOWN,
        "sku-version": (parts["version"] or "1") if parts else UNKNOWN,
        "sku-cpu": str(machine.vcpus),
        "sku-memory": str(machine.memory_mib),
        "sku-gpu-count": str(machine.gpus),
        "sku-gpu-name": parts["gpu"] if parts else UNKNOWN,
        "sku-gpu-manufacturer": _gpu_manufacturer(machine),
        **dict.fromkeys(_SKU_UNKNOWN, UNKNOWN),
    }
    for name, value in labels.items():
        yield f"karpenter.azure.com/{name}", value


def _gke(machine: Machine) -> Iterator[tuple[str, MachineLabel]]:
    yield "cloud.google.com/machine-family", machine.name.partition("-")[0]
    yield "cloud.google.com/gke-accelerator", machine.accelerator


def _aks(machine: Machine) -> Iterator[tuple[str, MachineLabel]]:
    yield "kubernetes.azure.com/accelerator", "nvidia" if machine.gpus else None


_KWOK_SIZE: Final = re.compile(r"^\w+\.(?P<size>nano|micro|small|medium|large|\d*xlarge|metal)$", re.ASCII)


def _local(machine: Machine) -> Iterator[tuple[str, MachineLabel]]:
    parts = _KWOK_SIZE.match(machine.name)
    family = re.split(r"[.-]", machine.name, maxsplit=1)
    yield "karpenter.kwok.sh/instance-size", parts["size"] if parts else str(machine.vcpus)
    yield "karpenter.kwok.sh/instance-family", family[0] if len(family) > 1 else machine.name[:1]
    yield "karpenter.kwok.sh/instance-cpu", str(machine.vcpus)
    yield "karpenter.kwok.sh/instance-memory", _canonical(machine.memory_mib)


def _canonical(mib: int) -> str:
    """A quantity as the API server spells it: with the largest unit that leaves an integer."""
    for suffix in ("Mi", "Gi", "Ti"):
        if mib % 1024 or suffix == "Ti":
            return f"{mib}{suffix}"
        mib //= 1024
    return ""


_LABELS: Final[Mapping[Provisioner, Callable[[Machine], Iterator[tuple[str, MachineLabel]]]]] = {
    Provisioner.EKS: _eks,
    Provisioner.AUTO: _auto,
    Provisioner.GKE: _gke,
    Provisioner.NAP: _nap,
    Provisioner.AKS: _aks,
    Provisioner.LOCAL: _local,
}
