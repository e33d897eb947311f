"""The pools that a ladder may name: those of its cluster in the stack, and those that another program makes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.ladder.labels import CHECKPOINT_URI, CHECKPOINTS
from pulumi_holdfast.ladder.reachability.facts import TierFacts, read_exported, read_pool_facts
from pulumi_holdfast.program.clusters import cluster_of, is_one_cluster, is_same_cluster
from pulumi_holdfast.program.fields import unread
from pulumi_holdfast.program.namespaces.limits import default_priority
from pulumi_holdfast.program.pools.all_pools import all_pools
from pulumi_holdfast.program.resources import (
    NAMESPACE_TYPE,
    by_urn,
    named,
    of_type,
    once,
    text_at,
    unshown_components,
)
from pulumi_holdfast.program.settings import (
    MADE_ELSEWHERE,
    MADE_HERE,
    ON_DEMAND_POOLS,
    Elsewhere,
    is_made_elsewhere,
    names_setting,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi_holdfast.ladder.json import Unknown
    from pulumi_holdfast.program.namespaces.ladders import DeclaredLadder, DeclaredTier
    from pulumi_holdfast.program.pools.all_pools import DeclaredPool
    from pulumi_holdfast.program.resources import StackResource
    from pulumi_holdfast.program.settings import Settings

_CONFIG_MAP: Final = "kubernetes:core/v1:ConfigMap"
#: What limits pods of a namespace, with the field of its metadata that names the namespace.
_BESIDE: Final = {
    NAMESPACE_TYPE: "name",
    "kubernetes:core/v1:ResourceQuota": "namespace",
    "kubernetes:core/v1:LimitRange": "namespace",
}


@dataclass(frozen=True, kw_only=True)
class LadderPools:
    """The pools that a ladder may name.

    `of_stack` are the program's pools in its cluster, `resources` all that it makes, `unplaced` those of which the program does not show whether they are.
    `on_demand_elsewhere` names on-demand pools of another program; `others_elsewhere`: it makes other pools, too,
    `default_elsewhere`: the default pool. `all_here`: this program makes all pools.
    `unshown` are components whose objects the preview does not show.
    `checkpoints` is where jobs of the namespace keep their checkpoints, None if no ConfigMap of the program says it.
    `unread` are the fields of its namespace, its limits and its ladder that no rule judges; `default_priority` is that of pods without a class, None if the program does not set it.
    """

    of_stack: Sequence[DeclaredPool]
    resources: Sequence[StackResource] = ()
    unplaced: Sequence[DeclaredPool] = ()
    on_demand_elsewhere: frozenset[str] = frozenset()
    unshown: Sequence[StackResource] = ()
    others_elsewhere: bool = False
    all_here: bool = False
    default_elsewhere: bool = False
    checkpoints: str | Unknown | None = None
    unread: tuple[str, ...] = ()
    default_priority: int | None = None

    @classmethod
    def of(
        cls, ladder: DeclaredLadder, resources: Sequence[StackResource], settings: Settings
    ) -> LadderPools:
        """Return the pools for a ladder."""
        return replace(
            cls.near(ladder.resource, resources, settings),
            checkpoints=_checkpoints_of(ladder, resources),
            default_priority=default_priority(ladder.resource, resources),
            unread=_unread_beside(resources, ladder.resource.urn, ladder.namespace),
        )

    @classmethod
    def near(
        cls, resource: StackResource, resources: Sequence[StackResource], settings: Settings
    ) -> LadderPools:
        """Return the pools in the cluster of a resource."""
        of_stack, unplaced = _pools_in(resources, cluster_of(resource, resources))
        return cls(
            of_stack=of_stack,
            resources=resources,
            unplaced=unplaced,
            on_demand_elsewhere=names_setting(settings, ON_DEMAND_POOLS),
            others_elsewhere=is_made_elsewhere(settings, Elsewhere.POOLS),
            all_here=Elsewhere.POOLS.value in names_setting(settings, MADE_HERE),
            default_elsewhere=is_made_elsewhere(settings, Elsewhere.DEFAULT_POOL),
            unshown=unshown_components(resources),
        )

    def named(self, name: str) -> tuple[DeclaredPool, ...]:
        """Return the program's pools with that label; several NodePools may share one."""
        return tuple(pool for pool in self.of_stack if pool.label == name)

    def with_unknown_label(self) -> tuple[DeclaredPool, ...]:
        """Return the program's pools whose label only the update will know."""
        return tuple(pool for pool in self.of_stack if pool.label is UNKNOWN)

    def without_label(self, node_pool: str) -> DeclaredPool | None:
        """Return the program's NodePool with that name whose nodes have no pool label; None if there is none."""
        unlabelled = (pool for pool in self.of_stack if pool.label is None)
        return next((pool for pool in unlabelled if pool.node_pool == node_pool), None)

    def may_be_elsewhere(self, name: str) -> bool:
        """Whether a pool that is not found here may exist.

        It may unless the settings declare that this program makes all pools. Then, too, it may if the program makes no pool that
        a ladder could name, does not show which cluster that pool is in, or does not show the objects of a component.
        """
        unplaced = any(pool.label in (name, UNKNOWN) for pool in self.unplaced)
        shown = not unplaced and not self.unshown
        return not self.all_here or not shown or all(pool.label is None for pool in self.of_stack)

    def is_unseen(self, name: str) -> bool:
        """Whether nothing here makes a pool, and nothing declares that another program does."""
        declared = self.others_elsewhere or name in self.on_demand_elsewhere
        found = self.named(name) or self.with_unknown_label()
        return not declared and not found and self.may_be_elsewhere(name)

    def unseen(self, name: str) -> str:
        """Return why a pool that may exist is not judged."""
        if any(pool.label in (name, UNKNOWN) for pool in self.unplaced):
            return (
                "the program does not show whether that pool is in the ladder's cluster. Give the Kubernetes provider a "
                "kubeconfig from the outputs of its cluster"
            )
        if self.unshown:
            return f"whether {self.unshown[0].logical_name!r} makes it is known only after the update, which checks it again"
        return (
            f"this program makes no pool with that name (it makes: {self.names() or 'none'}), so the pool is not judged, and "
            "the update does not judge it either. Correct the name if it is misspelled. If another program makes it, list it in "
            f"the pack's setting `{ON_DEMAND_POOLS}`, or declare `{MADE_ELSEWHERE}: [{Elsewhere.POOLS.value}]`; if this program "
            f"makes all pools, declare `{MADE_HERE}: [{Elsewhere.POOLS.value}]`"
        )

    def names(self) -> str:
        """Return the program's pools as a message lists them."""
        return ", ".join(sorted({repr(pool.label) for pool in self.of_stack if isinstance(pool.label, str)}))

    def on_demand(self) -> str:
        """Return the on-demand pools as a message lists them."""
        others = {pool.label for pool in self.of_stack if pool.facts.is_on_demand is not True}
        names = {pool.label for pool in self.of_stack if isinstance(pool.label, str)} - others
        return ", ".join(repr(name) for name in sorted(names | self.on_demand_elsewhere)) or "none"

    def tiers(self, ladder: DeclaredLadder, now: datetime | None = None) -> tuple[TierFacts, ...]:
        """Return the tiers of a ladder with the pools that they name, as they are at a time."""
        return tuple(
            self.tier(number, tier, now)
            for number, tier in enumerate(() if ladder.tiers is UNKNOWN else ladder.tiers, start=1)
        )

    def tier(self, number: int, tier: DeclaredTier, now: datetime | None = None) -> TierFacts:
        """Return one tier: a pool of the program, or what the tier itself says of one in another cluster."""
        at = now or datetime.now(UTC)
        here = TierFacts(
            number=number,
            pool=tier.pool if tier.pool is not None else "(none named)",
            max_failures=tier.max_failures,
            has_timeout=tier.has_timeout,
            ended_at=tier.window.ends if tier.window.is_over(at) else None,
        )
        if not tier.is_elsewhere:
            named = tuple(
                replace(pool.facts, unmodeled=(*pool.facts.unmodeled, *self.unread))
                for pool in self.of_stack
                if pool.label == tier.pool
            )
            return replace(here, node_pools=named, may_be_external=self._may_make(tier.pool))
        cluster = "(not known yet)" if tier.cluster is UNKNOWN else tier.cluster
        if tier.facts is UNKNOWN or tier.exported is UNKNOWN:
            return replace(here, cluster=cluster, exported=UNKNOWN)
        facts = (read_pool_facts(str(here.pool), tier.facts),) if tier.facts else ()
        exported = read_exported(tier.exported, home_checkpoints=self.checkpoints)
        return replace(here, cluster=cluster, node_pools=facts, exported=exported)

    def _may_make(self, name: object) -> bool:
        """Whether another program, or a pool whose label is not known yet, may be this one."""
        if not isinstance(name, str) or not name:
            return False
        declared = self.others_elsewhere or name in self.on_demand_elsewhere
        return declared or bool(self.with_unknown_label()) or self.may_be_elsewhere(name)


def _checkpoints_of(ladder: DeclaredLadder, resources: Sequence[StackResource]) -> str | Unknown | None:
    """Return the address that jobs in the namespace of a ladder get for their checkpoints."""
    for each in named(resources, _CONFIG_MAP, CHECKPOINTS):
        is_here = text_at(each.props, "metadata", "namespace") == ladder.namespace
        if is_here and is_same_cluster(ladder.resource, each, resources):
            return text_at(each.props, "data", CHECKPOINT_URI)
    return None


@once
def _unread_beside(
    resources: Sequence[StackResource], ladder: str, namespace: str | Unknown
) -> tuple[str, ...]:
    """Return the fields that no rule judges of a ladder, by its URN, of its namespace, and of the limits there."""
    policy = by_urn(resources)[ladder]
    beside = (
        each
        for type_token, field in _BESIDE.items()
        for each in of_type(resources, type_token)
        if (text_at(each.props, "metadata", field) or "default") == namespace
        and is_same_cluster(each, policy, resources) is not False
    )
    return tuple(reason for each in (policy, *beside) for reason in unread(each))


@once
def _pools_in(
    resources: Sequence[StackResource], cluster: str
) -> tuple[Sequence[DeclaredPool], Sequence[DeclaredPool]]:
    """Return the pools in a cluster, and those of which the program does not show whether they are."""
    placed = [
        (pool, is_one_cluster(resources, cluster, cluster_of(pool.resource, resources)))
        for pool in all_pools(resources)
    ]
    return [pool for pool, here in placed if here is True], [pool for pool, here in placed if here is UNKNOWN]
