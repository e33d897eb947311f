"""Training namespaces have quotas: without one, a typo in the size of a gang buys every GPU that is available.

A quota that is too small for a shape keeps its jobs from running: some pods of the gang are created, and wait for the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from holdfast.policies.clusters import is_same_cluster
from holdfast.policies.inputs.jobs import SUBMITTER, DeclaredJob, JobKind, jobs_on
from holdfast.policies.inputs.ladders import (
    DeclaredLadder,
    TrainingNamespace,
    candidates,
    training_namespaces,
)
from holdfast.policies.inputs.namespace_limits import LimitRange, Quota, limit_ranges_near, quotas_of
from holdfast.policies.inputs.pod_templates import PodTemplate
from holdfast.policies.resources import (
    StackResource,
    Value,
    at,
    count,
    cpu_millis,
    items_at,
    known_items,
    memory_mib,
)
from holdfast.policies.rule import Finding, Level, Rule, RuleSeverity, Settings
from holdfast.scheduling.json import UNKNOWN, Unknown
from holdfast.scheduling.labels import EFA_RESOURCE, GPU_RESOURCE
from holdfast.scheduling.reachability.shape import Shape, is_in_bytes, run_at_once

_PREFIX: Final = "requests."
_OBJECTS: Final = "count/"
_JOB_SETS: Final = "jobsets.jobset.x-k8s.io"
_RAY_JOBS: Final = "rayjobs.ray.io"
_RAY_CLUSTERS: Final = "rayclusters.ray.io"
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
#: The start of what is said of a quota that has room for a job only if some of its pods end before others begin.
MAY_LACK: Final = "may not be able to run"


@dataclass(frozen=True, kw_only=True)
class _Part:
    """Pods of one shape of a gang; `priority` and `has_deadline` are None where they are not declared, as for shapes."""

    shape: Shape
    priority: str | None = None
    has_deadline: bool | None = None

    def uses(self, key: str) -> int | None:
        """How much of a quota's resource its pods use; None if that is unknown."""
        if key == "pods":
            return self.shape.pods
        name, asked = key.removeprefix(_PREFIX), self.shape.requests.times(self.shape.pods)
        known = {
            "cpu": asked.cpu_millis,
            "memory": asked.memory_mib,
            GPU_RESOURCE: asked.gpus,
            EFA_RESOURCE: asked.efa,
            **asked.devices,
        }
        return known.get(name)


@dataclass(frozen=True, kw_only=True)
class _Gang:
    """What a quota counts of one job: its pods, those beside the ones that follow the ladder included.

    `objects` are the objects that the job consists of, by resource, and the storage that its claims request: for certain, and at
    most. `templates` are those of a job of the program.
    """

    title: str
    parts: Sequence[_Part]
    objects: Mapping[str, _Amount] = field(default_factory=dict[str, "_Amount"])
    templates: Sequence[PodTemplate] = ()

    def uses(self, key: str, quota: Quota) -> _Amount | None:
        """How much of a resource of a quota it uses at once; None if that is not known.

        Scopes select pods; objects are counted whatever the scopes are.
        """
        counted = key.removeprefix(_OBJECTS)
        if counted in self.objects or key == f"{_PREFIX}{_STORAGE}":
            return self.objects.get(counted.removeprefix(_PREFIX))
        if counted not in ("pods", key):
            return None
        covered = [
            each
            for each in self.parts
            if quota.covers(priority=each.priority, has_deadline=each.has_deadline) is True
        ]
        amounts = {each.shape.name: amount for each in covered if (amount := each.uses(counted)) is not None}
        if not amounts:
            return None
        if counted != key:
            # Pods that have ended are objects, too.
            return _exactly(sum(amounts.values()))
        shapes = [each.shape for each in covered if each.shape.name in amounts]
        first = sum(amounts[each.name] for each in shapes if not each.after)
        return _Amount(
            certain=max(first, *amounts.values()),
            possible=max(sum(amounts[each.name] for each in one) for one in run_at_once(shapes)),
        )


@dataclass(frozen=True, kw_only=True)
class _Amount:
    """How much of a resource a job uses at least and at most at one time."""

    certain: int
    possible: int


def _exactly(amount: int) -> _Amount:
    return _Amount(certain=amount, possible=amount)


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
                yield from _rejected(quota, gang, ranges)
            yield from ((problem, True) for limit in ranges for problem in _beyond(limit, gang))
            yield from ((problem, True) for problem in _above_default(ranges, gang))


def _gangs(ladder: DeclaredLadder, resources: Sequence[StackResource]) -> Iterator[_Gang]:
    """Yield the gangs of a ladder's shapes, and of the jobs of the program that follow it."""
    for shape in ladder.known_shapes:
        yield _Gang(title=shape.title, parts=(_Part(shape=shape),))
    for job in jobs_on(ladder, resources):
        followers = job.followers(ladder.pools) if ladder.pools else ()
        if followers and all(isinstance(each.shape, Shape) for each in followers):
            yield _of_job(job, job.all_templates)


def _of_job(job: DeclaredJob, templates: Sequence[PodTemplate]) -> _Gang:
    """Return what is counted of a job with all its templates; of those that are not known yet, nothing is."""
    parts = [
        _Part(shape=shape, priority=_priority_of(each), has_deadline=_has_deadline(each))
        for each in templates
        if isinstance(shape := each.shape, Shape)
    ]
    claims = [
        (claim, each.pods)
        for each in templates
        if isinstance(each.pods, int)
        for claim in _claims_of_pod(each)
    ]
    claims += [(at(each, "spec"), 1) for each in _claims_of_job_set(job)]
    return _Gang(
        title=job.title,
        parts=parts,
        objects={
            **_objects_of(job, templates),
            _CLAIMS: _exactly(sum(pods for _, pods in claims)),
            _STORAGE: _exactly(sum(_storage_of(claim) * pods for claim, pods in claims)),
        },
        templates=templates,
    )


def _objects_of(job: DeclaredJob, templates: Sequence[PodTemplate]) -> Mapping[str, _Amount]:
    """Return the objects that a job consists of, beside its pods and their claims."""
    props = job.resource.props
    if job.kind == JobKind.JOB:
        return {_JOBS: _exactly(1)}
    if job.kind == JobKind.RAY_JOB:
        # A Service for the head, one more for the RayJob when it runs, and one for workers of several hosts.
        hosts = [
            count(at(each, "numOfHosts"))
            for each in known_items(props, "spec", "rayClusterSpec", "workerGroupSpecs")
        ]
        services = 2 if any(isinstance(each, int) and each > 1 for each in hosts) else 1
        submitters = sum(each.name == SUBMITTER for each in templates)
        return {
            _RAY_JOBS: _exactly(1),
            _RAY_CLUSTERS: _exactly(1),
            "services": _Amount(certain=services, possible=services + 1),
            **({_JOBS: _exactly(submitters)} if submitters else {}),
        }
    # JobSet keeps the Jobs that have ended, unless they say how long.
    jobs = [
        (each.child_jobs if isinstance(each.child_jobs, int) else 0, bool(each.after)) for each in templates
    ]
    ends = any(
        at(each, "template", "spec", "ttlSecondsAfterFinished") is not None
        for each in known_items(props, "spec", "replicatedJobs")
    )
    made = sum(number for number, _ in jobs)
    headless = at(props, "spec", "network", "enableDNSHostnames") is not False
    return {
        _JOB_SETS: _exactly(1),
        _JOBS: _Amount(
            certain=sum(number for number, is_later in jobs if not (ends and is_later)), possible=made
        ),
        **({"services": _exactly(1)} if headless else {}),
    }


def _has_deadline(template: PodTemplate) -> bool | None:
    given = at(template.template, "spec", "activeDeadlineSeconds")
    return None if given is UNKNOWN else given is not None


def _claims_of_job_set(job: DeclaredJob) -> list[Value]:
    """Return the volume claims that a JobSet makes once for all its pods."""
    policies = (
        known_items(job.resource.props, "spec", "volumeClaimPolicies") if job.kind == JobKind.JOB_SET else ()
    )
    return [each for policy in policies for each in known_items(policy, "templates")]


def _claims_of_pod(template: PodTemplate) -> list[Value]:
    """Return the volume claims that each pod brings with it, as far as they are known."""
    listed = items_at(template.template, "spec", "volumes")
    volumes = () if listed is UNKNOWN else [at(each, "ephemeral") for each in listed]
    return [at(each, "volumeClaimTemplate", "spec") for each in volumes if each is not None]


def _storage_of(claim: Value) -> int:
    """Return how many MiB a volume claim requests; 0 if that is not known."""
    found = memory_mib(at(claim, "resources", "requests", _STORAGE))
    return found if isinstance(found, int) else 0


def _rejected(quota: Quota, gang: _Gang, ranges: Sequence[LimitRange]) -> Iterator[tuple[str, bool]]:
    if quota.hard is UNKNOWN:
        return
    for key, given in quota.hard.items():
        needed, bound = gang.uses(key, quota), _amount(key, given)
        if needed is not None and isinstance(bound, int) and bound < needed.certain:
            yield (
                (
                    f"cannot run {gang.title}: {quota.title} has `{key}: {given}`, too little for the whole gang. "
                    "Raise it, or declare a smaller shape."
                ),
                True,
            )
        elif needed is not None and isinstance(bound, int) and bound < needed.possible:
            yield f"{MAY_LACK} {gang.title}: {quota.title} has `{key}: {given}`. Raise it.", False
        covered = [
            template
            for template in gang.templates
            if quota.covers(priority=_priority_of(template), has_deadline=_has_deadline(template)) is True
        ]
        for name in _without_required(key, covered, ranges):
            yield (
                (
                    f"cannot run {gang.title}: {quota.title} counts `{key}`, so the API server rejects its pods, whose container "
                    f"{name} sets none. Set it, or give a default in a LimitRange."
                ),
                True,
            )


def _priority_of(template: PodTemplate) -> str | None:
    return template.priority if isinstance(template.priority, str) else None


def _without_required(
    key: str, templates: Sequence[PodTemplate], ranges: Sequence[LimitRange]
) -> Iterator[str]:
    """Yield the containers without an amount of a resource that a quota counts."""
    of_limits = key.startswith("limits.")
    name = key.removeprefix("limits.").removeprefix(_PREFIX)
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
        asked = [replace(each, shape=replace(each.shape, pods=1)).uses(key) for each in gang.parts]
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
