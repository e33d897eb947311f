"""An account, as far as it answered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.scheduling.labels import CapacityType


@dataclass(frozen=True, kw_only=True)
class Account:
    """What was asked of an account in a region.

    `caller` is the ARN of the principal that asks. `zones` are those in which EKS makes clusters, in order. `offered`
    are the zones that have each instance type, `bought` the instance types that can be bought in each way, `quotas`
    the vCPUs of each quota by its code. `spot_role` is the ARN of the role that EC2 Spot needs, None where there is
    none yet. What the account did not answer is None, or missing in a mapping, and `unanswered` says why.
    """

    id: str
    caller: str
    zones: tuple[str, ...] | None = None
    offered: Mapping[str, frozenset[str]] | None = None
    bought: Mapping[CapacityType, frozenset[str]] = field(
        default_factory=dict["CapacityType", "frozenset[str]"]
    )
    quotas: Mapping[str, float] = field(default_factory=dict[str, float])
    spot_role: str | None = None
    unanswered: tuple[str, ...] = ()
