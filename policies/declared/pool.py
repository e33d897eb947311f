"""A pool and the resource that declares it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.policies.pools import Pool

if TYPE_CHECKING:
    from holdfast.policies.findings import StackResource
    from holdfast.scheduling.json import Unknown
    from holdfast.scheduling.reachability.facts import PoolFacts
    from holdfast.scheduling.reachability.machine_capacity import Provisioner


@dataclass(frozen=True, kw_only=True)
class DeclaredPool:
    """What a resource says of a pool.

    `label` is the value of the pool label on its nodes, None where they carry none; `maker_name` is the resource's name in the
    cluster, `title` how a message names it;
    `labels_path` and `taints_path` where the resource holds them.
    """

    resource: StackResource
    provisioner: Provisioner
    label: str | Unknown | None
    maker_name: str
    title: str
    labels_path: str
    taints_path: str
    facts: PoolFacts

    def as_ending(self) -> Pool:
        """The pool as the end of a ladder is judged by."""
        return Pool(
            name=self.label,
            node_pool=self.maker_name,
            labels_path=self.labels_path,
            capacity_types=self.facts.capacity_types,
            decided=self.facts.is_decided,
        )
