"""Training namespaces have quotas: without one, a typo in the size of a gang buys every GPU that is available.

A quota that is too small for a shape keeps its jobs from running: some pods of the gang are created, and wait for the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN, Unknown, all_true
from pulumi_holdfast.ladder.labels import GPU_RESOURCE
from pulumi_holdfast.ladder.reachability.shape import is_in_bytes
from pulumi_holdfast.program.clusters import is_same_cluster
from pulumi_holdfast.program.jobs.gangs import (
    LIMITS,
    REQUESTS,
    Gang,
    gangs_of,
    has_deadline_of,
    priority_of,
    resource_of,
    used_by,
)
from pulumi_holdfast.program.jobs.pod_templates import PodTemplate
from pulumi_holdfast.program.namespaces.ladders import TrainingNamespace, candidates, training_namespaces
from pulumi_holdfast.program.namespaces.limits import (
    LimitRange,
    Quota,
    limit_ranges_near,
    may_have_other_limits,
    quotas_of,
)
from pulumi_holdfast.program.resources import StackResource, Value, at, count, cpu_millis, memory_mib, once
from pulumi_holdfast.program.settings import Settings
from rule import Finding, Level, Rule, RuleSeverity
from rules.ladder_end import KNOWN_LATER

#: The resources that bound how much of the pools a job can use; those of limits do not.
_BOUNDING: Final = frozenset(
    {
        f"{REQUESTS}{GPU_RESOURCE}",
        "pods",
        "count/pods",
        "cpu",
        "memory",
        f"{REQUESTS}cpu",
        f"{REQUESTS}memory",
    }
)
#: The start of what is said of a quota that may have no room for a job.
_MAY_LACK: Final = "may not be able to run"
#: The resources that every container has to request, or limit, where a quota counts them.
_REQUIRED: Final = ("cpu", "memory")


@dataclass(frozen=True, kw_only=True)
class LimitProblem:
    """What is wrong with the limits of a namespace, by the URN of what declares it.

    `strands`: jobs of the namespace certainly cannot run; UNKNOWN if they may not be able to, False if all can.
    """

    urn: str
    message: str
    strands: bool | Unknown


def find(resources: Sequence[StackResource], _: Settings) -> tuple[Finding, ...]:
    """Return the training namespaces without an effective ResourceQuota, and limits that admit no whole gang."""
    return tuple(
        Finding(urn=each.urn, message=each.message, proven=each.strands is True)
        for each in limit_problems(resources)
    )


@once
def limit_problems(resources: Sequence[StackResource]) -> tuple[LimitProblem, ...]:
    """Return what is wrong with the limits of the training namespaces."""
    return tuple(
        LimitProblem(urn=namespace.resource.urn, message=f"{namespace.title} {problem}", strands=strands)
        for namespace in training_namespaces(resources)
        if namespace.proven and namespace.name is not UNKNOWN
        for problem, strands in _problems(namespace, quotas_of(resources), resources)
    )


def _problems(
    namespace: TrainingNamespace, quotas: Sequence[Quota], resources: Sequence[StackResource]
) -> Iterator[tuple[str, bool | Unknown]]:
    """Yield what is wrong with the limits of a namespace, and whether it keeps its jobs from running."""
    near = [
        (each, all_true((is_same_cluster(each.resource, namespace.resource, resources), is_in)))
        for each in quotas
        if (is_in := _is_in(namespace, each)) is not False
    ]
    here = [each for each, is_here in near if is_here is True]
    maybe = [each for each, is_here in near if is_here is UNKNOWN]
    may_have_more = bool(maybe) or any(each.hard is UNKNOWN for each in here)
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
    where = (namespace.resource, str(namespace.name), resources)
    ranges, may_have_more = limit_ranges_near(*where), may_have_other_limits(*where)
    if may_have_more:
        yield (
            f"{_MAY_LACK} its jobs: what a LimitRange allows their pods, and gives them, {KNOWN_LATER}.",
            UNKNOWN,
        )
    for ladder in candidates(namespace, resources).certain:
        for gang in gangs_of(ladder, resources):
            for quota in here:
                yield from _rejected(quota, gang, ranges, are_all=not may_have_more)
            for quota in maybe:
                if any(_rejected(quota, gang, ranges, are_all=not may_have_more)):
                    yield (
                        f"{_MAY_LACK} {gang.title}: whether {quota.title} is of its namespace {KNOWN_LATER}.",
                        UNKNOWN,
                    )
            yield from ((problem, True) for limit in ranges for problem in _beyond(limit, gang))
            if not may_have_more:
                yield from ((problem, True) for problem in _without_limit(ranges, gang))
                yield from ((problem, True) for problem in _above_default(ranges, gang))


def _is_in(namespace: TrainingNamespace, quota: Quota) -> bool | Unknown:
    return UNKNOWN if quota.namespace is UNKNOWN else quota.namespace == namespace.name


def _rejected(
    quota: Quota, gang: Gang, ranges: Sequence[LimitRange], *, are_all: bool
) -> Iterator[tuple[str, bool | Unknown]]:
    """Yield why a quota has no room for a gang, and whether that is certain; `are_all`: no other LimitRange may give defaults."""
    if quota.hard is UNKNOWN:
        yield f"{_MAY_LACK} {gang.title}: what {quota.title} allows {KNOWN_LATER}.", UNKNOWN
        return
    for key, given in quota.hard.items():
        needed, bound = gang.uses(key, quota), _amount(key, given)
        if needed is None:
            pass
        elif bound is UNKNOWN and needed.possible:
            yield f"{_MAY_LACK} {gang.title}: which `{key}` {quota.title} allows {KNOWN_LATER}.", UNKNOWN
        elif isinstance(bound, int) and bound < needed.certain:
            yield (
                (
                    f"cannot run {gang.title}: {quota.title} has `{key}: {given}`, too little for the whole gang. "
                    "Raise it, or declare a smaller shape."
                ),
                True,
            )
        elif isinstance(bound, int) and bound < needed.possible:
            yield f"{_MAY_LACK} {gang.title}: {quota.title} has `{key}: {given}`. Raise it.", UNKNOWN
        covered = [
            template
            for template in gang.templates
            if quota.covers(priority=priority_of(template), has_deadline=has_deadline_of(template)) is True
        ]
        for name in _without_required(key, covered, ranges) if are_all else ():
            yield (
                (
                    f"cannot run {gang.title}: {quota.title} counts `{key}`, so the API server rejects its pods, whose container "
                    f"{name} sets none. Set it, or give a default in a LimitRange."
                ),
                True,
            )


def _without_required(
    key: str, templates: Sequence[PodTemplate], ranges: Sequence[LimitRange]
) -> Iterator[str]:
    """Yield the containers without an amount of a resource that a quota counts."""
    of_limits = key.startswith(LIMITS)
    name = resource_of(key)
    defaults = [each for each in ranges if each.kind == "Container"]
    if name not in _REQUIRED or any(
        name in (each.limits if of_limits else each.requests) for each in defaults
    ):
        return
    for template in templates:
        if at(template.template, "spec", "resources") is not None:
            continue
        for container, requests, limits in template.containers:
            found = at(limits, name) if of_limits else (at(requests, name) or at(limits, name))
            if found is None:
                yield container


def _beyond(limit: LimitRange, gang: Gang) -> Iterator[str]:
    """Yield what of a gang is more, or less, than a LimitRange allows."""
    who = f"cannot run {gang.title}: {limit.title} allows"
    each_of = f"for each {limit.kind.lower()}, so the API server rejects its pods"
    for key, given in limit.most.items():
        bound = _amount(key, given)
        if any(
            isinstance(bound, int) and each > bound for each in _asked(limit, gang, key, "limits", "requests")
        ):
            yield f"{who} at most `{key}: {given}` {each_of}. Raise it, or request less."
    for key, given in limit.least.items():
        bound = _amount(key, given)
        if any(
            isinstance(bound, int) and each < bound for each in _asked(limit, gang, key, "requests", "limits")
        ):
            yield f"{who} at least `{key}: {given}` {each_of}. Lower it, or request more."


def _without_limit(ranges: Sequence[LimitRange], gang: Gang) -> Iterator[str]:
    """Yield the limits of pods that reject those which have none."""
    for limit in ranges:
        for key in limit.most if limit.kind == "Pod" else ():
            limited = [each.as_limited for each in gang.parts]
            if not all(used_by(each, key) for each in limited if each is not None):
                yield (
                    f"cannot run {gang.title}: {limit.title} has a `max` of `{key}` for each pod, so the API server rejects its "
                    f"pods without a limit. Set `limits.{key}` of their containers."
                )


def _above_default(ranges: Sequence[LimitRange], gang: Gang) -> Iterator[str]:
    """Yield the containers that request more than any limit that they may get by default."""
    of_containers = [each for each in ranges if each.kind == "Container"]
    for key in sorted({key for each in of_containers for key in each.limits}):
        bounds = [(_amount(key, each.limits[key]), each) for each in of_containers if key in each.limits]
        known = [(bound, each) for bound, each in bounds if isinstance(bound, int)]
        bound, limit = max(known or [(0, None)], key=itemgetter(0))
        # Another message names what is above the most.
        if limit is None or key in limit.most:
            continue
        for template in gang.templates:
            for container, requests, own in template.containers:
                asked = _amount(key, at(requests, key))
                if at(own, key) is None and isinstance(asked, int) and asked > bound:
                    yield (
                        f"cannot run {gang.title}: {limit.title} limits containers without a limit to `{key}: {limit.limits[key]}`, and "
                        f"container {container} requests more, so the API server rejects its pods. Set `limits.{key}` of it."
                    )


def _asked(limit: LimitRange, gang: Gang, key: str, *fields: str) -> list[int]:
    """Return what pods, or their containers, have in the first of these fields that they set."""
    if limit.kind == "Pod":
        of_limits = fields[0] == "limits"
        shapes = [(of_limits and each.as_limited) or each.shape for each in gang.parts]
        asked = [used_by(replace(each, pods=1), key) for each in shapes]
    elif limit.kind == "Container":
        asked = [
            _amount(
                key, next((found for each in fields if (found := at(resources[each], key)) is not None), None)
            )
            for template in gang.templates
            for _, requests, limits in template.containers
            for resources in ({"requests": requests, "limits": limits},)
        ]
    else:
        asked = ()
    return [each for each in asked if isinstance(each, int)]


def _amount(key: str, given: Value) -> int | Unknown | None:
    """Return an amount in the unit in which `Resources` has this resource."""
    name = resource_of(key)
    if name == "cpu":
        return cpu_millis(given)
    return memory_mib(given) if name == "memory" or is_in_bytes(name) else count(given)


def _bounds(quota: Quota) -> bool:
    return quota.hard is not UNKNOWN and not _BOUNDING.isdisjoint(quota.hard)


RULE: Final = Rule(
    name="training-namespaces-have-quotas",
    title="Training namespaces have quotas",
    description="A training namespace has a ResourceQuota for GPUs, CPUs or pods, with room for the gang of every shape that "
    "the namespace declares and of every job of the program, and no LimitRange rejects their pods.",
    fix="Add one with `requests.nvidia.com/gpu` or `pods`, at least as large as the largest gang.",
    level=Level.MANDATORY,
    severity=RuleSeverity.HIGH,
    find=find,
)
