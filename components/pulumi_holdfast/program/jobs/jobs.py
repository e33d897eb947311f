"""Reads the jobs that a program creates itself: JobSets and RayJobs, which follow a ladder.

Which templates follow, and on which tier they start, is what admission decides when the job is created
(docs/adr/0019-admission-of-jobs.md).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.ladder.json import UNKNOWN, Unknown
from pulumi_holdfast.ladder.labels import (
    EXCLUSIVE_TOPOLOGY,
    FOLLOWS,
    FOLLOWS_VALUE,
    HOSTNAME,
    JOBSET_NAME,
    POOL,
    RAY_GROUP,
    RAY_NODE_TYPE,
    RAY_WORKER,
    RECREATE,
    REPLICATED_JOB,
    VOLUME_CLAIMS,
    ZONE,
)
from pulumi_holdfast.ladder.operators import KEEPING_CLUSTER
from pulumi_holdfast.ladder.reachability import messages
from pulumi_holdfast.program.clusters import is_same_cluster
from pulumi_holdfast.program.jobs.job_ends import slow_to_end
from pulumi_holdfast.program.jobs.pod_templates import SPOT_SELECTIONS, PodTemplate, terms_of
from pulumi_holdfast.program.namespaces.limits import (
    default_priority,
    default_requests,
    exceeded,
    priority_classes,
)
from pulumi_holdfast.program.resources import (
    NAMESPACE_TYPE,
    Value,
    at,
    count,
    is_object,
    items_at,
    known_items,
    labels_at,
    named,
    once,
    text_at,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pulumi_holdfast.program.namespaces.ladders import DeclaredLadder
    from pulumi_holdfast.program.resources import StackResource

_KIND: Final = re.compile(r"kubernetes:(?:jobset\.x-k8s\.io|ray\.io)/v\w+:(?P<kind>JobSet|RayJob)")
_CLAIM: Final = "kubernetes:core/v1:PersistentVolumeClaim"
_VOLUME: Final = "kubernetes:core/v1:PersistentVolume"
_QUEUE: Final = "kueue.x-k8s.io/queue-name"
_EXCLUSIVE_OPEN: Final = (
    "whether each of its child jobs gets a topology domain for itself ({key}) is not judged"
)
_COMPLETE: Final = "Complete"
#: The submitter of a RayJob without a template for it (KubeRay v1.6.2, ray-operator/controllers/ray/common/job.go).
_SUBMITTER_POD: Final[Value] = {
    "spec": {
        "containers": [
            {
                "name": "ray-job-submitter",
                "resources": {
                    "requests": {"cpu": "500m", "memory": "200Mi"},
                    "limits": {"cpu": "1", "memory": "1Gi"},
                },
            }
        ]
    }
}
_ORDER_OPEN: Final = "which other template it waits for is known only after the update, which checks it again"
_NO_CLASS: Final = (
    "whether its PriorityClass {name} exists is not known: without it the API server rejects its pods"
)
_DEFAULTS_OPEN: Final = "which requests LimitRanges of its namespace give to its containers is not judged: set requests of their own"
_MOST: Final = 2**31 - 1


class JobKind(StrEnum):
    """The kinds of jobs that are read."""

    JOB_SET = "JobSet"
    RAY_JOB = "RayJob"


@dataclass(frozen=True, kw_only=True)
class DeclaredJob:
    """A job of the program.

    `label` says whether it follows the ladder, empty if its
    author left that to admission. `is_queued`: Kueue, or another controller, decides where it runs. `heads` are the templates of a
    RayJob's head and submitter.
    """

    resource: StackResource
    kind: JobKind
    name: str
    namespace: str | Unknown
    label: str | Unknown
    is_queued: bool
    templates: tuple[PodTemplate, ...] | Unknown
    heads: tuple[PodTemplate, ...] = ()

    @property
    def title(self) -> str:
        """The job in a message."""
        return f"{self.kind} {self.name!r}"

    @property
    def is_empty(self) -> bool:
        """Whether it certainly has no pod template, so that nothing of it can run."""
        spec = at(self.resource.props, "spec")
        if self.kind == JobKind.JOB_SET:
            return self.templates == ()
        return not at(spec, "rayClusterSpec") and not at(spec, "clusterSelector")

    @property
    def rejected(self) -> tuple[str, ...]:
        """Why the API server rejects it as a job that follows a ladder, whatever its pods are."""
        if self.kind != JobKind.RAY_JOB:
            return ()
        spec, found = at(self.resource.props, "spec"), list[str]()
        recreated = at(self.resource.props, "metadata", "annotations", RECREATE) == "true"
        if not at(spec, "backoffLimit") and not recreated and at(spec, "submissionMode") != "InteractiveMode":
            found.append(messages.ENDS_ON_FAILURE.sentence)
        for field in KEEPING_CLUSTER:
            value = at(spec, *field.path)
            if value and field.value in (None, value):
                found.append(messages.CANNOT_STOP.sentence.format(field=field.title))
        return tuple(found)

    @property
    def all_templates(self) -> tuple[PodTemplate, ...]:
        """The templates of all its pods, as far as they are known."""
        return (*self.heads, *(() if self.templates is UNKNOWN else self.templates))

    def start(self, pools: Sequence[str | Unknown]) -> str | Unknown:
        """Return the pool of the ladder's `pools`, one or more, on which its templates start: the one that they select, or the first."""
        known = [each for each in pools if each is not UNKNOWN]
        chosen = {each.selected(POOL) for each in self.followers(known)}
        return next((pool for pool in known if pool in chosen), pools[0])

    def followers(self, pools: Sequence[str]) -> tuple[PodTemplate, ...]:
        """Return the templates that follow a ladder of these pools.

        If any template selects spot, or a pool of the ladder, these are the ones that do; a job with only the label follows with
        all templates that select no other capacity.
        """
        templates = () if self.templates is UNKNOWN else self.templates
        if self.is_queued or self.label not in {"", FOLLOWS_VALUE}:
            return ()
        asking = tuple(each for each in templates if each.selects_spot or _may_select(each, pools))
        if asking or self.label != FOLLOWS_VALUE:
            return asking
        return tuple(each for each in templates if not _selects_capacity(each))

    def helpers(self, pools: Sequence[str]) -> tuple[PodTemplate, ...]:
        """Return the templates of pods that have to run beside those that follow: the head of a RayJob, and others that stay."""
        followers = self.followers(pools)
        return tuple(
            each
            for each in self.all_templates
            if not any(each is one for one in followers) and not each.selects_spot
        )


def _may_select(template: PodTemplate, pools: Sequence[str]) -> bool:
    """Whether a template selects one of these pools, or a pool that is not known yet."""
    pool = template.selected(POOL)
    return pool is UNKNOWN or pool in pools


def _selects_capacity(template: PodTemplate) -> bool:
    return any(template.selected(key) is not None for key in (POOL, *SPOT_SELECTIONS))


def jobs_on(ladder: DeclaredLadder, resources: Sequence[StackResource]) -> tuple[DeclaredJob, ...]:
    """Return the program's jobs in the namespace of a ladder."""
    return tuple(
        job
        for job in declared_jobs(resources)
        if job.namespace == ladder.namespace
        and is_same_cluster(job.resource, ladder.resource, resources) is True
    )


@once
def declared_jobs(resources: Sequence[StackResource]) -> tuple[DeclaredJob, ...]:
    """Return the jobs of the program."""
    found = ((each, _KIND.fullmatch(each.type)) for each in resources)
    return tuple(_job(each, JobKind(match["kind"]), resources) for each, match in found if match is not None)


def _job(resource: StackResource, kind: JobKind, resources: Sequence[StackResource]) -> DeclaredJob:
    props = resource.props
    name, namespace = text_at(props, "metadata", "name"), text_at(props, "metadata", "namespace")
    label = at(props, "metadata", "labels", FOLLOWS)
    templates, head = (
        _TEMPLATES[kind](props),
        at(props, "spec", "rayClusterSpec", "headGroupSpec", "template"),
    )
    heads = tuple(_beside_workers(props, head)) if kind is JobKind.RAY_JOB and is_object(head) else ()

    def admitted(listed: Sequence[PodTemplate]) -> tuple[PodTemplate, ...]:
        return tuple(_admitted(each, resource, str(namespace or "default"), resources) for each in listed)

    return DeclaredJob(
        resource=resource,
        kind=kind,
        name=name if isinstance(name, str) else resource.logical_name,
        namespace=namespace or "default",
        label=label if isinstance(label, str) or label is UNKNOWN else "",
        is_queued=bool(at(props, "metadata", "labels", _QUEUE)) or at(props, "spec", "managedBy") is not None,
        templates=templates if templates is UNKNOWN else admitted(templates),
        heads=admitted(heads),
    )


def _admitted(
    template: PodTemplate, job: StackResource, namespace: str, resources: Sequence[StackResource]
) -> PodTemplate:
    """Return a template as its pods are in the cluster: with the defaults of LimitRanges, and the zones of their volumes."""
    defaults = default_requests(job, namespace, resources)
    is_open = defaults is UNKNOWN and template.lacks_requests
    class_name, spec = template.priority, at(template.template, "spec")
    classes = priority_classes(resources)
    is_known = class_name is None or class_name in classes
    by_default = default_priority(job, resources) if class_name is None else None
    unmodeled = () if is_known else (_NO_CLASS.format(name="?" if class_name is UNKNOWN else class_name),)
    zones, unjudged_claims = _claims(spec, job, namespace, resources)
    return replace(
        template,
        defaults={} if defaults is UNKNOWN else defaults,
        zones=zones,
        value_of_priority=classes.get(class_name) if isinstance(class_name, str) else by_default,
        unmodeled=(
            *template.unmodeled,
            *((_DEFAULTS_OPEN,) if is_open else ()),
            *unmodeled,
            *exceeded(known_items(spec, "containers"), job, namespace, resources),
            *unjudged_claims,
            *slow_to_end(template.template),
        ),
    )


def _claims(
    spec: Value, job: StackResource, namespace: str, resources: Sequence[StackResource]
) -> tuple[frozenset[str] | None, Sequence[str]]:
    """Return the zones to which the volume claims of pods bind them, None for none, and what is not judged of the claims.

    A claim whose volume the program makes is where the volume is. Others may bind pods to one zone, unless the namespace lists them as
    mountable anywhere.
    """
    listed = items_at(spec, "volumes")
    if listed is UNKNOWN:
        return None, ("which volumes its pods mount is not known yet",)

    def here(type_token: str, name: str) -> Iterator[StackResource]:
        found = named(resources, type_token, name)
        return (each for each in found if is_same_cluster(each, job, resources) is True)

    texts = (
        text_at(each.props, "metadata", "annotations", VOLUME_CLAIMS)
        for each in here(NAMESPACE_TYPE, namespace)
    )
    anywhere = {name.strip() for text in texts if isinstance(text, str) for name in text.split(",")}
    names = {text_at(each, "persistentVolumeClaim", "claimName") for each in listed} - {None}
    zones: list[frozenset[str]] = []
    unjudged: list[str] = []
    for name in sorted(map(str, names)):
        volumes = [
            volume
            for claim in here(_CLAIM, name)
            if text_at(claim.props, "metadata", "namespace") == namespace
            for volume in here(_VOLUME, str(text_at(claim.props, "spec", "volumeName")))
        ]
        bound = _zones_of(volumes[0]) if volumes else UNKNOWN
        if isinstance(bound, frozenset):
            zones.append(bound)
        elif bound is UNKNOWN and name not in anywhere:
            unjudged.append(
                f"in which zones the volume claim {name!r} can be mounted is not judged. If every zone can mount it, list it in "
                f"the namespace's annotation {VOLUME_CLAIMS}"
            )
    return (zones[0].intersection(*zones[1:]) if zones else None), unjudged


def _zones_of(volume: StackResource) -> frozenset[str] | Unknown | None:
    """Return the zones to which a volume binds its pods, None for none; UNKNOWN where its node affinity says something else."""
    required = at(volume.props, "spec", "nodeAffinity", "required")
    if required is None:
        return None
    terms = terms_of(required)
    if terms is UNKNOWN or not all(
        len(term) == 1 and (term[0].key, term[0].operator) == (ZONE, "In") for term in terms
    ):
        return UNKNOWN
    return frozenset(zone for term in terms for zone in term[0].values)


def _of_job_set(props: Value) -> Sequence[PodTemplate] | Unknown:
    items = items_at(props, "spec", "replicatedJobs")
    if items is UNKNOWN:
        return UNKNOWN
    found: list[PodTemplate] = []
    for item in items:
        found.append(_in_order(item, _replicated(item, props), found))
    return found


def _in_order(item: Value, template: PodTemplate, before: Sequence[PodTemplate]) -> PodTemplate:
    """Return a template with those that end before it begins: JobSet takes no dependency on a later one."""
    listed = items_at(item, "dependsOn")
    waits = [
        (text_at(each, "name"), text_at(each, "status")) for each in (() if listed is UNKNOWN else listed)
    ]
    if listed is UNKNOWN or any(UNKNOWN in each for each in waits):
        return replace(template, unmodeled=(*template.unmodeled, _ORDER_OPEN))
    named = {name for name, status in waits if status == _COMPLETE}
    through = (each.after for each in before if each.name in {name for name, _ in waits})
    return replace(template, after=frozenset[str](map(str, named)).union(*through))


def _replicated(item: Value, props: Value) -> PodTemplate:
    """Return the template of a replicated job; each of its child jobs may have a topology domain for itself."""
    name, spec = str(text_at(item, "name") or "?"), at(item, "template", "spec")
    each = _parallel(spec)
    # JobSet lets the annotation of a replicated job replace its own.
    annotations = at(item, "template", "metadata", "annotations"), at(props, "metadata", "annotations")
    exclusive = next(
        (found for given in annotations if (found := at(given, EXCLUSIVE_TOPOLOGY)) is not None), None
    )
    owner, replicas = str(text_at(props, "metadata", "name")), _number(item, 1, "replicas")
    template = _template(
        name, _times(replicas, each), at(spec, "template"), {JOBSET_NAME: owner, REPLICATED_JOB: name}
    )
    if exclusive is None:
        return template
    if exclusive == HOSTNAME and each == 1:
        return replace(template, one_per_node=True)
    if isinstance(exclusive, str) and isinstance(replicas, int):
        return replace(template, apart_by=(exclusive, replicas))
    return replace(template, unmodeled=(_EXCLUSIVE_OPEN.format(key=exclusive),))


def _of_ray_job(props: Value) -> Sequence[PodTemplate] | Unknown:
    cluster = at(props, "spec", "rayClusterSpec")
    groups = items_at(cluster, "workerGroupSpecs")
    if groups is UNKNOWN:
        return UNKNOWN
    scales = at(cluster, "enableInTreeAutoscaling") is True
    return [
        _template(
            name,
            _workers(group, scales=scales),
            at(group, "template"),
            {RAY_GROUP: name, RAY_NODE_TYPE: RAY_WORKER},
            at(group, "labels"),
        )
        for group in groups
        if (name := str(text_at(group, "groupName") or "?"))
    ]


def _beside_workers(props: Value, head: Value) -> Iterator[PodTemplate]:
    """Yield the templates of a RayJob's head, and of the submitter that KubeRay makes in its mode by default."""
    yield _template("head", 1, head, {})
    if at(props, "spec", "submissionMode") in (None, "K8sJobMode"):
        own = at(props, "spec", "submitterPodTemplate")
        yield _template("submitter", 1, _SUBMITTER_POD if own is None else own, {})


_TEMPLATES: Final = {JobKind.JOB_SET: _of_job_set, JobKind.RAY_JOB: _of_ray_job}


def _template(
    name: str, pods: int | Unknown, template: Value, added: Mapping[str, str], beside: Value = None
) -> PodTemplate:
    """Return a template; its controller sets the labels `beside` in place of the template's, and those `added` of its own."""
    own, others = labels_at(template, "metadata", "labels"), labels_at(beside)
    labels = {} if own is UNKNOWN or others is UNKNOWN else {**own, **others}
    known = {key: value for key, value in labels.items() if isinstance(value, str)}
    return PodTemplate(name=name, pods=pods, template=template, labels={**known, **added})


def _parallel(spec: Value) -> int | Unknown:
    parallelism = _number(spec, 1, "parallelism")
    completions = _number(spec, _MOST, "completions")
    if parallelism is UNKNOWN or completions is UNKNOWN:
        return UNKNOWN
    return min(parallelism, completions)


def _workers(group: Value, *, scales: bool) -> int | Unknown:
    """Return how many pods a worker group needs: with Ray autoscaling, the fewest that it may have."""
    least, asked = _number(group, 0, "minReplicas"), _number(group, 0, "replicas")
    most, hosts = _number(group, _MOST, "maxReplicas"), _number(group, 1, "numOfHosts")
    if least is UNKNOWN or asked is UNKNOWN or most is UNKNOWN or hosts is UNKNOWN:
        return UNKNOWN
    if at(group, "suspend") is True:
        return 0
    wanted = least if scales else asked
    return max(least, min(wanted, most)) * max(1, hosts)


def _number(value: Value, default: int, *path: str) -> int | Unknown:
    found = count(at(value, *path))
    return default if found is None else found


def _times(one: int | Unknown, other: int | Unknown) -> int | Unknown:
    return UNKNOWN if one is UNKNOWN or other is UNKNOWN else one * other


def unreadable(templates: Sequence[PodTemplate]) -> Iterator[str]:
    """Yield what of templates only the update will know."""
    yield from (f"a value of its template {each.name!r}" for each in templates if each.shape is UNKNOWN)
