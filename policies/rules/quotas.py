"""Training namespaces have quotas: without one, a typo in the size of a gang buys every GPU that is available.

A quota that is too small for a shape keeps its jobs from running: some pods of the gang are created, and wait for the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holdfast.policies.inputs.ladders import candidates, training_namespaces
from holdfast.policies.resources import at, count, cpu_millis, is_object, memory_mib, text_at
from holdfast.policies.rule import Finding, Level, Rule, RuleSeverity
from holdfast.scheduling.json import UNKNOWN, Unknown
from holdfast.scheduling.labels import GPU_RESOURCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from holdfast.policies.inputs.ladders import TrainingNamespace
    from holdfast.policies.resources import StackResource, Value
    from holdfast.policies.rule import Settings
    from holdfast.scheduling.reachability.shape import Shape

_QUOTAS: Final = frozenset({"kubernetes:core/v1:ResourceQuota", "kubernetes:core/v1:ResourceQuotaPatch"})


@dataclass(frozen=True, kw_only=True)
class _Counted:
    """A resource that a quota limits: how its amount is parsed, and how much of it the gang of a shape uses."""

    read: Callable[[Value], int | Unknown | None]
    gang: Callable[[Shape], int]


_PODS: Final = _Counted(read=count, gang=lambda shape: shape.pods)
_GPUS: Final = _Counted(read=count, gang=lambda shape: shape.pods * shape.requests.gpus)
_CPUS: Final = _Counted(read=cpu_millis, gang=lambda shape: shape.pods * shape.requests.cpu_millis)
_MEMORY: Final = _Counted(read=memory_mib, gang=lambda shape: shape.pods * shape.requests.memory_mib)

#: The keys of a quota that bound how much of the pools a job can use; those of limits do not.
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
    """A ResourceQuota; `hard` is UNKNOWN if not even its keys are known."""

    title: str
    namespace: str | Unknown
    hard: Mapping[str, Value] | Unknown
    covers_all_pods: bool


def find(resources: Sequence[StackResource], _: Settings) -> tuple[Finding, ...]:
    """Return the training namespaces without an effective ResourceQuota, and quotas that are too small for a shape."""
    quotas = [_quota(each) for each in resources if each.type in _QUOTAS]
    return tuple(
        Finding(urn=namespace.resource.urn, message=f"{namespace.title} {problem}", proven=is_proven)
        for namespace in training_namespaces(resources)
        if namespace.proven and namespace.name is not UNKNOWN
        for problem, is_proven in _problems(namespace, quotas, resources)
    )


def _problems(
    namespace: TrainingNamespace, quotas: Sequence[_Quota], resources: Sequence[StackResource]
) -> Iterator[tuple[str, bool]]:
    """Yield what is wrong with the quotas of a namespace, and whether its jobs certainly cannot run."""
    here = [each for each in quotas if each.namespace == namespace.name]
    may_have_more = any(each.namespace is UNKNOWN or each.hard is UNKNOWN for each in quotas)
    if not here and not may_have_more and namespace.is_declared:
        yield (
            (
                "has no ResourceQuota: one job may use all the capacity of the pools. Add one with "
                f"`requests.{GPU_RESOURCE}`, or `pods`."
            ),
            False,
        )
    elif here and not may_have_more and not any(_bounds(each) for each in here):
        yield (
            (
                "has a ResourceQuota that limits neither GPUs nor CPUs nor pods: one job may use all the capacity of the pools. "
                f"Add `requests.{GPU_RESOURCE}`, or `pods`."
            ),
            False,
        )
    for ladder in candidates(namespace, resources).certain:
        for shape in ladder.known_shapes:
            for quota in here:
                yield from ((problem, True) for problem in _too_small(quota, shape))


def _too_small(quota: _Quota, shape: Shape) -> Iterator[str]:
    if not quota.covers_all_pods or quota.hard is UNKNOWN:
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
        covers_all_pods=not at(resource.props, "spec", "scopes")
        and at(resource.props, "spec", "scopeSelector") is None,
    )


RULE: Final = Rule(
    name="training-namespaces-have-quotas",
    title="Training namespaces have quotas",
    description="A training namespace has a ResourceQuota for GPUs, CPUs or pods, with room for the gang of every shape that "
    "the namespace declares.",
    fix="Add one with `requests.nvidia.com/gpu` or `pods`, at least as large as the largest gang.",
    level=Level.MANDATORY,
    severity=RuleSeverity.HIGH,
    find=find,
)
