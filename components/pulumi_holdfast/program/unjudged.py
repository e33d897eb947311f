"""Names what of a program no rule reads, and what it can do to training jobs: one table of kinds.

The pack reads a closed list of kinds: those of `fields`, the checkpoint stores and the spot role. Everything else that can reach
training jobs is named here: another kind in a training namespace, a kind of the whole cluster, a workload that takes room on nodes, a
chart, a resource of a cloud that takes, makes or refuses machines. A kind that is in neither table is named as one that no rule knows,
so nothing is silent. What Holdfast's own components make is part of what is judged.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.ladder.labels import CHECKPOINTS, POOL
from pulumi_holdfast.program.clusters import is_same_cluster
from pulumi_holdfast.program.fields import fields_of, unversioned
from pulumi_holdfast.program.jobs.jobs import DeclaredJob, declared_jobs
from pulumi_holdfast.program.namespaces.ladders import TrainingNamespace, training_namespaces
from pulumi_holdfast.program.resources import (
    NAMESPACE_TYPES,
    StackResource,
    Value,
    at,
    is_list,
    is_object,
    known_items,
    named,
    text_at,
)

#: In the URN of what a component of Holdfast makes.
_OWN: Final = re.compile(r"(?:::|\$)holdfast:[^$:]+:[^$:]+\$")
#: Kinds that rules read without a table of their fields.
_READ: Final = frozenset({"kubernetes:scheduling.k8s.io:PriorityClass"})
_NODE_POOL: Final = "karpenter.sh/nodepool"
#: The versions in which the kinds that every verdict rests on are read.
_VERSIONS: Final = {
    "kubernetes:karpenter.sh:NodePool": "v1",
    "kubernetes:holdfast.dev:FallbackPolicy": "v1alpha1",
}

_UNKNOWN_KIND: Final = "refuse, change, place or delete pods, and no rule reads its kind"
_PATCHED: Final = "change an object that is judged without it"
_CHART: Final = "leave out or change what jobs need, and its objects are not shown"
_ADMITS: Final = "refuse or change pods, jobs and machines"
_TAKES_ROOM: Final = "take CPUs, memory and pods of each node"
_STAYS: Final = "keep its pods on spot, because nothing moves them, and takes room of the quota"

#: The kinds of Kubernetes' own API groups that can reach training jobs, by what they can do.
_CAN: Final[Mapping[str, str]] = {
    _ADMITS: r"admissionregistration\.k8s\.io:\w+",
    "answer in place of the API server": r"apiregistration\.k8s\.io:APIService",
    "refuse or delay requests of operators": r"flowcontrol\.apiserver\.k8s\.io:\w+",
    _TAKES_ROOM: r"(?:apps|extensions):DaemonSet",
    _STAYS: r"(?:apps|extensions|batch|core):(?:Deployment|StatefulSet|ReplicaSet|ReplicationController|Job|CronJob|Pod)",
    "change how many pods it has, which take room of the quota": r"autoscaling:\w+",
    "keep pods on their nodes": r"(?:policy|extensions):(?:PodDisruptionBudget|PodSecurityPolicy)",
    "cut pods off from each other, from DNS and from the checkpoints": r"(?:networking\.k8s\.io|extensions):NetworkPolicy",
    "change nodes": r"core:(?:Node|Binding)",
    "give devices to some pods only, or take nodes away": r"resource\.k8s\.io:\w+",
    "decide when pods are scheduled": r"scheduling\.k8s\.io:(?:Workload|PodGroup)",
}
#: Kinds that can reach no training job, with the reason.
_CANNOT: Final[Mapping[str, str]] = {
    "what pods use only if they name it; those that the program does not make are named": (
        r"core:(?:ConfigMap|Secret|ServiceAccount|PersistentVolumeClaim|PersistentVolume|PodTemplate)|node\.k8s\.io:RuntimeClass|"
        r"(?:storage\.k8s\.io):\w+"
    ),
    "rights of people and programs": r"rbac\.authorization\.k8s\.io:\w+|certificates\.k8s\.io:\w+",
    "how others find and reach pods": (
        r"core:(?:Service|Endpoints)|discovery\.k8s\.io:\w+|(?:networking\.k8s\.io|extensions):(?:Ingress|IngressClass|IPAddress|ServiceCIDR)|"
        r"(?:gateway\.networking\.k8s\.io|gateway\.envoyproxy\.io|externaldns\.k8s\.io|elbv2\.k8s\.aws|traefik\.io):\w+"
    ),
    "notes of controllers": (
        r"core:(?:Event|ComponentStatus|RangeAllocation)|events\.k8s\.io:\w+|coordination\.k8s\.io:\w+|apps:ControllerRevision|"
        r"storagemigration\.k8s\.io:\w+|internal\.apiserver\.k8s\.io:\w+"
    ),
    "questions, which are not kept": r"(?:authentication|authorization)\.k8s\.io:\w+|policy:Eviction",
    "kinds, whose objects are named": r"apiextensions\.k8s\.io:CustomResourceDefinition",
    "objects that monitor, and that keep secrets and certificates": (
        r"(?:monitoring\.coreos\.com|monitoring\.googleapis\.com|external-secrets\.io|cert-manager\.io|snapshot\.storage\.k8s\.io):\w+"
    ),
}
#: Kinds of those above that no namespace has.
_OF_CLUSTER: Final = re.compile(
    r"(?:admissionregistration|apiregistration|flowcontrol\.apiserver)\.k8s\.io:\w+|core:Node|"
    r"resource\.k8s\.io:(?:DeviceClass|DeviceTaintRule|ResourceSlice|ResourcePoolStatusRequest)|extensions:PodSecurityPolicy"
)
#: Kinds that reach pods of every namespace, whichever they are in.
_EVERYWHERE: Final = re.compile(r"(?:apps|extensions):DaemonSet|autoscaling\.k8s\.io:\w+")
#: Groups of Kubernetes itself: their objects without a namespace are in `default`, or of the whole cluster.
_BUILT_IN: Final = re.compile(r"(?:[^.:]+|[\w.]+\.k8s\.io):\w+")
_CHARTS: Final = re.compile(r"kubernetes:helm\.sh/v\d:\w+|kubernetes:(?:yaml|kustomize)(?:/v2)?:\w+")
_SHOWN: Final = re.compile(r"kubernetes:(?:yaml|kustomize)(?:/v2)?:\w+|kubernetes:helm\.sh/v[34]:Chart")
_OBJECT: Final = re.compile(r"kubernetes:([^:/]+):(\w+)")
_VERBS: Final = ("Patch", "List")

#: Resources of clouds that can reach training jobs, beside the clusters and pools that rules read.
_OF_CLOUDS: Final[Mapping[re.Pattern[str], str]] = {
    re.compile(r"aws:eks/fargateProfile:\w+"): "take pods off the pools",
    re.compile(r"aws:eks/(?:addon|podIdentityAssociation):Addon"): "keep its agents off nodes",
    re.compile(
        r"aws:ec2/launchTemplate:\w+|aws:autoscaling/group:\w+|aws:ec2/(?:fleet|spotFleetRequest):\w+|eks:index:\w+"
    ): ("make or change machines"),
    re.compile(r"aws:servicequotas/\w+:\w+|aws:organizations/policy:\w+"): "keep machines from being bought",
    re.compile(
        r"azure-native:authorization(?:/v\w+)?:Policy\w+|azure:\w+/\w*[pP]olicyAssignment:\w+|gcp:orgpolicy/\w+:\w+"
    ): ("keep machines from being bought"),
    re.compile(r"azure:containerservice/\w+:\w+"): "make clusters and pools, and no rule reads this provider",
    re.compile(
        r"azure-native:containerservice(?:/v\w+)?:(?!ManagedCluster$|AgentPool$)\w+"
    ): "change a cluster",
    re.compile(r"gcp:container/(?!cluster:|nodePool:)\w+:\w+"): "change a cluster",
}


@dataclass(frozen=True, kw_only=True)
class Unjudged:
    """Something that no rule reads: the URN of its resource, what it is, and why it is named."""

    urn: str
    what: str
    why: str

    def __str__(self) -> str:
        """The line of a report."""
        return f"not judged: {self.what}, because {self.why}"


def unjudged(resources: Sequence[StackResource]) -> Iterator[Unjudged]:
    """Yield what of a program can reach its training jobs, and no rule reads; nothing of a program that trains nothing."""
    spaces = training_namespaces(resources)
    if not spaces:
        return
    parents = {each.parent for each in resources}
    for each in resources:
        can = can_do(each, is_shown=each.urn in parents)
        if can and _reaches(each, spaces, resources):
            yield Unjudged(urn=each.urn, what=_title(each), why=f"it can {can}")
    for job in declared_jobs(resources):
        for kind, name in not_made_here(job, resources):
            yield Unjudged(
                urn=job.resource.urn,
                what=f"{kind} {name!r}",
                why=f"pods of {job.title} need it, and this program does not make it in their namespace",
            )


def can_do(resource: StackResource, *, is_shown: bool = False) -> str:
    """Return what a resource can do to training jobs that no rule judges, empty for nothing. `is_shown`: its objects are shown."""
    if _OWN.search(resource.urn.rpartition("::")[0]):
        return ""
    if not resource.type.startswith("kubernetes:"):
        return next((can for kind, can in _OF_CLOUDS.items() if kind.fullmatch(resource.type)), "")
    if _CHARTS.fullmatch(resource.type):
        return "" if is_shown and _SHOWN.fullmatch(resource.type) else _CHART
    kind = unversioned(resource.type)
    if resource.type in NAMESPACE_TYPES or kind in _VERSIONS:
        read = _VERSIONS.get(kind, "v1")
        return (
            "" if f"/{read}:" in resource.type else f"mean something else by its fields: it is read as {read}"
        )
    return of_kind(kind)


def of_kind(kind: str) -> str:
    """Return what objects of a kind, as in `kubernetes:core:Pod`, can do to training jobs that no rule judges; empty for nothing."""
    found = _OBJECT.fullmatch(kind)
    if found is None:
        return _UNKNOWN_KIND
    group, name = found[1], found[2]
    verb = next((each for each in _VERBS if name.endswith(each) and name != each), "")
    plain = f"{group}:{name.removesuffix(verb)}"
    is_read = fields_of(f"kubernetes:{plain}") is not None or f"kubernetes:{plain}" in _READ
    if is_read:
        return _PATCHED if verb else ""
    if any(re.fullmatch(pattern, plain) for pattern in _CANNOT.values()):
        return ""
    return next((can for can, pattern in _CAN.items() if re.fullmatch(pattern, plain)), _UNKNOWN_KIND)


def _reaches(
    resource: StackResource, spaces: Sequence[TrainingNamespace], resources: Sequence[StackResource]
) -> bool:
    """Whether a resource may be in a training namespace or in reach of one: in its cluster, or on the nodes of its pools."""
    if not resource.type.startswith("kubernetes:"):
        return True
    near = [each for each in spaces if is_same_cluster(resource, each.resource, resources) is not False]
    kind = unversioned(resource.type).removeprefix("kubernetes:").removesuffix("Patch")
    where = text_at(resource.props, "metadata", "namespace")
    is_of_cluster = _OF_CLUSTER.fullmatch(kind) or (where is None and not _BUILT_IN.fullmatch(kind))
    if not near:
        return False
    if is_of_cluster or _EVERYWHERE.fullmatch(kind) or _CHARTS.fullmatch(resource.type):
        return True
    inside = (where or "default") in {each.name for each in near} or UNKNOWN in {
        where,
        *(each.name for each in near),
    }
    return inside or _selects_pool(resource.props)


def _selects_pool(value: Value) -> bool:
    """Whether pods anywhere in an object select a pool by its label, so that they take its nodes."""
    if is_object(value):
        selector = value.get("nodeSelector")
        return (is_object(selector) and bool({POOL, _NODE_POOL} & selector.keys())) or any(
            map(_selects_pool, value.values())
        )
    return is_list(value) and any(map(_selects_pool, value))


def _title(resource: StackResource) -> str:
    kind = resource.type.rpartition(":")[2]
    name = text_at(resource.props, "metadata", "name")
    title = f"{kind} {(name if isinstance(name, str) else resource.logical_name)!r}"
    chart = at(resource.props, "chart")
    return f"chart {str(chart).rpartition('/')[2]!r} ({title})" if isinstance(chart, str) else title


_CONFIG_MAP: Final = "ConfigMap"
_SECRET: Final = "Secret"  # noqa: S105 - a kind of objects
_ACCOUNT: Final = "ServiceAccount"
#: Where a volume, or a part of a projected one, names an object.
_VOLUMES: Final = (
    (_CONFIG_MAP, "configMap", "name"),
    (_SECRET, "secret", "secretName"),
    (_SECRET, "secret", "name"),
    (_SECRET, "csi.nodePublishSecretRef", "name"),
    (_SECRET, "azureFile", "secretName"),
)
#: Where a container's environment names an object.
_ENVIRONMENT: Final = (
    (_CONFIG_MAP, "configMapRef"),
    (_SECRET, "secretRef"),
    (_CONFIG_MAP, "configMapKeyRef"),
    (_SECRET, "secretKeyRef"),
)
#: Every namespace has the one, each training namespace the other.
_COMMON: Final = frozenset({(_ACCOUNT, "default"), (_CONFIG_MAP, CHECKPOINTS)})


def not_made_here(job: DeclaredJob, resources: Sequence[StackResource]) -> tuple[tuple[str, str], ...]:
    """Return the kinds and names of the objects that a job's pods need and the program does not make in their namespace."""
    needed = dict.fromkeys(each for template in job.all_templates for each in _needed(template.template))
    return tuple(each for each in needed if each not in _COMMON and not _is_made(each, job, resources))


def _needed(template: Value) -> Iterator[tuple[str, str]]:
    spec = at(template, "spec")
    account = text_at(spec, "serviceAccountName") or text_at(spec, "serviceAccount")
    if isinstance(account, str) and account:
        yield _ACCOUNT, account
    for each in known_items(spec, "imagePullSecrets"):
        yield from _named(_SECRET, each, "name")
    for volume in known_items(spec, "volumes"):
        for source in (volume, *known_items(volume, "projected", "sources")):
            for kind, field, key in _VOLUMES:
                yield from _named(kind, at(source, *field.split(".")), key)
    for kind in ("initContainers", "containers"):
        for container in known_items(spec, kind):
            sources = (
                *known_items(container, "envFrom"),
                *(at(each, "valueFrom") for each in known_items(container, "env")),
            )
            for source in sources:
                for of, field in _ENVIRONMENT:
                    yield from _named(of, at(source, field), "name")


def _named(kind: str, source: Value, key: str) -> Iterator[tuple[str, str]]:
    name = text_at(source, key)
    if isinstance(name, str) and name and at(source, "optional") is not True:
        yield kind, name


def _is_made(needed: tuple[str, str], job: DeclaredJob, resources: Sequence[StackResource]) -> bool:
    kind, name = needed
    return any(
        (text_at(each.props, "metadata", "namespace") or "default") in (job.namespace, UNKNOWN)
        and is_same_cluster(each, job.resource, resources) is not False
        for each in (
            *named(resources, f"kubernetes:core/v1:{kind}", name),
            *named(resources, f"kubernetes:core/v1:{kind}", UNKNOWN),
        )
    )
