"""The cached forms of policies, of jobs and of what jobs create.

Jobs are cached completely, since patches are made from them, but as compact text that is parsed for each reconciliation.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, cast

from pulumi_holdfast.controller.jobs.kinds import job_of_child
from pulumi_holdfast.controller.jobs.trimmed_objects import CHILD_FIELDS, MOST_CONTAINERS, trim
from pulumi_holdfast.controller.kube.client import Kind
from pulumi_holdfast.controller.kube.objects import labels_of, metadata_of, objects, text
from pulumi_holdfast.ladder.fallback_policy import parse_policy
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence
from pulumi_holdfast.ladder.labels import FOLLOWS, FOLLOWS_VALUE, MAX_COST
from pulumi_holdfast.ladder.ladder import NoPolicy, Policy
from pulumi_holdfast.ladder.reachability.facts import TierFacts, read_tiers

# They are not read, and they change with every heartbeat or are as long as the object.
_DROPPED_METADATA: Final = frozenset({"managedFields", "resourceVersion"})
_DROPPED_ANNOTATIONS: Final = frozenset({"kubectl.kubernetes.io/last-applied-configuration"})
# They count pods, and change with each of them.
_DROPPED_STATUS: Final = frozenset({"replicatedJobsStatus", "rayClusterStatus"})
# A JobSet's conditions that change in each restart and are not read.
_UNREAD_CONDITIONS: Final = frozenset(
    {"RestartingJobSet", "StartupPolicyInProgress", "StartupPolicyCompleted"}
)
#: How many pod templates a job has: placement is compared for each pair of them.
MOST_TEMPLATES: Final = 100
#: A job's own text is at most this long: it is parsed for each reconciliation.
MOST_BYTES: Final = 256 * 1024


def trim_child(kind: Kind) -> "Callable[[Json], Json | None]":
    """Return a function that trims a Job or RayCluster, and ignores one that no JobSet or RayJob owns.

    Objects from a list have no apiVersion and kind, so it adds them.
    """

    def trim_owned(child: Json) -> "Json | None":
        if job_of_child(child) is None:
            return None
        return {"apiVersion": kind.api_version, "kind": kind.name, **mapping(trim(child, CHILD_FIELDS))}

    return trim_owned


@dataclass(frozen=True, kw_only=True, slots=True)
class CachedPolicy:
    """A FallbackPolicy: its uid and generation, its parsed spec, and its status.

    `tiers` are what it says of its tiers' pools, for the judgement of jobs, and `tiers_text` what identifies that.
    """

    uid: str
    generation: int
    policy: Policy | NoPolicy
    status: Json
    tiers: tuple[TierFacts, ...] = ()
    tiers_text: str = ""


def cached_policy(policy: Json) -> CachedPolicy:
    """Return the cached form of a FallbackPolicy."""
    metadata = metadata_of(policy)
    generation = metadata.get("generation")
    return CachedPolicy(
        uid=text(metadata.get("uid")),
        generation=generation if isinstance(generation, int) else 0,
        policy=parse_policy(policy),
        status=mapping(policy.get("status")),
        tiers=read_tiers(policy),
        tiers_text=json.dumps(mapping(policy.get("spec")).get("tiers"), sort_keys=True),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class CachedJob:
    """A JobSet or RayJob: its index keys, its version, and the rest of the object as text.

    `unread`: conditions that no decision reads, and that a patch of the status keeps. `excess`: why the job is too large to be
    followed, as a sentence; then nothing else of it is kept.
    """

    uid: str
    follows: bool
    suspended: bool
    has_max_cost: bool
    version: str
    content: bytes
    unread: bytes = b""
    excess: str = ""

    def read(self) -> Json:
        """Return the object."""
        job = cast("Json", json.loads(self.content))
        whole: Json = {**job, "metadata": {**metadata_of(job), "resourceVersion": self.version}}
        if not self.unread:
            return whole
        status = mapping(job["status"])
        unread = cast("list[JsonValue]", json.loads(self.unread))
        return {**whole, "status": {**status, "conditions": [*sequence(status.get("conditions")), *unread]}}


def cached_job(job: Json) -> CachedJob:
    """Return the cached form of a job: the object without fields that are not read, or nothing of one that is too large."""
    if excess := _excess_of(_pod_specs(job)):
        return too_large(job, excess)
    metadata = metadata_of(job)
    annotations = {
        name: value
        for name, value in mapping(metadata.get("annotations")).items()
        if name not in _DROPPED_ANNOTATIONS
    }
    rest = {name: value for name, value in metadata.items() if name not in _DROPPED_METADATA}
    whole: dict[str, JsonValue] = {**job, "metadata": {**rest, "annotations": annotations}}
    unread: list[JsonValue] = []
    if "status" in job:
        status = {
            name: value for name, value in mapping(job["status"]).items() if name not in _DROPPED_STATUS
        }
        conditions = sequence(status.get("conditions"))
        unread = [each for each in conditions if text(mapping(each).get("type")) in _UNREAD_CONDITIONS]
        if unread:
            status["conditions"] = [each for each in conditions if each not in unread]
        whole["status"] = status
    content = _text_of(whole)
    if len(content) > MOST_BYTES:
        excess = (
            f"It has {len(content) // 1024} KiB; at most {MOST_BYTES // 1024} KiB are allowed: move long texts and lists, such as "
            "env, to a ConfigMap."
        )
        return too_large(job, excess)
    return CachedJob(
        uid=text(metadata.get("uid")),
        follows=_follows(job),
        suspended=mapping(job.get("spec")).get("suspend") is True,
        has_max_cost=MAX_COST in annotations,
        version=text(metadata.get("resourceVersion")),
        content=content,
        unread=_text_of(unread) if unread else b"",
    )


def too_large(job: Json, excess: str) -> CachedJob:
    """Return the cached form of a job that is not followed, since it would cost the others too much."""
    metadata = metadata_of(job)
    return CachedJob(
        uid=text(metadata.get("uid")),
        follows=_follows(job),
        suspended=mapping(job.get("spec")).get("suspend") is True,
        has_max_cost=False,
        version=text(metadata.get("resourceVersion")),
        content=b"{}",
        excess=excess,
    )


def _excess_of(templates: Sequence[Json]) -> str:
    """Return why these pod templates are too many or too large; empty if they are not."""
    if len(templates) > MOST_TEMPLATES:
        return (
            f"It has {len(templates)} pod templates; at most {MOST_TEMPLATES} are allowed: use fewer of them."
        )
    containers = max(map(_count_containers, templates), default=0)
    if containers > MOST_CONTAINERS:
        return f"A pod of it has {containers} containers; at most {MOST_CONTAINERS} are allowed: use fewer of them."
    tolerations = max((len(sequence(each.get("tolerations"))) for each in templates), default=0)
    if tolerations > MOST_CONTAINERS:
        return f"A pod of it has {tolerations} tolerations; at most {MOST_CONTAINERS} are allowed: use fewer of them."
    return ""


def _follows(job: Json) -> bool:
    return labels_of(job).get(FOLLOWS) == FOLLOWS_VALUE


def _pod_specs(job: Json) -> list[Json]:
    """Return the specifications of a job's pods, one for each template."""
    spec = mapping(job.get("spec"))
    cluster = mapping(spec.get("rayClusterSpec"))
    child_jobs = (mapping(each.get("template")) for each in objects(spec.get("replicatedJobs")))
    single = (mapping(cluster.get("headGroupSpec")).get("template"), spec.get("submitterPodTemplate"))
    templates = (
        *(mapping(mapping(each.get("spec")).get("template")) for each in child_jobs),
        *(mapping(each.get("template")) for each in objects(cluster.get("workerGroupSpecs"))),
        *(mapping(each) for each in single if each),
    )
    return [mapping(each.get("spec")) for each in templates]


def _count_containers(pod_spec: Json) -> int:
    return sum(len(sequence(pod_spec.get(kind))) for kind in ("containers", "initContainers"))


def _text_of(value: JsonValue) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
