"""The rule that training namespaces set quotas: without one, a typing error in a gang's size buys every GPU there is.

And a quota that is too small for a shape keeps its jobs from ever running: some of the gang's pods are let in, and wait.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holdfast.policies.declared.amounts import cpu_millis, memory_mib, whole
from holdfast.policies.findings import Finding
from holdfast.policies.known_values import UNKNOWN, Unknown, at, is_object, text_at
from holdfast.policies.shapes import declared_shapes
from holdfast.policies.training_ladders import candidates, training_namespaces
from holdfast.scheduling.labels import GPU_RESOURCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from holdfast.policies.findings import StackResource
    from holdfast.policies.known_values import Value
    from holdfast.policies.rule import Settings
    from holdfast.policies.training_ladders import TrainingNamespace
    from holdfast.scheduling.reachability.shape import Shape

_QUOTAS: Final = frozenset({"kubernetes:core/v1:ResourceQuota", "kubernetes:core/v1:ResourceQuotaPatch"})


@dataclass(frozen=True, kw_only=True)
class _Counted:
    """Something a quota counts: how its amount is read, and how much of it a shape's gang takes."""

    read: Callable[[Value], int | Unknown | None]
    gang: Callable[[Shape], int]


_PODS: Final = _Counted(read=whole, gang=lambda shape: shape.pods)
_GPUS: Final = _Counted(read=whole, gang=lambda shape: shape.pods * shape.requests.gpus)
_CPUS: Final = _Counted(read=cpu_millis, gang=lambda shape: shape.pods * shape.requests.cpu_millis)
_MEMORY: Final = _Counted(read=memory_mib, gang=lambda shape: shape.pods * shape.requests.memory_mib)

#: What bounds how much of the pools a job can take. What limits pods may have at most is no more than a hint of it.
_COUNTED: Final[Mapping[str, _Counted]] = {
    f"requests.{GPU_RESOURCE}": _GPUS,
    "pods": _PODS,
    "count/pods": _PODS,
    "requests.cpu": _CPUS,
    "cpu": _CPUS,
    "requests.memory": _MEMORY,
    "memory": _MEMORY,
}


@dataclass(frozen=True, kw_only=True)
class _Quota:
    """A ResourceQuota; `hard` is UNKNOWN where not even its keys are known."""

    title: str
    namespace: str | Unknown
    hard: Mapping[str, Value] | Unknown
    is_of_all_pods: bool


def find(resources: Sequence[StackResource], _: Settings) -> tuple[Finding, ...]:
    """Return the training namespaces without a ResourceQuota that bounds them, and quotas too small for a shape."""
    quotas = [_quota(each) for each in resources if each.type in _QUOTAS]
    return tuple(
        Finding(urn=namespace.resource.urn, message=f"{namespace.title} {problem}")
        for namespace in training_namespaces(resources)
        if namespace.proven and namespace.name is not UNKNOWN
        for problem in _problems(namespace, quotas, resources)
    )


def _problems(
    namespace: TrainingNamespace, quotas: Sequence[_Quota], resources: Sequence[StackResource]
) -> Iterator[str]:
    here = [each for each in quotas if each.namespace == namespace.name]
    may_be_more = any(each.namespace is UNKNOWN or each.hard is UNKNOWN for each in quotas)
    if not here and not may_be_more:
        yield (
            "has no ResourceQuota: one job may take all that the pools have. Add one with "
            f"`requests.{GPU_RESOURCE}`, or `pods`."
        )
    elif not may_be_more and not any(_bounds(each) for each in here):
        yield (
            "has a ResourceQuota that bounds neither GPUs nor CPUs nor pods: one job may take all that the pools have. "
            f"Add `requests.{GPU_RESOURCE}`, or `pods`."
        )
    for ladder in candidates(namespace, resources).certain:
        for shape in declared_shapes(ladder):
            for quota in here:
                yield from _too_small(quota, shape)


def _too_small(quota: _Quota, shape: Shape) -> Iterator[str]:
    if not quota.is_of_all_pods or quota.hard is UNKNOWN:
        return
    for name, counted in _COUNTED.items():
        bound, needed = counted.read(quota.hard.get(name)), counted.gang(shape)
        if isinstance(bound, int) and bound < needed:
            yield (
                f"cannot run {shape.title}: {quota.title} has `{name}: {quota.hard[name]}`, too little for the whole gang. "
                "Raise it, or declare a smaller shape."
            )


def _bounds(quota: _Quota) -> bool:
    return quota.hard is not UNKNOWN and not _COUNTED.keys().isdisjoint(quota.hard)


def _quota(resource: StackResource) -> _Quota:
    hard = at(resource.props, "spec", "hard")
    name = text_at(resource.props, "metadata", "name")
    return _Quota(
        title=f"ResourceQuota {name if isinstance(name, str) else resource.logical_name!r}",
        namespace=text_at(resource.props, "metadata", "namespace") or "default",
        hard=UNKNOWN if hard is UNKNOWN else hard if is_object(hard) else {},
        is_of_all_pods=not at(resource.props, "spec", "scopes")
        and at(resource.props, "spec", "scopeSelector") is None,
    )
