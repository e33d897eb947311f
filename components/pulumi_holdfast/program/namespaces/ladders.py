"""Reads training namespaces, and the FallbackPolicies that are their ladders: tiers and shapes, each parsed once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from pulumi_holdfast.ladder.json import UNKNOWN, Json, JsonValue, Unknown
from pulumi_holdfast.ladder.labels import LADDER, ON_DEMAND, TRAINING, TRAINING_VALUE
from pulumi_holdfast.ladder.reachability.shape import LEAST, Resources, Shape
from pulumi_holdfast.ladder.windows import ALWAYS, CapacityWindow, parse_time
from pulumi_holdfast.program.clusters import is_same_cluster
from pulumi_holdfast.program.namespaces.shapes import shape_of
from pulumi_holdfast.program.pools.pool import DeclaredPool
from pulumi_holdfast.program.resources import (
    NAMESPACE_TYPE,
    NAMESPACE_TYPES,
    StackResource,
    Value,
    at,
    is_fallback_policy,
    items_at,
    known_object,
    named,
    once,
    text_at,
    whole_number,
)


@dataclass(frozen=True, kw_only=True)
class TrainingNamespace:
    """A namespace with the training label, or one that only a FallbackPolicy of the program names.

    `resource` declares it: the namespace, or the FallbackPolicy if another program makes the namespace. Unless `proven`, only
    the update will know whether it has the label. `label` is the one that it has beside a ladder: any other value is a
    mistake, and without one (None) another program may set it.
    """

    resource: StackResource
    name: str | Unknown
    proven: bool
    label: str | None = TRAINING_VALUE

    @property
    def is_declared(self) -> bool:
        """Whether the program makes it."""
        return self.resource.type in NAMESPACE_TYPES

    @property
    def title(self) -> str:
        """The namespace in a message."""
        return (
            f"namespace {self.resource.logical_name!r} (its resource's name)"
            if self.name is UNKNOWN
            else f"namespace {self.name!r}"
        )


@dataclass(frozen=True, kw_only=True)
class DeclaredTier:
    """One tier as it is declared.

    `pool` is None if it names none; `declared` is the tier unparsed, for messages. `says_on_demand`: its facts say that the
    pool is on-demand; `window` is when they say that it has its capacity. `cluster` is the other cluster that has the pool,
    empty for the ladder's own; of such a tier, `facts` and `exported` are all that a program shows, UNKNOWN if only the update does.
    """

    pool: str | Unknown | None
    max_failures: int | Unknown | None
    has_timeout: bool | Unknown
    says_on_demand: bool | Unknown
    declared: Value
    window: CapacityWindow = ALWAYS
    cluster: str | Unknown = ""
    facts: Json | Unknown = field(default_factory=dict[str, "JsonValue"])
    exported: Json | Unknown = field(default_factory=dict[str, "JsonValue"])

    @property
    def is_elsewhere(self) -> bool:
        """Whether its pool is, or may be, in another cluster."""
        return self.cluster != ""


@dataclass(frozen=True, kw_only=True)
class DeclaredLadder:
    """A FallbackPolicy; `tiers` and `shapes` are UNKNOWN if not even their number is known."""

    resource: StackResource
    name: str | Unknown | None
    namespace: str | Unknown
    tiers: tuple[DeclaredTier, ...] | Unknown
    shapes: tuple[Shape | Unknown, ...] | Unknown

    @property
    def title(self) -> str:
        """The ladder in a message."""
        where = self.resource.logical_name if self.namespace is UNKNOWN else self.namespace
        return f"the ladder of namespace {where!r}"

    @property
    def own_pools(self) -> tuple[str | Unknown, ...]:
        """The names of its pools, without those of other clusters."""
        tiers = () if self.tiers is UNKNOWN else self.tiers
        return tuple(tier.pool for tier in tiers if tier.pool is not None and not tier.is_elsewhere)

    @property
    def pools(self) -> tuple[str, ...]:
        """Those of `own_pools` that are known."""
        return tuple(each for each in self.own_pools if each is not UNKNOWN)

    @property
    def known_shapes(self) -> tuple[Shape, ...]:
        """The declared shapes that are known."""
        shapes = () if self.shapes is UNKNOWN else self.shapes
        return tuple(shape for shape in shapes if isinstance(shape, Shape))


@dataclass(frozen=True, kw_only=True)
class LadderCandidates:
    """FallbackPolicies that may be a namespace's ladder."""

    certain: Sequence[DeclaredLadder]
    possible: Sequence[DeclaredLadder]
    misnamed: Sequence[DeclaredLadder]


@once
def training_namespaces(resources: Sequence[StackResource]) -> tuple[TrainingNamespace, ...]:
    """Return the stack's namespaces that have, or may turn out to have, the training label.

    A namespace that has a ladder is one, too, although another program makes it or sets its label.
    """
    found: list[TrainingNamespace] = []
    for resource in (each for each in resources if each.type in NAMESPACE_TYPES):
        label = at(resource.props, "metadata", "labels", TRAINING)
        if label == TRAINING_VALUE or label is UNKNOWN:
            name = text_at(resource.props, "metadata", "name")
            found.append(
                TrainingNamespace(
                    resource=resource, name=UNKNOWN if name is None else name, proven=label is not UNKNOWN
                )
            )
    for ladder in ladders_of(resources):
        mine = [each for each in found if _is_of(ladder, each, resources) is not False]
        if ladder.name in (LADDER, UNKNOWN) and not mine:
            found.append(_of_ladder(ladder, resources))
    return tuple(found)


def _of_ladder(ladder: DeclaredLadder, resources: Sequence[StackResource]) -> TrainingNamespace:
    """Return the namespace of a ladder that no namespace with the label has."""
    found = TrainingNamespace(resource=ladder.resource, name=ladder.namespace, proven=True)
    for each in named(resources, NAMESPACE_TYPE, ladder.namespace):
        if is_same_cluster(ladder.resource, each, resources) is True:
            label = at(each.props, "metadata", "labels", TRAINING)
            return replace(found, label=None if label is None else str(label))
    return found


def _is_of(
    ladder: DeclaredLadder, namespace: TrainingNamespace, resources: Sequence[StackResource]
) -> bool | Unknown:
    """Return whether a ladder is in a namespace: in one of that name in the same cluster."""
    if ladder.resource is namespace.resource:
        return True
    here = _equal(ladder.namespace, namespace.name)
    same = here if here is False else is_same_cluster(ladder.resource, namespace.resource, resources)
    return same if here is True or same is False else UNKNOWN


@once
def ladders_of(resources: Sequence[StackResource]) -> tuple[DeclaredLadder, ...]:
    """Return the stack's FallbackPolicies."""
    return tuple(ladder_of(each) for each in resources if is_fallback_policy(each.type))


def ladder_of(resource: StackResource) -> DeclaredLadder:
    """Read one FallbackPolicy; if its tiers are not a list, it has none."""
    tiers, shapes = (items_at(resource.props, "spec", part) for part in ("tiers", "shapes"))
    return DeclaredLadder(
        resource=resource,
        name=text_at(resource.props, "metadata", "name"),
        namespace=text_at(resource.props, "metadata", "namespace") or "default",
        tiers=UNKNOWN if tiers is UNKNOWN else tuple(_tier(tier) for tier in tiers),
        shapes=UNKNOWN
        if shapes is UNKNOWN
        else tuple(shape_of(shape, index) for index, shape in enumerate(shapes)),
    )


def _tier(declared: Value) -> DeclaredTier:
    timeout, capacity = at(declared, "procurementTimeout"), at(declared, "facts", "capacity")
    return DeclaredTier(
        pool=UNKNOWN if declared is UNKNOWN else text_at(declared, "pool"),
        max_failures=whole_number(at(declared, "maxFailures")),
        has_timeout=UNKNOWN if timeout is UNKNOWN else timeout is not None,
        says_on_demand=UNKNOWN if capacity is UNKNOWN else capacity == ON_DEMAND,
        declared=declared,
        window=CapacityWindow(begins=_time_at(declared, "begins"), ends=_time_at(declared, "ends")),
        cluster="" if declared is UNKNOWN else text_at(declared, "cluster") or "",
        facts=known_object(at(declared, "facts")),
        exported=known_object(at(declared, "exported")),
    )


def _time_at(tier: Value, field: str) -> datetime | None:
    """Return a time of the window in a tier's facts; None if it has none, or it is not known."""
    text = text_at(tier, "facts", "window", field)
    return parse_time(text) if isinstance(text, str) else None


def candidates(namespace: TrainingNamespace, resources: Sequence[StackResource]) -> LadderCandidates:
    """Sort the stack's FallbackPolicies by whether they are this namespace's ladder."""
    certain: list[DeclaredLadder] = []
    possible: list[DeclaredLadder] = []
    misnamed: list[DeclaredLadder] = []
    for ladder in _ladders_named(resources, namespace.name):
        here = _is_of(ladder, namespace, resources)
        is_named = _equal(ladder.name, LADDER)
        if here is True and is_named is True:
            certain.append(ladder)
        elif here is True and is_named is False:
            misnamed.append(ladder)
        elif here is not False and is_named is not False:
            possible.append(ladder)
    return LadderCandidates(certain=certain, possible=possible, misnamed=misnamed)


@once
def _ladders_named(
    resources: Sequence[StackResource], namespace: str | Unknown
) -> tuple[DeclaredLadder, ...]:
    """Return the FallbackPolicies that may be in a namespace of that name."""
    return tuple(each for each in ladders_of(resources) if _equal(each.namespace, namespace) is not False)


def _equal(left: str | Unknown | None, right: str | Unknown | None) -> bool | Unknown:
    return UNKNOWN if left is UNKNOWN or right is UNKNOWN else left == right


def first_tier_pools(ladder: DeclaredLadder, pools: Sequence[DeclaredPool]) -> tuple[DeclaredPool, ...]:
    """Return the pools of its first tier."""
    first = () if ladder.tiers is UNKNOWN else ladder.tiers[:1]
    return tuple(
        pool for pool in pools for tier in first if pool.label == tier.pool and pool.label is not None
    )


def shapes_of(ladder: DeclaredLadder, first_tier: Sequence[DeclaredPool]) -> tuple[Shape, ...] | Unknown:
    """Return the shapes of the namespace: the declared ones, or one pod that uses all GPUs of a first-tier machine.

    UNKNOWN if a declared shape, or the pool of the first tier, is.
    """
    if ladder.shapes is UNKNOWN:
        return UNKNOWN
    if not ladder.shapes:
        is_open = ladder.own_pools[:1] == (UNKNOWN,) and not first_tier
        return UNKNOWN if is_open else (_default_shape(first_tier),)
    return ladder.known_shapes if len(ladder.known_shapes) == len(ladder.shapes) else UNKNOWN


def _default_shape(pools: Sequence[DeclaredPool]) -> Shape:
    """Return a pod with all GPUs of the smallest of these machines, or with one CPU and 2 GiB if they have none."""
    counts = [
        machine.capacity.gpus
        for pool in pools
        if pool.facts.machines is not UNKNOWN
        for machine in pool.facts.machines
    ]
    requests = Resources(
        cpu_millis=LEAST.cpu_millis, memory_mib=LEAST.memory_mib, gpus=min(counts, default=0)
    )
    return Shape(requests=requests, is_declared=False)
