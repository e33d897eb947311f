"""Training namespaces have quotas: without one, a typo in the size of a gang buys every GPU that is available.

A quota that is too small for a shape keeps its jobs from running: some pods of the gang are created, and wait for the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from holdfast.policies.clusters import is_same_cluster
from holdfast.policies.inputs.jobs import DeclaredJob, JobKind, jobs_on
from holdfast.policies.inputs.ladders import (
    DeclaredLadder,
    TrainingNamespace,
    candidates,
    training_namespaces,
)
from holdfast.policies.inputs.namespace_limits import LimitRange, Quota, limit_ranges_near, quotas_of
from holdfast.policies.inputs.pod_templates import PodTemplate
from holdfast.policies.resources import StackResource, Value, at, count, cpu_millis, items_at, memory_mib
from holdfast.policies.rule import Finding, Level, Rule, RuleSeverity, Settings
from holdfast.scheduling.json import UNKNOWN, Unknown
from holdfast.scheduling.labels import EFA_RESOURCE, GPU_RESOURCE
from holdfast.scheduling.reachability.shape import Resources, Shape, is_in_bytes, total

_PREFIX: Final = "requests."
_OBJECTS: Final = "count/"
_JOB_SETS: Final = "jobsets.jobset.x-k8s.io"
_RAY_JOBS: Final = "rayjobs.ray.io"
_JOBS: Final = "jobs.batch"
_CLAIMS: Final = "persistentvolumeclaims"
_STORAGE: Final = "storage"
#: The resources that bound how much of the pools a job can use; those of limits do not.
_BOUNDING: Final = frozenset(
    {
        f"{_PREFIX}{GPU_RESOURCE}",
        "pods",
        f"{_OBJECTS}pods",
        "cpu",
        "memory",
        f"{_PREFIX}cpu",
        f"{_PREFIX}memory",
    }
)
#: The resources that every container has to request, or limit, where a quota counts them.
_REQUIRED: Final = ("cpu", "memory")


@dataclass(frozen=True, kw_only=True)
class _Gang:
    """Pods that run together: what a quota counts of them.

    `objects` are the objects that the job consists of, by resource; `storage_mib` is what its volume claims request. `priority`
    and `has_deadline` are None where they are not declared, as for shapes. `templates` are those of a job of the program.
    """

    title: str
    pods: int
    requests: Resources
    largest: Sequence[Resources]
    objects: Mapping[str, int] = field(default_factory=dict[str, int])
    storage_mib: int = 0
    priority: str | None = None
    has_deadline: bool | None = None
    templates: Sequence[PodTemplate] = ()

    def uses(self, key: str) -> int | None:
        """How much of a quota's resource it uses; None if that is not known."""
        counted = key.removeprefix(_OBJECTS)
        if counted == "pods":
            return self.pods
        if counted in self.objects or counted != key:
            return self.objects.get(counted)
        name, asked = key.removeprefix(_PREFIX), self.requests
        known = {
            "cpu": asked.cpu_millis,
            "memory": asked.memory_mib,
            GPU_RESOURCE: asked.gpus,
            EFA_RESOURCE: asked.efa,
            _STORAGE: self.storage_mib,
            **asked.devices,
        }
        return known.get(name)


def find(resources: Sequence[StackResource], _: Settings) -> tuple[Finding, ...]:
    """Return the training namespaces without an effective ResourceQuota, and limits that admit no whole gang."""
    return tuple(
        Finding(urn=namespace.resource.urn, message=f"{namespace.title} {problem}", proven=is_proven)
        for namespace in training_namespaces(resources)
        if namespace.proven and namespace.name is not UNKNOWN
        for problem, is_proven in _problems(namespace, quotas_of(resources), resources)
    )


def _problems(
    namespace: TrainingNamespace, quotas: Sequence[Quota], resources: Sequence[StackResource]
) -> Iterator[tuple[str, bool]]:
    """Yield what is wrong with the limits of a namespace, and whether its jobs certainly cannot run."""
    near = [
        (each, same)
        for each in quotas
        if (same := is_same_cluster(each.resource, namespace.resource, resources)) is not False
    ]
    here = [each for each, same in near if same is True and each.namespace == namespace.name]
    may_have_more = any(
        each.namespace is UNKNOWN
        or each.hard is UNKNOWN
        or (same is UNKNOWN and each.namespace == namespace.name)
        for each, same in near
    )
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
    ranges = limit_ranges_near(namespace.resource, str(namespace.name), resources)
    for ladder in candidates(namespace, resources).certain:
        for gang in _gangs(ladder, resources):
            for quota in here:
                yield from ((problem, True) for problem in _rejected(quota, gang, ranges))
            yield from ((problem, True) for limit in ranges for problem in _beyond(limit, gang))
            yield from ((problem, True) for problem in _above_default(ranges, gang))


def _gangs(ladder: DeclaredLadder, resources: Sequence[StackResource]) -> Iterator[_Gang]:
    """Yield the gangs of a ladder's shapes, and of the jobs of the program that follow it."""
    for shape in ladder.known_shapes:
        yield _Gang(
            title=shape.title,
            pods=shape.pods,
            requests=shape.requests.times(shape.pods),
            largest=(shape.requests,),
        )
    for job in jobs_on(ladder, resources):
        followers = job.followers(ladder.pools) if ladder.pools else ()
        shapes = [each.shape for each in followers]
        known = [each for each in shapes if isinstance(each, Shape)]
        if known and len(known) == len(shapes):
            yield _of_job(job, followers, known)


def _of_job(job: DeclaredJob, followers: Sequence[PodTemplate], shapes: Sequence[Shape]) -> _Gang:
    own = {JobKind.JOB_SET: _JOB_SETS, JobKind.RAY_JOB: _RAY_JOBS, JobKind.JOB: _JOBS}[JobKind(job.kind)]
    named = {each.priority for each in followers}
    deadlines = [at(each.template, "spec", "activeDeadlineSeconds") for each in followers]
    priority = named.pop() if len(named) == 1 else None
    claims = [
        (claim, each.pods)
        for each in followers
        if isinstance(each.pods, int)
        for claim in _claims_of_pod(each)
    ]
    return _Gang(
        title=job.title,
        pods=sum(shape.pods for shape in shapes),
        requests=total([shape.requests.times(shape.pods) for shape in shapes]),
        largest=tuple(shape.requests for shape in shapes),
        # A JobSet needs a Job for each of its replicated jobs, one or more, and a Service; a RayJob a Service for its head.
        objects={
            own: 1,
            _CLAIMS: sum(pods for _, pods in claims),
            **({_JOBS: len(shapes)} if job.kind == JobKind.JOB_SET else {}),
            **({} if job.kind == JobKind.JOB else {"services": 1}),
        },
        storage_mib=sum(_storage_of(claim) * pods for claim, pods in claims),
        priority=priority if isinstance(priority, str) else None,
        has_deadline=None if UNKNOWN in deadlines else _common([each is not None for each in deadlines]),
        templates=followers,
    )


def _claims_of_pod(template: PodTemplate) -> list[Value]:
    """Return the volume claims that each pod brings with it, as far as they are known."""
    listed = items_at(template.template, "spec", "volumes")
    volumes = () if listed is UNKNOWN else [at(each, "ephemeral") for each in listed]
    return [at(each, "volumeClaimTemplate", "spec") for each in volumes if each is not None]


def _storage_of(claim: Value) -> int:
    """Return how many MiB a volume claim requests; 0 if that is not known."""
    found = memory_mib(at(claim, "resources", "requests", _STORAGE))
    return found if isinstance(found, int) else 0


def _common(values: Sequence[bool]) -> bool | None:
    """Return the value that all have; None if they differ."""
    return values[0] if len({*values}) == 1 else None


def _rejected(quota: Quota, gang: _Gang, ranges: Sequence[LimitRange]) -> Iterator[str]:
    if quota.hard is UNKNOWN:
        return
    for key, given in quota.hard.items():
        needed, bound = gang.uses(key), _amount(key, given)
        # Scopes select pods; objects are counted whatever the scopes are.
        covers = key.removeprefix(_OBJECTS) in gang.objects or quota.covers(
            priority=gang.priority, has_deadline=gang.has_deadline
        )
        if covers is not True:
            continue
        if needed is not None and isinstance(bound, int) and bound < needed:
            yield (
                f"cannot run {gang.title}: {quota.title} has `{key}: {given}`, too little for the whole gang. "
                "Raise it, or declare a smaller shape."
            )
        for name in _without_required(key, gang, ranges):
            yield (
                f"cannot run {gang.title}: {quota.title} counts `{key}`, so the API server rejects its pods, whose container "
                f"{name} sets none. Set it, or give a default in a LimitRange."
            )


def _without_required(key: str, gang: _Gang, ranges: Sequence[LimitRange]) -> Iterator[str]:
    """Yield the containers without an amount of a resource that a quota counts."""
    of_limits = key.startswith("limits.")
    name = key.removeprefix("limits.").removeprefix(_PREFIX)
    defaults = [each for each in ranges if each.kind == "Container"]
    if name not in _REQUIRED or any(
        name in (each.limits if of_limits else each.requests) for each in defaults
    ):
        return
    for template in gang.templates:
        if at(template.template, "spec", "resources") is not None:
            continue
        for container, requests, limits in template.containers:
            found = at(limits, name) if of_limits else (at(requests, name) or at(limits, name))
            if found is None:
                yield container


def _beyond(limit: LimitRange, gang: _Gang) -> Iterator[str]:
    """Yield what of a gang is more, or less, than a LimitRange allows."""
    who, each_of = (
        f"cannot run {gang.title}: {limit.title} allows",
        f"for each {limit.kind.lower()}, so the API server",
    )
    for key, given in limit.most.items():
        bound = _amount(key, given)
        if any(
            isinstance(bound, int) and each > bound for each in _asked(limit, gang, key, "limits", "requests")
        ):
            yield f"{who} at most `{key}: {given}` {each_of} rejects its pods. Raise it, or request less."
    for key, given in limit.least.items():
        bound = _amount(key, given)
        if any(
            isinstance(bound, int) and each < bound for each in _asked(limit, gang, key, "requests", "limits")
        ):
            yield f"{who} at least `{key}: {given}` {each_of} rejects its pods. Lower it, or request more."


def _above_default(ranges: Sequence[LimitRange], gang: _Gang) -> Iterator[str]:
    """Yield the containers that request more than the limit that they get by default."""
    for limit in ranges if sum(each.kind == "Container" for each in ranges) == 1 else ():
        # Another message names what is above the most.
        for key in sorted(limit.limits.keys() - limit.most.keys()) if limit.kind == "Container" else ():
            given = limit.limits[key]
            bound = _amount(key, given)
            for template in gang.templates:
                for container, requests, own in template.containers:
                    asked = _amount(key, at(requests, key))
                    if (
                        at(own, key) is None
                        and isinstance(bound, int)
                        and isinstance(asked, int)
                        and asked > bound
                    ):
                        yield (
                            f"cannot run {gang.title}: {limit.title} limits containers without a limit to `{key}: {given}`, and "
                            f"container {container} requests more, so the API server rejects its pods. Set `limits.{key}` of it."
                        )


def _asked(limit: LimitRange, gang: _Gang, key: str, *fields: str) -> list[int]:
    """Return what pods, or their containers, have in the first of these fields that they set."""
    if limit.kind == "Pod":
        asked = [each.uses(key) for each in map(_alone, gang.largest)]
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
        asked = []
    return [each for each in asked if isinstance(each, int)]


def _alone(requests: Resources) -> _Gang:
    return _Gang(title="", pods=1, requests=requests, largest=())


def _amount(key: str, given: Value) -> int | Unknown | None:
    """Return an amount in the unit in which `Resources` has this resource."""
    name = key.removeprefix(_PREFIX)
    if name == "cpu":
        return cpu_millis(given)
    return memory_mib(given) if name in ("memory", _STORAGE) or is_in_bytes(name) else count(given)


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
