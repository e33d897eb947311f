"""EC2's vCPU quotas, by machine type. Beyond a quota EC2 starts no machine for Karpenter or a node group."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pulumi_holdfast.ladder.labels import CapacityType


@dataclass(frozen=True, kw_only=True)
class Ec2Quota:
    """A quota by its code and its name in the Service Quotas console."""

    code: str
    name: str


_STANDARD: Final = frozenset("acdhimrtz") | {"im", "is"}
_GRAPHICS: Final = frozenset({"g", "gr", "vt"})

_ON_DEMAND: Final[Mapping[str, Ec2Quota]] = {
    "standard": Ec2Quota(
        code="L-1216C47A", name="Running On-Demand Standard (A, C, D, H, I, M, R, T, Z) instances"
    ),
    "graphics": Ec2Quota(code="L-DB2E81BA", name="Running On-Demand G and VT instances"),
    "dl": Ec2Quota(code="L-6E869C2A", name="Running On-Demand DL instances"),
    "f": Ec2Quota(code="L-74FC7D96", name="Running On-Demand F instances"),
    "hpc": Ec2Quota(code="L-F7808C92", name="Running On-Demand HPC instances"),
    "inf": Ec2Quota(code="L-1945791B", name="Running On-Demand Inf instances"),
    "p": Ec2Quota(code="L-417A185B", name="Running On-Demand P instances"),
    "trn": Ec2Quota(code="L-2C3B7624", name="Running On-Demand Trn instances"),
    "u": Ec2Quota(code="L-43DA4232", name="Running On-Demand High Memory instances"),
    "x": Ec2Quota(code="L-7295265B", name="Running On-Demand X instances"),
}
_SPOT_P4: Final = Ec2Quota(code="L-7212CCBC", name="All P4, P3 and P2 Spot Instance Requests")
_SPOT: Final[Mapping[str, Ec2Quota]] = {
    "standard": Ec2Quota(
        code="L-34B43A08", name="All Standard (A, C, D, H, I, M, R, T, Z) Spot Instance Requests"
    ),
    "graphics": Ec2Quota(code="L-3819A6DF", name="All G and VT Spot Instance Requests"),
    "dl": Ec2Quota(code="L-85EED4F7", name="All DL Spot Instance Requests"),
    "f": Ec2Quota(code="L-88CF9481", name="All F Spot Instance Requests"),
    "inf": Ec2Quota(code="L-B5D1601B", name="All Inf Spot Instance Requests"),
    "p2": _SPOT_P4,
    "p3": _SPOT_P4,
    "p4": _SPOT_P4,
    "p5": Ec2Quota(code="L-C4BD4855", name="All P5 Spot Instance Requests"),
    "trn": Ec2Quota(code="L-6B0D517C", name="All Trn Spot Instance Requests"),
    "x": Ec2Quota(code="L-E3A00192", name="All X Spot Instance Requests"),
}


def quota_of(instance_type: str, capacity: CapacityType) -> Ec2Quota | None:
    """The quota that machines of a type count against; None for families that AWS does not document."""
    series = re.match(r"([a-z]+)([0-9]*)", instance_type, re.ASCII)
    # A reservation was counted when it was made, and a Capacity Block never is.
    if series is None or capacity is CapacityType.RESERVED:
        return None
    letters, generation = series.groups()
    if capacity is CapacityType.ON_DEMAND:
        return _ON_DEMAND.get(_group(letters))
    return _SPOT.get(f"p{generation[:1]}" if letters == "p" else _group(letters))


def _group(letters: str) -> str:
    if letters in _STANDARD:
        return "standard"
    return "graphics" if letters in _GRAPHICS else letters
