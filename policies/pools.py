"""Pools: nodes that carry one value of the pool label, whoever makes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.policies.known_values import UNKNOWN
from holdfast.scheduling.labels import ON_DEMAND, SPOT

if TYPE_CHECKING:
    from holdfast.policies.known_values import Unknown


@dataclass(frozen=True, kw_only=True)
class Pool:
    """Nodes that carry one value of the pool label, and the NodePool that makes them.

    `name` is that value, `None` when the nodes carry no pool label at all; `labels_path` is where their labels are given.
    `capacity_types` are those its nodes may have; while not `decided`, something that only the update will know may still
    take some away.
    """

    name: str | Unknown | None
    node_pool: str
    labels_path: str
    capacity_types: frozenset[str]
    decided: bool

    @property
    def is_on_demand(self) -> bool | Unknown:
        """Whether the pool makes on-demand nodes and never spot ones."""
        if ON_DEMAND not in self.capacity_types:
            return False
        if not self.decided:
            return UNKNOWN
        return SPOT not in self.capacity_types
