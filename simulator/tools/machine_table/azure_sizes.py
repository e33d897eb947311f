"""What the name of a VM size says of it, and what it does not. Pure.

No registry carries Azure's own answers; its documentation says how names are made, and what each size has.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.scheduling.machines import Architecture

_MIB_IN_GIB: Final = 1024

#: AKS takes none smaller.
_FEWEST_VCPUS: Final = 2

# D4ads_v5: a family, vCPUs, what it adds, a version. `a` AMD, `d` local disk, `l` less and `m` more memory, `n` more
# network, `p` Arm, `s` premium disks, without which a node's own disk is a slow one. Sizes whose vCPUs are constrained
# (E16-4ds_v5) and whole hosts (`i`) are other names.
_NAME: Final = re.compile(r"Standard_(?P<family>[DEF])(?P<vcpus>\d+)(?P<adds>[adlmnps]*)_v(?P<version>\d+)")

#: F had no second ratio yet, and the least memory of all.
_FIRST_F: Final = 2

# E's larger sizes have less than the 8 GiB to a vCPU of the others, each another amount: they are left out.
_MOST_VCPUS_OF_E: Final = 48
_MOST_VCPUS_OF_E_ON_ARM: Final = 20

# vCPUs, GiB, GPUs, kind. AKS has drivers for all of them. Shares of a GPU are left out, since Kubernetes counts whole ones,
# and what Azure has retired.
_ACCELERATED: Final[Mapping[str, tuple[int, int, int, str]]] = {
    "Standard_NC4as_T4_v3": (4, 28, 1, "t4"),
    "Standard_NC8as_T4_v3": (8, 56, 1, "t4"),
    "Standard_NC16as_T4_v3": (16, 110, 1, "t4"),
    "Standard_NC64as_T4_v3": (64, 440, 4, "t4"),
    "Standard_NV36ads_A10_v5": (36, 440, 1, "a10"),
    "Standard_NV36adms_A10_v5": (36, 880, 1, "a10"),
    "Standard_NV72ads_A10_v5": (72, 880, 2, "a10"),
    "Standard_NC24ads_A100_v4": (24, 220, 1, "a100"),
    "Standard_NC48ads_A100_v4": (48, 440, 2, "a100"),
    "Standard_NC96ads_A100_v4": (96, 880, 4, "a100"),
    "Standard_ND96asr_v4": (96, 900, 8, "a100"),
    "Standard_ND96amsr_A100_v4": (96, 1900, 8, "a100"),
    "Standard_NC40ads_H100_v5": (40, 320, 1, "h100"),
    "Standard_NC80adis_H100_v5": (80, 640, 2, "h100"),
    "Standard_ND96isr_H100_v5": (96, 1900, 8, "h100"),
    "Standard_ND96isr_H200_v5": (96, 1850, 8, "h200"),
}


@dataclass(frozen=True, kw_only=True)
class Shape:
    """What a VM size has. Memory in MiB."""

    arch: Architecture
    vcpus: int
    memory_mib: int
    gpus: int = 0
    accelerator: str | None = None


def shape_of(name: str) -> Shape | None:
    """What a VM size of this name has; None for one that is no node here."""
    if name in _ACCELERATED:
        vcpus, gib, gpus, accelerator = _ACCELERATED[name]
        return Shape(
            arch="amd64", vcpus=vcpus, memory_mib=gib * _MIB_IN_GIB, gpus=gpus, accelerator=accelerator
        )
    found = _NAME.fullmatch(name)
    if found is None or "s" not in found["adds"]:
        return None
    vcpus, on_arm = int(found["vcpus"]), "p" in found["adds"]
    most = _MOST_VCPUS_OF_E_ON_ARM if on_arm else _MOST_VCPUS_OF_E
    if vcpus < _FEWEST_VCPUS or (found["family"] == "E" and vcpus > most):
        return None
    gib = _gib_per_vcpu(found["family"], found["adds"], int(found["version"]))
    return Shape(
        arch="arm64" if on_arm else "amd64",
        vcpus=vcpus,
        memory_mib=vcpus * gib * _MIB_IN_GIB,
    )


def _gib_per_vcpu(family: str, adds: str, version: int) -> int:
    if family == "E" or "m" in adds:
        return 8
    return 2 if "l" in adds or (family == "F" and version == _FIRST_F) else 4
