"""Validates pools, training namespaces and ladders, for every cloud: rules that involve more than one field."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Final, TypeVar

from pulumi_holdfast.config.base import Section
from pulumi_holdfast.config.clusters import (
    CLUSTERS,
    OtherClusterSection,
    other_cluster_problems,
    unlisted_cluster_problems,
)
from pulumi_holdfast.config.errors import format_value
from pulumi_holdfast.config.loader import PLATFORM, Parts, read_parts
from pulumi_holdfast.config.namespace import NamespaceSection, TierSection
from pulumi_holdfast.kubernetes.admission.rules import version_problem
from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.ladder.labels import CONTROLLER_NAMESPACE, RESERVATION_NAMESPACE, CapacityType
from pulumi_holdfast.ladder.ladder import tier_problems, timing_problems
from pulumi_holdfast.ladder.operators import OPERATORS
from pulumi_holdfast.ladder.pools import Pool
from pulumi_holdfast.ladder.quotas import quota_problems
from pulumi_holdfast.ladder.reachability.shape import shape_problems
from pulumi_holdfast.ladder.taints import GPU, SPOT, Taint

POOLS = f"{PLATFORM}.pools"
NAMESPACES = f"{PLATFORM}.namespaces"

A_DEFAULT_POOL: Final = (
    "`{name: cpu, capacity: on-demand, instanceTypes: [m7i.xlarge], maxNodes: 20, default: true}`"
)

RESERVED_NAMESPACES: Final = frozenset(
    {CONTROLLER_NAMESPACE, RESERVATION_NAMESPACE, "default", *(each.namespace for each in OPERATORS.values())}
)

S = TypeVar("S", bound=Section)


def pool_and_ladder_problems(
    document: Json,
    pools: Parts[S],
    *,
    problems_of: Callable[[S, str], Iterator[Problem]],
    as_pool: Callable[[S], Pool],
    a_default_pool: str = A_DEFAULT_POOL,
) -> Iterator[Problem]:
    """The problems of a document's pools, of each and of all together, and of its ladders.

    `problems_of` yields the problems of one pool at a path; `as_pool` converts a valid one for the rules in
    `scheduling`. `a_default_pool` is an example of a pool that may be the default.
    """
    namespaces = read_parts(NamespaceSection, document.get("namespaces"))
    yield from duplicate_name_problems(pools.names, "pool", POOLS)
    unclear: set[int] = set()
    for index, pool in pools.items.items():
        wrong = list(problems_of(pool, f"{POOLS}[{index}]"))
        yield from wrong
        # Other rules depend on the pool's machines: while these are invalid, they do not run for it.
        unclear |= {index} if wrong else set()
    clear = pools.without(unclear)
    known = {index: as_pool(pool) for index, pool in clear.items.items()}
    yield from default_pool_problems(known, all_were_read=clear.complete, example=a_default_pool, at=POOLS)
    yield from duplicate_name_problems(namespaces.names, "training namespace", NAMESPACES)
    yield from reserved_name_problems(namespaces.names, NAMESPACES)
    first_of_name: dict[str, Pool] = {}
    for pool in known.values():
        first_of_name.setdefault(pool.name, pool)
    for index, namespace in namespaces.items.items():
        yield from _namespace_problems(namespace, first_of_name, f"{NAMESPACES}[{index}]")
    yield from ladder_problems(document.get("namespaces"), first_of_name, clear.may_hold, NAMESPACES)
    clusters = read_parts(OtherClusterSection, document.get("clusters", []))
    yield from duplicate_name_problems(clusters.names, "cluster", CLUSTERS)
    yield from other_cluster_problems(clusters, CLUSTERS)
    for index, namespace in namespaces.items.items():
        yield from unlisted_cluster_problems(namespace, clusters, f"{NAMESPACES}[{index}].ladder")


def _namespace_problems(namespace: NamespaceSection, pools: Mapping[str, Pool], at: str) -> Iterator[Problem]:
    """The problems of a namespace, except those of its ladder."""
    shapes = namespace.as_shapes()
    on_gpus = any(pools[pool].has_gpus for pool in namespace.pools_here if pool in pools)
    yield from timing_problems(namespace.as_ladder(), f"{at}.fallback")
    yield from duplicate_name_problems(
        {place: shape.name for place, shape in enumerate(shapes)}, "shape of the namespace", f"{at}.shapes"
    )
    yield from shape_problems(shapes, f"{at}.shapes")
    yield from quota_problems(namespace.quota.as_asked(), shapes, f"{at}.quota", on_gpus=on_gpus)


def duplicate_name_problems(names: Mapping[int, str], what: str, at: str) -> Iterator[Problem]:
    """Duplicate names: neither a job's node selector nor a ladder could distinguish them."""
    first: dict[str, int] = {}
    for index, name in names.items():
        if first.setdefault(name, index) != index:
            yield Problem(
                field=f"{at}[{index}].name",
                value=f"{format_value(name)}, also the name of {at}[{first[name]}]",
                allowed=f"a name that no other {what} uses",
                fix=f"Rename one of the two, such as {format_value(f'{name}-2')}, or remove it.",
            )


def duplicate_problems(names: Sequence[str], at: str, what: str) -> Iterator[Problem]:
    """Duplicates in a list."""
    for index, name in enumerate(names):
        if name in names[:index]:
            yield Problem(
                field=f"{at}[{index}]",
                value=f"{format_value(name)}, a duplicate",
                allowed=f"each {what} once",
                fix="Remove one of the two.",
            )


def training_namespace_problems(
    names: Sequence[str], namespaces: Parts[NamespaceSection], at: str
) -> Iterator[Problem]:
    """Names in a list that are none of the stack's training namespaces, or are there twice."""
    yield from duplicate_problems(names, at, "namespace")
    known = tuple(namespaces.names.values())
    for index, name in enumerate(names):
        if name not in known and not namespaces.may_hold(name):
            close = get_close_matches(name, known, n=1)
            yield Problem(
                field=f"{at}[{index}]",
                value=format_value(name),
                allowed=f"a training namespace of this stack: {', '.join(known) or 'it has none'}",
                fix=f'Write "{close[0]}".' if close else "Write one of them, or add it to namespaces.",
            )


def reserved_name_problems(names: Mapping[int, str], at: str) -> Iterator[Problem]:
    """Names of namespaces that Kubernetes or an operator uses."""
    for index, name in names.items():
        if name in RESERVED_NAMESPACES or name.startswith("kube-"):
            yield Problem(
                field=f"{at}[{index}].name",
                value=format_value(name),
                allowed=f"any name but {', '.join(sorted(RESERVED_NAMESPACES))} and those that start with kube-",
                fix=f'Write another name, such as "training-{name}".',
            )


def cloud_prefix_problems(
    names: Mapping[int, str], prefixes: tuple[str, ...], cloud: str, at: str
) -> Iterator[Problem]:
    """Names with a prefix that a cloud uses for its own namespaces."""
    for index, name in names.items():
        if name.startswith(prefixes):
            yield Problem(
                field=f"{at}[{index}].name",
                value=format_value(name),
                allowed=f"a name that does not start with {' or '.join(prefixes)}, which {cloud} uses for its own",
                fix=f'Write another name, such as "training-{name}".',
            )


def default_pool_problems(
    pools: Mapping[int, Pool], *, all_were_read: bool, example: str, at: str
) -> Iterator[Problem]:
    """Exactly one pool is the default for pods without tolerations, and it must have no taint.

    `example` is such a pool in YAML.
    """
    defaults = {index: pool for index, pool in pools.items() if pool.is_default}
    fitting = {index: pool for index, pool in defaults.items() if _may_be_default(pool)}
    candidates = [pool.name for pool in pools.values() if _may_be_default(pool)]
    if not defaults and all_were_read:
        yield Problem(
            field=at,
            value="no pool with default: true",
            allowed="exactly one, on-demand and without GPUs, for pods that name no pool",
            fix=f"Add default: true to {candidates[0]}." if candidates else f"Add {example}.",
        )
    for index, pool in list(fitting.items())[1:]:
        yield Problem(
            field=f"{at}[{index}].default",
            value=f"true on a second pool, {pool.name}",
            allowed=f"true on exactly one pool; {next(iter(fitting.values())).name} has it",
            fix="Remove default from one of the two.",
        )
    for index in defaults.keys() - fitting.keys():
        kind = f"{pools[index].capacity.value}{' with GPUs' if pools[index].has_gpus else ''}"
        yield Problem(
            field=f"{at}[{index}].default",
            value=f"true on a pool that is {kind}",
            allowed="true on an on-demand pool without GPUs, because pods that name no pool tolerate no taint",
            fix=f"Write it on {candidates[0]} instead." if candidates else f"Add {example}.",
        )


def _may_be_default(pool: Pool) -> bool:
    return pool.capacity is CapacityType.ON_DEMAND and not pool.has_gpus


def ladder_problems(
    namespaces: JsonValue, pools: Mapping[str, Pool], may_exist: Callable[[str], bool], at: str
) -> Iterator[Problem]:
    """The problems of ladders, such as a tier that no job can leave."""
    for index, entry in enumerate(namespaces if isinstance(namespaces, list | tuple) else ()):
        ladder = entry.get("ladder") if isinstance(entry, Mapping) else None
        if isinstance(ladder, list | tuple):
            tiers: Parts[TierSection] = read_parts(TierSection, ladder)
            yield from tier_problems(
                {place: tier.as_tier() for place, tier in tiers.items.items()},
                tiers.count,
                pools,
                f"{at}[{index}].ladder",
                may_exist=may_exist,
            )


def kubernetes_version_problems(cluster: JsonValue, supported: str, at: str) -> Iterator[Problem]:
    """A version without the admission policies that add tolerations, or one that the local cluster cannot run."""
    version = cluster.get("version") if isinstance(cluster, Mapping) else None
    if not isinstance(version, str) or version == supported:
        return
    problem = version_problem(f"{at}.version", version, (SPOT, GPU))
    yield problem or Problem(
        field=f"{at}.version",
        value=format_value(version),
        allowed=f'"{supported}", the version that `make tools` builds',
        fix=f'Write "{supported}".',
    )


def minor_version_problems(version: str, taints: tuple[Taint, ...], field: str) -> Iterator[Problem]:
    """A version without the admission policies for `taints`, or with a patch number, which the cloud chooses."""
    minor = ".".join(version.split(".")[:2])
    wrong = version_problem(field, version, taints)
    if wrong:
        yield wrong
    elif version != minor:
        yield Problem(
            field=field,
            value=format_value(version),
            allowed="a minor version: the cloud chooses the patch",
            fix=f'Write "{minor}".',
        )
