"""Training namespaces have quotas: without one, a typo in the size of a gang buys every GPU that is available.

A quota that is too small for a shape keeps its jobs from running: some pods of the gang are created, and wait for the rest. What
else a quota or a LimitRange rejects, the API server says when a job is created; every verdict takes it for granted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN, Unknown, all_true
from pulumi_holdfast.ladder.labels import EFA_RESOURCE, GPU_RESOURCE
from pulumi_holdfast.ladder.reachability.shape import Shape, is_in_bytes, run_at_once
from pulumi_holdfast.program.clusters import is_same_cluster
from pulumi_holdfast.program.jobs.jobs import jobs_on
from pulumi_holdfast.program.namespaces.ladders import (
    DeclaredLadder,
    TrainingNamespace,
    candidates,
    training_namespaces,
)
from pulumi_holdfast.program.namespaces.limits import Quota, quotas_of
from pulumi_holdfast.program.resources import StackResource, Value, count, cpu_millis, memory_mib, once
from pulumi_holdfast.program.settings import Settings
from rule import Finding, Level, Rule, RuleSeverity
from rules.ladder_end import KNOWN_LATER

_REQUESTS: Final = "requests."
_OBJECTS: Final = "count/pods"
#: The resources that bound how much of the pools a job can use.
_BOUNDING: Final = frozenset(
    {f"{_REQUESTS}{GPU_RESOURCE}", "pods", _OBJECTS}
    | {f"{prefix}{name}" for prefix in ("", _REQUESTS) for name in ("cpu", "memory")}
)


@dataclass(frozen=True, kw_only=True)
class QuotaProblem:
    """What is wrong with the quotas of a namespace, by the URN of what declares it.

    `strands`: jobs of the namespace certainly cannot run; UNKNOWN if they may not be able to, False if all can.
    """

    urn: str
    message: str
    strands: bool | Unknown


def find(resources: Sequence[StackResource], _: Settings) -> tuple[Finding, ...]:
    """Return the training namespaces without an effective ResourceQuota, and quotas without room for a whole gang."""
    return tuple(
        Finding(urn=each.urn, message=each.message, proven=each.strands is True)
        for each in quota_problems(resources)
    )


@once
def quota_problems(resources: Sequence[StackResource]) -> tuple[QuotaProblem, ...]:
    """Return what is wrong with the quotas of the training namespaces."""
    return tuple(
        QuotaProblem(urn=namespace.resource.urn, message=f"{namespace.title} {problem}", strands=strands)
        for namespace in training_namespaces(resources)
        if namespace.proven and namespace.name is not UNKNOWN
        for problem, strands in _problems(namespace, resources)
    )


def _problems(
    namespace: TrainingNamespace, resources: Sequence[StackResource]
) -> Iterator[tuple[str, bool | Unknown]]:
    """Yield what is wrong with the quotas of a namespace, and whether it keeps its jobs from running."""
    near = [
        (each, all_true((is_same_cluster(each.resource, namespace.resource, resources), is_in)))
        for each in quotas_of(resources)
        if (is_in := UNKNOWN if each.namespace is UNKNOWN else each.namespace == namespace.name) is not False
    ]
    quotas = [(each, is_here) for each, is_here in near if is_here is not False]
    is_open = any(is_here is UNKNOWN or each.hard is UNKNOWN for each, is_here in quotas)
    bounds = any(each.hard is not UNKNOWN and _BOUNDING & each.hard.keys() for each, _ in quotas)
    if not quotas and namespace.is_declared:
        yield (
            (
                "has no ResourceQuota: one job may use all the capacity of the pools. Add one with "
                f"`requests.{GPU_RESOURCE}`, or `pods`."
            ),
            False,
        )
    elif quotas and not is_open and not bounds:
        yield (
            (
                "has a ResourceQuota that limits neither GPUs nor CPUs nor pods: one job may use all the capacity of the pools. "
                f"Add `requests.{GPU_RESOURCE}`, or `pods`."
            ),
            False,
        )
    for ladder in candidates(namespace, resources).certain:
        for title, shapes in _gangs(ladder, resources):
            for quota, is_here in quotas:
                for problem, strands in _without_room(quota, title, shapes):
                    yield problem, strands if is_here is True else UNKNOWN


def _gangs(
    ladder: DeclaredLadder, resources: Sequence[StackResource]
) -> Iterator[tuple[str, Sequence[Shape]]]:
    """Yield the gangs of a ladder's shapes, and of the program's jobs that follow it with all pods that they have."""
    yield from ((shape.title, [shape]) for shape in ladder.known_shapes)
    for job in jobs_on(ladder, resources):
        if ladder.pools and job.followers(ladder.pools):
            shapes = [each.shape for each in job.all_templates]
            yield job.title, [each for each in shapes if isinstance(each, Shape)]


def _without_room(quota: Quota, title: str, shapes: Sequence[Shape]) -> Iterator[tuple[str, bool | Unknown]]:
    """Yield why a quota has no room for a gang, and whether that is certain."""
    if quota.hard is UNKNOWN:
        yield f"may not be able to run {title}: what {quota.title} allows {KNOWN_LATER}.", UNKNOWN
        return
    for key, given in quota.hard.items():
        certain, possible = _needs(shapes, key)
        bound = _amount(key, given)
        if bound is UNKNOWN and possible:
            yield (
                f"may not be able to run {title}: which `{key}` {quota.title} allows {KNOWN_LATER}.",
                UNKNOWN,
            )
        elif isinstance(bound, int) and bound < certain:
            yield (
                (
                    f"cannot run {title}: {quota.title} has `{key}: {given}`, too little for the whole gang. Raise it, or declare a "
                    "smaller shape."
                ),
                True,
            )
        elif isinstance(bound, int) and bound < possible:
            yield f"may not be able to run {title}: {quota.title} has `{key}: {given}`. Raise it.", UNKNOWN


def _needs(shapes: Sequence[Shape], key: str) -> tuple[int, int]:
    """Return how much of a resource of a quota a gang uses at one time, at least and at most; 0 of one that is not counted."""
    uses = {id(each): _used_by(each, key) for each in shapes}
    if key == _OBJECTS:
        # Pods that have ended are objects, too.
        return sum(uses.values()), sum(uses.values())
    first = sum(uses[id(each)] for each in shapes if not each.after)
    together = (sum(uses[id(each)] for each in group) for group in run_at_once(shapes))
    return max(first, *uses.values(), 0), max(together, default=0)


def _used_by(shape: Shape, key: str) -> int:
    asked = shape.requests.times(shape.pods)
    counted = {
        "pods": shape.pods,
        _OBJECTS: shape.pods,
        "cpu": asked.cpu_millis,
        "memory": asked.memory_mib,
        GPU_RESOURCE: asked.gpus,
        EFA_RESOURCE: asked.efa,
        **asked.devices,
    }
    return counted.get(key.removeprefix(_REQUESTS), 0)


def _amount(key: str, given: Value) -> int | Unknown | None:
    """Return an amount in the unit in which `Resources` has this resource."""
    name = key.removeprefix(_REQUESTS)
    if name == "cpu":
        return cpu_millis(given)
    return memory_mib(given) if name == "memory" or is_in_bytes(name) else count(given)


RULE: Final = Rule(
    name="training-namespaces-have-quotas",
    title="Training namespaces have quotas",
    description="A training namespace has a ResourceQuota for GPUs, CPUs or pods, with room for the gang of every shape that "
    "the namespace declares and of every job of the program.",
    fix="Add one with `requests.nvidia.com/gpu` or `pods`, at least as large as the largest gang.",
    level=Level.MANDATORY,
    severity=RuleSeverity.HIGH,
    find=find,
)
