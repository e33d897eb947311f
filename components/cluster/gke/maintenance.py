"""When GKE may upgrade the cluster, and what it may not. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi_gcp.container import (
        ClusterMaintenancePolicyArgsDict,
        ClusterMaintenancePolicyMaintenanceExclusionArgsDict,
    )

Scope: TypeAlias = Literal["NO_UPGRADES", "NO_MINOR_UPGRADES", "NO_MINOR_OR_NODE_UPGRADES"]


@dataclass(frozen=True, kw_only=True)
class MaintenanceExclusion:
    """A time in which GKE leaves upgrades of a scope undone.

    `start` and `end` are moments in UTC, `2026-01-01T00:00:00Z`, written down and never "now": a start that moves is a
    difference at each `up`. `end` None: until the cluster's version is supported no longer, which GKE knows and which
    moves with each minor version.
    """

    name: str
    start: str
    end: str | None = None
    scope: Scope = "NO_MINOR_OR_NODE_UPGRADES"

    def as_exclusion(self) -> ClusterMaintenancePolicyMaintenanceExclusionArgsDict:
        """The exclusion as GKE spells it: with an end, or with a behaviour instead."""
        if self.end is None:
            return {
                "exclusion_name": self.name,
                "start_time": self.start,
                "exclusion_options": {"scope": self.scope, "end_time_behavior": "UNTIL_END_OF_SUPPORT"},
            }
        return {
            "exclusion_name": self.name,
            "start_time": self.start,
            "end_time": self.end,
            "exclusion_options": {"scope": self.scope},
        }


@dataclass(frozen=True, kw_only=True)
class Maintenance:
    """The hours in which GKE upgrades of its own accord, and what it leaves undone even then.

    `start` and `end` are the first such time, in UTC: `2026-01-03T00:00:00Z`. `recurrence` is when it comes again, as
    RFC 5545 spells it (`FREQ=WEEKLY;BYDAY=SA,SU`). GKE wants 48 hours in any 32 days, four or more at a time.
    """

    start: str
    end: str
    recurrence: str
    exclusions: Sequence[MaintenanceExclusion] = ()

    def as_policy(self) -> ClusterMaintenancePolicyArgsDict:
        """The policy of a cluster."""
        return {
            "recurring_window": {
                "start_time": self.start,
                "end_time": self.end,
                "recurrence": self.recurrence,
            },
            "maintenance_exclusions": [exclusion.as_exclusion() for exclusion in self.exclusions],
        }
