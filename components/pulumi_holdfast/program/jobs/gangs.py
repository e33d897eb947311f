"""Reads what ResourceQuotas and LimitRanges count of a gang: its pods, and the objects that its job consists of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.ladder.labels import EFA_RESOURCE, GPU_RESOURCE
from pulumi_holdfast.ladder.reachability.shape import Resources, Shape, run_at_once, widest
from pulumi_holdfast.program.jobs.jobs import DeclaredJob, JobKind, jobs_on
from pulumi_holdfast.program.jobs.pod_templates import PodTemplate
from pulumi_holdfast.program.namespaces.ladders import DeclaredLadder
from pulumi_holdfast.program.namespaces.limits import Quota
from pulumi_holdfast.program.resources import StackResource, at, count, known_items

REQUESTS: Final = "requests."
LIMITS: Final = "limits."
_OBJECTS: Final = "count/"
_JOB_SETS: Final = "jobsets.jobset.x-k8s.io"
_RAY_JOBS: Final = "rayjobs.ray.io"
_RAY_CLUSTERS: Final = "rayclusters.ray.io"
_JOBS: Final = "jobs.batch"


@dataclass(frozen=True, kw_only=True)
class GangPart:
    """Pods of one shape of a gang; `priority`, `has_deadline` and `limits` are None where they are not declared, as for shapes."""

    shape: Shape
    limits: Resources | None = None
    priority: str | None = None
    has_deadline: bool | None = None

    @property
    def as_limited(self) -> Shape | None:
        """Its shape with its limits in place of its requests."""
        return None if self.limits is None else replace(self.shape, requests=self.limits)

    def counted_as(self, key: str) -> Shape:
        """Its shape, with its limits for a resource of a quota that counts these: none is below the request."""
        if self.limits is None or not key.startswith(LIMITS):
            return self.shape
        return replace(self.shape, requests=widest([self.shape.requests, self.limits]))


def resource_of(key: str) -> str:
    """Return the resource that a key of a quota is about, whether it counts requests or limits."""
    return key.removeprefix(REQUESTS).removeprefix(LIMITS)


def used_by(shape: Shape, key: str) -> int | None:
    """Return how much of a resource of a quota the pods of a shape use; None if that is not known."""
    if key == "pods":
        return shape.pods
    asked = shape.requests.times(shape.pods)
    known = {
        "cpu": asked.cpu_millis,
        "memory": asked.memory_mib,
        GPU_RESOURCE: asked.gpus,
        EFA_RESOURCE: asked.efa,
        **asked.devices,
    }
    return known.get(resource_of(key))


def _total(shapes: Iterable[Shape], key: str) -> int:
    return sum(used_by(each, key) or 0 for each in shapes)


@dataclass(frozen=True, kw_only=True)
class Gang:
    """What a quota counts of one job: its pods, those beside the ones that follow the ladder included.

    `objects` are the objects that the job consists of, by resource. `templates` are those of a job of the program.
    """

    title: str
    parts: Sequence[GangPart]
    objects: Mapping[str, Amount] = field(default_factory=dict[str, "Amount"])
    templates: Sequence[PodTemplate] = ()

    def uses(self, key: str, quota: Quota) -> Amount | None:
        """How much of a resource of a quota it uses at once; None if that is not known.

        Scopes select pods; objects are counted whatever the scopes are. Shapes of one job may share a name, as a group of workers
        and the head of a RayJob may.
        """
        counted = key.removeprefix(_OBJECTS)
        if counted in self.objects:
            return self.objects[counted]
        if counted not in ("pods", key):
            return None
        covered = [
            (each.counted_as(key), quota.covers(priority=each.priority, has_deadline=each.has_deadline))
            for each in self.parts
        ]
        certain = [shape for shape, is_covered in covered if is_covered is True]
        possible = [shape for shape, is_covered in covered if is_covered is not False]
        if counted != key:
            # Pods that have ended are objects, too.
            return Amount(certain=_total(certain, counted), possible=_total(possible, counted))
        first = [shape for shape in certain if not shape.after]
        return Amount(
            certain=max(_total(first, key), *(used_by(each, key) or 0 for each in certain), 0),
            possible=max(_total(one, key) for one in run_at_once(possible)),
        )


@dataclass(frozen=True, kw_only=True)
class Amount:
    """How much of a resource a job uses at least and at most at one time."""

    certain: int
    possible: int


def _exactly(amount: int) -> Amount:
    return Amount(certain=amount, possible=amount)


def gangs_of(ladder: DeclaredLadder, resources: Sequence[StackResource]) -> Iterator[Gang]:
    """Yield the gangs of a ladder's shapes, and of the jobs of the program that follow it."""
    for shape in ladder.known_shapes:
        yield Gang(title=shape.title, parts=(GangPart(shape=shape),))
    for job in jobs_on(ladder, resources):
        followers = job.followers(ladder.pools) if ladder.pools else ()
        if followers and all(isinstance(each.shape, Shape) for each in followers):
            yield _of_job(job, job.all_templates)


def _of_job(job: DeclaredJob, templates: Sequence[PodTemplate]) -> Gang:
    """Return what is counted of a job with all its templates; of those that are not known yet, nothing is."""
    parts = [
        GangPart(
            shape=shape,
            limits=None if each.limits is UNKNOWN else each.limits,
            priority=priority_of(each),
            has_deadline=has_deadline_of(each),
        )
        for each in templates
        if isinstance(shape := each.shape, Shape)
    ]
    return Gang(title=job.title, parts=parts, objects=_objects_of(job, templates), templates=templates)


def _objects_of(job: DeclaredJob, templates: Sequence[PodTemplate]) -> Mapping[str, Amount]:
    """Return the objects that a job consists of, beside its pods."""
    props = job.resource.props
    if job.kind == JobKind.RAY_JOB:
        # A Service for the head, one more for the RayJob when it runs, and one for workers of several hosts.
        hosts = [
            count(at(each, "numOfHosts"))
            for each in known_items(props, "spec", "rayClusterSpec", "workerGroupSpecs")
        ]
        services = 2 if any(isinstance(each, int) and each > 1 for each in hosts) else 1
        return {
            _RAY_JOBS: _exactly(1),
            _RAY_CLUSTERS: _exactly(1),
            "services": Amount(certain=services, possible=services + 1),
            _JOBS: _exactly(sum(each.child_jobs for each in templates if isinstance(each.child_jobs, int))),
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
        _JOBS: Amount(
            certain=sum(number for number, is_later in jobs if not (ends and is_later)), possible=made
        ),
        **({"services": _exactly(1)} if headless else {}),
    }


def has_deadline_of(template: PodTemplate) -> bool | None:
    """Return whether its pods are `Terminating` for a quota; None if that is not known."""
    given = at(template.template, "spec", "activeDeadlineSeconds")
    return None if given is UNKNOWN else given is not None


def priority_of(template: PodTemplate) -> str | None:
    """Return the priority class of its pods; None if that is not known."""
    return template.priority if isinstance(template.priority, str) else None
