"""The inputs of the other rules are readable: pools, ladders, shapes, and the tolerations of admission.

The other rules skip what they cannot read, or take it for absent. Whether the API server accepts an object is not checked:
on preview it has not been asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.program.namespaces.admission import is_admission_policy, unreadable_tolerations
from pulumi_holdfast.program.namespaces.ladders import is_fallback_policy
from pulumi_holdfast.program.namespaces.shapes import toleration_of
from pulumi_holdfast.program.pools.aks import is_agent_pool
from pulumi_holdfast.program.pools.gke import NODE_POOL
from pulumi_holdfast.program.pools.karpenter import is_node_pool
from pulumi_holdfast.program.resources import (
    StackResource,
    Value,
    amount,
    at,
    is_list,
    is_object,
    whole_number,
)
from rule import Finding, Level, Rule, RuleSeverity, Settings

_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte")
_LIMITS: Final = ("nodes", "cpu", "memory", "nvidia.com/gpu")
_AMOUNTS: Final = ("pods", "cpu", "memory", "gpus", "efa")
_NODE_POOL_LISTS: Final = (
    ("spec", "template", "spec", "requirements"),
    ("spec", "template", "spec", "taints"),
    ("spec", "disruption", "budgets"),
)
_NODE_POOL_OBJECTS: Final = (
    ("spec", "template"),
    ("spec", "template", "metadata", "labels"),
    ("spec", "limits"),
)


def find(resources: Sequence[StackResource], _: Settings) -> tuple[Finding, ...]:
    """Return what the other rules could not read."""
    return tuple(
        Finding(urn=each.urn, message=f"{each.logical_name!r} {problem}", proven=False)
        for each in resources
        for problem in _problems(each)
    )


def _problems(resource: StackResource) -> Iterator[str]:
    readers = {
        _node_pool_problems: is_node_pool(resource.type),
        _gke_problems: resource.type == NODE_POOL,
        _agent_pool_problems: is_agent_pool(resource.type),
        _ladder_problems: is_fallback_policy(resource.type),
        unreadable_tolerations: is_admission_policy(resource.type),
    }
    for read, applies in readers.items():
        if applies and not resource.props:
            yield "has no properties, so no rule can check it."
        elif applies:
            yield from read(resource)


def _version_problems(resource: StackResource, known: str) -> Iterator[str]:
    version = resource.type.rpartition(":")[0].rpartition("/")[2]
    if version != known:
        yield f"has the API version {version}, which the rules do not know: it is read as {known}."


def _node_pool_problems(node_pool: StackResource) -> Iterator[str]:
    yield from _version_problems(node_pool, "v1")
    props = node_pool.props
    if not is_object(at(props, "spec", "template")) and at(props, "spec", "template") is not UNKNOWN:
        yield "has no `spec.template`, so nothing is known about its nodes."
        return
    yield from _wrong_types(props, objects=_NODE_POOL_OBJECTS, lists=_NODE_POOL_LISTS)
    requirements = at(props, "spec", "template", "spec", "requirements")
    for index, requirement in enumerate(requirements) if is_list(requirements) else ():
        yield from _requirement_problems(index, requirement)
    yield from _taint_problems(props, "spec", "template", "spec", "taints")
    for key in _LIMITS:
        limit = at(props, "spec", "limits", key)
        if limit is not None and amount(limit) is None:
            yield f"has {limit!r} as `spec.limits` of {key}, which is not a quantity: it is treated as no limit."


def _gke_problems(node_pool: StackResource) -> Iterator[str]:
    yield from _wrong_types(
        node_pool.props,
        objects=(("nodeConfig",), ("nodeConfig", "labels"), ("autoscaling",)),
        lists=(("nodeConfig", "taints"), ("nodeConfig", "guestAccelerators"), ("nodeLocations",)),
    )
    yield from _taint_problems(node_pool.props, "nodeConfig", "taints")


def _agent_pool_problems(agent_pool: StackResource) -> Iterator[str]:
    yield from _wrong_types(
        agent_pool.props, objects=(("nodeLabels",),), lists=(("nodeTaints",), ("availabilityZones",))
    )
    taints = at(agent_pool.props, "nodeTaints")
    for index, taint in enumerate(taints) if is_list(taints) else ():
        if taint is not UNKNOWN and not (isinstance(taint, str) and ":" in taint):
            yield f"has no taint under `nodeTaints[{index}]` (`key=value:Effect`), which is ignored."


def _wrong_types(
    props: Mapping[str, Value], *, objects: tuple[tuple[str, ...], ...], lists: tuple[tuple[str, ...], ...]
) -> Iterator[str]:
    for path in objects:
        found = at(props, *path)
        if found not in (None, UNKNOWN) and not is_object(found):
            yield f"has no object under `{'.'.join(path)}`, which is ignored."
    for path in lists:
        found = at(props, *path)
        if found not in (None, UNKNOWN) and not is_list(found):
            yield f"has no list under `{'.'.join(path)}`, which is treated as empty."


def _requirement_problems(index: int, requirement: Value) -> Iterator[str]:
    where = f"`spec.template.spec.requirements[{index}]`"
    key, operator, values = (at(requirement, part) for part in ("key", "operator", "values"))
    if UNKNOWN in (requirement, key, operator):
        return
    if not isinstance(key, str) or operator not in _OPERATORS:
        yield f"has no valid requirement under {where}, which is ignored."
    elif values not in (None, UNKNOWN) and not is_list(values):
        yield f"has no list of values under {where}, which is treated as empty."


def _taint_problems(props: Mapping[str, Value], *path: str) -> Iterator[str]:
    taints = at(props, *path)
    for index, taint in enumerate(taints) if is_list(taints) else ():
        key, effect = at(taint, "key"), at(taint, "effect")
        if UNKNOWN not in (taint, key, effect) and not (isinstance(key, str) and isinstance(effect, str)):
            yield f"has no taint under `{'.'.join(path)}[{index}]`, which is ignored."


def _ladder_problems(ladder: StackResource) -> Iterator[str]:
    yield from _version_problems(ladder, "v1alpha1")
    tiers, shapes = at(ladder.props, "spec", "tiers"), at(ladder.props, "spec", "shapes")
    if is_list(tiers):
        for index, tier in enumerate(tiers):
            yield from _tier_problems(index, tier)
        yield from _repeated_pools(tiers)
    elif tiers is not UNKNOWN:
        yield "has no list under `spec.tiers`, so its ladder is treated as empty."
    if is_list(shapes):
        for index, shape in enumerate(shapes):
            yield from _shape_problems(index, shape)
    elif shapes not in (None, UNKNOWN):
        yield "has no list under `spec.shapes`, so its jobs are taken to have the default shape."


def _tier_problems(index: int, tier: Value) -> Iterator[str]:
    where = f"`spec.tiers[{index}]`"
    if tier is UNKNOWN:
        return
    if not is_object(tier):
        yield f"has no tier under {where}, so tier {index + 1} is ignored."
        return
    if at(tier, "pool") is not UNKNOWN and not isinstance(at(tier, "pool"), str):
        yield f"names no pool under {where}, so no job can run on tier {index + 1}."
    failures = at(tier, "maxFailures")
    if failures is not None and whole_number(failures) is None:
        yield f"has {failures!r} as `maxFailures` under {where}, which is not an integer and is ignored."


def _repeated_pools(tiers: Sequence[Value]) -> Iterator[str]:
    """Yield the pools that a ladder names twice, which the API server rejects."""
    first: dict[tuple[str, str], int] = {}
    for number, tier in enumerate(tiers, start=1):
        pool, cluster = at(tier, "pool"), at(tier, "cluster") or ""
        if not isinstance(pool, str) or not isinstance(cluster, str):
            continue
        if (cluster, pool) in first:
            yield (
                f"names pool {pool!r} in tier {number}, which is already tier {first[cluster, pool]}: a job cannot distinguish the two. "
                "Name each pool once, and raise its `maxFailures` instead."
            )
        first.setdefault((cluster, pool), number)


def _shape_problems(index: int, shape: Value) -> Iterator[str]:
    where = f"`spec.shapes[{index}]`"
    if shape is UNKNOWN:
        return
    if not is_object(shape):
        yield f"has no shape under {where}, which is treated as the smallest shape."
        return
    for key in _AMOUNTS:
        given = shape.get(key)
        if given is not None and amount(given) is None:
            yield f"has {given!r} as `{key}` under {where}, which is not a quantity: it is treated as the smallest one."
    devices = at(shape, "devices")
    for name, given in devices.items() if is_object(devices) else ():
        if amount(given) is None:
            yield f"has {given!r} of {name} under {where}.devices, which is not a quantity and is ignored."
    tolerations = at(shape, "tolerations")
    for number, toleration in enumerate(tolerations) if is_list(tolerations) else ():
        if toleration_of(toleration) is None:
            yield f"has no toleration under {where}.tolerations[{number}], which is ignored."


RULE: Final = Rule(
    name="policy-inputs-readable",
    title="Pools and ladders are readable",
    description="The rules can read the pools, ladders, shapes and tolerations of the program.",
    fix="Correct what the message names; until then the other rules skip it.",
    level=Level.ADVISORY,
    severity=RuleSeverity.MEDIUM,
    find=find,
)
