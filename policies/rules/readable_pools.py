"""What cannot be read of a pool, on each cloud."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.policies.declared.amounts import amount
from holdfast.policies.known_values import UNKNOWN, at, is_list, is_object
from holdfast.policies.rules.versions import version_problems

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holdfast.policies.findings import StackResource
    from holdfast.policies.known_values import Value

_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte")
_LIMITS: Final = ("nodes", "cpu", "memory", "nvidia.com/gpu")
#: What is a list wherever it is, and what an object.
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


def node_pool_problems(node_pool: StackResource) -> Iterator[str]:
    """Yield what cannot be read of a NodePool of Karpenter's."""
    yield from version_problems(node_pool, "v1")
    props = node_pool.props
    if not is_object(at(props, "spec", "template")) and at(props, "spec", "template") is not UNKNOWN:
        yield "has no `spec.template`, so that nothing is known of its nodes."
        return
    yield from _wrong(props, objects=_NODE_POOL_OBJECTS, lists=_NODE_POOL_LISTS)
    requirements = at(props, "spec", "template", "spec", "requirements")
    for place, requirement in enumerate(requirements) if is_list(requirements) else ():
        yield from _requirement_problems(place, requirement)
    yield from _taint_problems(props, "spec", "template", "spec", "taints")
    for key in _LIMITS:
        limit = at(props, "spec", "limits", key)
        if limit is not None and amount(limit) is None:
            yield f"has {limit!r} for `spec.limits` of {key}, which is no amount: it is taken for no limit."


def gke_problems(node_pool: StackResource) -> Iterator[str]:
    """Yield what cannot be read of a node pool of GKE."""
    yield from _wrong(
        node_pool.props,
        objects=(("nodeConfig",), ("nodeConfig", "labels"), ("autoscaling",)),
        lists=(("nodeConfig", "taints"), ("nodeConfig", "guestAccelerators"), ("nodeLocations",)),
    )
    yield from _taint_problems(node_pool.props, "nodeConfig", "taints")


def agent_pool_problems(agent_pool: StackResource) -> Iterator[str]:
    """Yield what cannot be read of an agent pool of AKS'."""
    yield from _wrong(
        agent_pool.props, objects=(("nodeLabels",),), lists=(("nodeTaints",), ("availabilityZones",))
    )
    taints = at(agent_pool.props, "nodeTaints")
    for place, taint in enumerate(taints) if is_list(taints) else ():
        if taint is not UNKNOWN and not (isinstance(taint, str) and ":" in taint):
            yield f"has no taint under `nodeTaints[{place}]` (`key=value:Effect`), which is passed over."


def _wrong(
    props: Mapping[str, Value], *, objects: tuple[tuple[str, ...], ...], lists: tuple[tuple[str, ...], ...]
) -> Iterator[str]:
    for path in objects:
        found = at(props, *path)
        if found not in (None, UNKNOWN) and not is_object(found):
            yield f"has no object under `{'.'.join(path)}`, which is passed over."
    for path in lists:
        found = at(props, *path)
        if found not in (None, UNKNOWN) and not is_list(found):
            yield f"has no list under `{'.'.join(path)}`, which is taken for an empty one."


def _requirement_problems(place: int, requirement: Value) -> Iterator[str]:
    where = f"`spec.template.spec.requirements[{place}]`"
    key, operator, values = (at(requirement, part) for part in ("key", "operator", "values"))
    if UNKNOWN in (requirement, key, operator):
        return
    if not isinstance(key, str) or operator not in _OPERATORS:
        yield f"has no requirement under {where} that can be read, which is passed over."
    elif values not in (None, UNKNOWN) and not is_list(values):
        yield f"has no list of values under {where}, which is taken for an empty one."


def _taint_problems(props: Mapping[str, Value], *path: str) -> Iterator[str]:
    taints = at(props, *path)
    for place, taint in enumerate(taints) if is_list(taints) else ():
        key, effect = at(taint, "key"), at(taint, "effect")
        if UNKNOWN not in (taint, key, effect) and not (isinstance(key, str) and isinstance(effect, str)):
            yield f"has no taint under `{'.'.join(path)}[{place}]`, which is passed over."
