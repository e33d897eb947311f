"""The pools a ladder may name: those of the stack itself, and on-demand pools that another program makes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.policies.known_values import UNKNOWN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.policies.pools import Pool


@dataclass(frozen=True, kw_only=True)
class KnownPools:
    """What is known of pools while a stack is judged."""

    made_here: Sequence[Pool]
    on_demand_elsewhere: frozenset[str]

    def named(self, name: str) -> tuple[Pool, ...]:
        """Return the stack's pools of that name; several NodePools may make one pool."""
        return tuple(pool for pool in self.made_here if pool.name == name)

    def unnamed_as_yet(self) -> tuple[Pool, ...]:
        """Return the stack's pools whose name only the update will know."""
        return tuple(pool for pool in self.made_here if pool.name is UNKNOWN)

    def unlabelled(self, node_pool: str) -> Pool | None:
        """Return the stack's NodePool of that name whose nodes carry no pool label, `None` where there is none."""
        nameless = (pool for pool in self.made_here if pool.name is None)
        return next((pool for pool in nameless if pool.node_pool == node_pool), None)

    def on_demand(self) -> str:
        """Return the on-demand pools as a message lists them."""
        names = {
            pool.name for pool in self.made_here if pool.is_on_demand is True and isinstance(pool.name, str)
        }
        return ", ".join(repr(name) for name in sorted(names | self.on_demand_elsewhere)) or "none"
