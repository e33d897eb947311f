"""Refuses a stack whose jobs cannot fall back, before its first resource: the policy pack's proof, on the configuration.

The pack is optional and sees what a stack registers. Both use the one walk in `scheduling`, so neither accepts what the other
proves wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.config.rules import NAMESPACES
from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.ladder.labels import ZONE
from pulumi_holdfast.ladder.prices import never_below
from pulumi_holdfast.ladder.reachability import messages
from pulumi_holdfast.ladder.reachability.affinity import LabelValues
from pulumi_holdfast.ladder.reachability.facts import Limits, PoolFacts, TierFacts
from pulumi_holdfast.ladder.reachability.shape import LEAST, Resources, Shape
from pulumi_holdfast.ladder.reachability.walk import Outcome, walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pulumi_holdfast.config.namespace import NamespaceSection
    from pulumi_holdfast.ladder.reachability.pool_summary import PoolSummary
    from pulumi_holdfast.ladder.reachability.walk import Walk

#: No volume binds a job to a zone.
NOT_BOUND: Final[Mapping[str, Mapping[str, str]]] = {}

_REFUSED: Final = frozenset({Outcome.STUCK, Outcome.FALLS_OFF})


def reachability_problems(
    namespaces: Sequence[NamespaceSection],
    pools: Mapping[str, PoolSummary],
    bound: Mapping[str, Mapping[str, str]] = NOT_BOUND,
) -> Iterator[Problem]:
    """The shapes of jobs that cannot reach an on-demand pool; `pools` are the stack's pools by name.

    A namespace without shapes has the one that the policies assume: a pod with all GPUs of a first-tier machine. `bound` are the zones
    of volumes, by the namespaces that may mount them and by volume: any job of the namespace may mount one.
    """
    for index, namespace in enumerate(namespaces):
        at = f"{NAMESPACES}[{index}]"
        for number, shape in enumerate(shapes_of(namespace, pools)):
            place = f"{at}.shapes[{number}]" if namespace.shapes else f"{at}.ladder"
            tiers = _tiers(namespace, pools)
            problems = tuple(_shape_problems(walk(shape, tiers), place))
            yield from problems
            if problems:
                continue
            for volume, zone in bound.get(namespace.name, {}).items():
                mounting = replace(shape, name=f"{shape.name} with {volume}", zones=frozenset({zone}))
                yield from _shape_problems(walk(mounting, tiers), place)


def reachability_warnings(
    namespaces: Sequence[NamespaceSection], pools: Mapping[str, PoolSummary], cloud: str
) -> Iterator[str]:
    """The tiers that never have capacity because of their `maxPrice`: their jobs still reach the tiers below."""
    for namespace in namespaces if cloud == "aws" else ():
        for number, tier in enumerate(namespace.ladder, start=1):
            pool = None if tier.cluster else pools.get(tier.pool)
            if pool is None or tier.max_price is None or tier.price is not None:
                continue
            types = [machine.name for machine in pool.machine_capacities]
            why = never_below(tier.max_price, types, [pool.capacity.value])
            if why is not None:
                where = messages.TIER.format(number=number, pool=tier.pool)
                yield f"namespace {namespace.name!r}: {where}: {why}"


def shapes_of(namespace: NamespaceSection, pools: Mapping[str, PoolSummary]) -> Sequence[Shape]:
    """The shapes of a namespace; without any, the one that the policies assume."""
    declared = namespace.as_shapes()
    if declared or not namespace.ladder:
        return declared
    return (_default_shape(pools.get(namespace.ladder[0].pool)),)


def pool_facts(name: str, summary: PoolSummary) -> PoolFacts:
    """What the checks use of a pool.

    Its taints are left out, because admission adds a toleration for each of them to every pod that selects the pool. Its
    limits are those of its NodePool; a pool of one machine type has no more nodes than these.
    """
    most, largest, zones = summary.max_nodes, summary.largest, frozenset(summary.zones)
    return PoolFacts(
        name=name,
        title=f"pool {name}",
        capacity_types=frozenset({summary.capacity.value}),
        labels={**summary.labels, **({ZONE: LabelValues(values=zones)} if zones else {})},
        machines=summary.machine_capacities or UNKNOWN,
        zones=zones or None,
        limits=Limits(
            nodes=most,
            cpu_millis=most * largest.vcpus * 1000,
            gpus=most * largest.gpus if largest.gpus else None,
        ),
    )


def _tiers(namespace: NamespaceSection, pools: Mapping[str, PoolSummary]) -> tuple[TierFacts, ...]:
    now = datetime.now(UTC)
    ended = {name: pool.window.ends for name, pool in pools.items() if pool.window.is_over(now)}
    # Of another cluster's pools nothing is known before its stack is read, and no job arrives there.
    here = {name: (pool_facts(name, pool),) for name, pool in pools.items()}
    return tuple(
        TierFacts(
            number=number,
            pool=tier.pool,
            max_failures=tier.max_failures,
            has_timeout=tier.procurement_timeout is not None,
            node_pools=() if tier.cluster else here.get(tier.pool, ()),
            ended_at=None if tier.cluster else ended.get(tier.pool),
            cluster=tier.cluster or "",
        )
        for number, tier in enumerate(namespace.ladder, start=1)
    )


def _default_shape(first: PoolSummary | None) -> Shape:
    gpus = 0 if first is None else first.machine.gpus
    return Shape(requests=Resources(cpu_millis=LEAST.cpu_millis, memory_mib=LEAST.memory_mib, gpus=gpus))


def _shape_problems(found: Walk, at: str) -> Iterator[Problem]:
    if found.outcome not in _REFUSED:
        return
    last = found.steps[-1]
    reasons = "; ".join(failed.reason for failed in last.failed)
    fixes = " ".join(dict.fromkeys(failed.fix for failed in last.failed if failed.fix))
    past = f" {messages.NO_WAY_PAST}" if found.outcome is Outcome.STUCK else ""
    got = messages.CANNOT_FALL_BACK.format(who=found.shape.title, where=last.title, why=reasons)
    allowed = "jobs that reach an on-demand pool of their ladder and fit on it"
    yield Problem(at, got, allowed, f"{fixes}{past}".strip())
