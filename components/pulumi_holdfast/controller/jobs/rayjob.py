"""RayJobs: their observation, and the patches that suspend, resume and recreate them.

The gang is the worker groups that follow the ladder; each resumption creates a RayCluster from the current template.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from pulumi_holdfast.controller.jobs import patches
from pulumi_holdfast.controller.jobs.actions import EventReason, standing_event
from pulumi_holdfast.controller.jobs.base_observation import (
    base_observation,
    deadline_events,
    exits_zero_events,
    gang_placement,
    max_cost_events,
)
from pulumi_holdfast.controller.jobs.observation import JobOutcome
from pulumi_holdfast.controller.jobs.pod_history import failure_cause, updated_history
from pulumi_holdfast.controller.jobs.pod_templates import (
    affinity_problem,
    followers,
    pod_labels,
    pool_of,
    selector_of,
    shape_of,
    with_labels,
    with_pool,
)
from pulumi_holdfast.controller.jobs.pods_and_nodes import JobKey, Recreation, has_ended, is_terminating
from pulumi_holdfast.controller.jobs.rayjob_status import (
    INVALID,
    SUSPENDED,
    asks_for_successor,
    attempt_failed_events,
    can_have_successor,
    deployment_status,
    ended_at,
    ended_status,
    failed_attempts,
    failed_attempts_as_losses,
    head_unready_since,
    honors_suspension,
    not_suspendable_reason,
    outcome_of,
    predecessor_patch,
    successor,
    with_new_failures,
)
from pulumi_holdfast.controller.kube.objects import (
    count,
    labels_of,
    name_of,
    namespace_of,
    objects,
    owner_of,
    text,
    uid_of,
)
from pulumi_holdfast.ladder.frozen import replace
from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.ladder.labels import CAPACITY_KEYS, RAY_GROUP

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from pulumi_holdfast.controller.jobs.actions import JobEvent, Recreate, Resume, Suspend
    from pulumi_holdfast.controller.jobs.observation import Observation
    from pulumi_holdfast.controller.jobs.pod_history import PodHistory
    from pulumi_holdfast.controller.jobs.pods_and_nodes import Snapshot


_UNBOUNDED: Final = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class WorkerGroup:
    """One of a RayJob's worker groups. `follows`: its pods are placed by the tier. `scales`: Ray sets its size."""

    name: str
    spec: Json
    follows: bool
    scales: bool

    @property
    def pod_spec(self) -> Json:
        """The spec of its pods."""
        return mapping(mapping(self.spec.get("template")).get("spec"))

    @property
    def pods(self) -> int:
        """How many pods it requires; if Ray scales it, its minimum."""
        if self.spec.get("suspend") is True:
            return 0
        least = count(self.spec.get("minReplicas"))
        most = count(self.spec.get("maxReplicas"), _UNBOUNDED)
        wanted = least if self.scales else count(self.spec.get("replicas"))
        # KubeRay applies the limits in this order: a minimum above the maximum wins.
        replicas = least if wanted < least else min(wanted, most)
        return replicas * max(1, count(self.spec.get("numOfHosts"), 1))

    def expected_pods(self, pods: Sequence[Json]) -> int:
        """How many of its pods must have nodes; of a group that Ray scales, at least those that Ray has requested."""
        if not self.scales or self.pods == 0 == len(pods):
            return self.pods
        there = [
            pod
            for pod in pods
            if group_of(pod) == self.name and not is_terminating(pod) and not has_ended(pod)
        ]
        return max(self.pods, len(there))


def worker_groups(rayjob: Json) -> tuple[WorkerGroup, ...]:
    """Return a RayJob's worker groups in order. The head is not one of them: it does not follow the ladder."""
    cluster = cluster_spec(rayjob)
    specs = objects(cluster.get("workerGroupSpecs"))
    follow = followers([mapping(spec.get("template")) for spec in specs])
    scales = cluster.get("enableInTreeAutoscaling") is True
    return tuple(
        WorkerGroup(name=text(spec.get("groupName")), spec=spec, follows=flag, scales=scales)
        for spec, flag in zip(specs, follow, strict=True)
    )


def cluster_spec(rayjob: Json) -> Json:
    """Return the spec of a RayJob's clusters."""
    return mapping(mapping(rayjob.get("spec")).get("rayClusterSpec"))


def head_pod_spec(rayjob: Json) -> Json:
    """Return the spec of a RayJob's head pod."""
    head = mapping(cluster_spec(rayjob).get("headGroupSpec"))
    return mapping(mapping(head.get("template")).get("spec"))


def group_of(pod: Json) -> str:
    """Return the worker group of a pod; a head's is `headgroup`."""
    return text(labels_of(pod).get(RAY_GROUP))


_KIND: Final = "RayJob"
_CLUSTER: Final = "ray.io/cluster"
_SUBMITTER: Final = "batch.kubernetes.io/job-name"
# KubeRay names a RayJob's cluster after it, with five characters of Kubernetes' alphabet for random names. The pods
# have no other reference to their RayJob; and the cluster, which has an owner reference, is deleted before its last pods.
_CLUSTER_NAME: Final = re.compile(r"(?P<rayjob>.+)-[bcdfghjklmnpqrstvwxz2456789]{5}")


def rayjob_of_pod(pod: Json) -> JobKey | None:
    """Return the RayJob that a pod may belong to, by its cluster's name or its Job's; None for other pods."""
    labels = labels_of(pod)
    found = _CLUSTER_NAME.fullmatch(text(labels.get(_CLUSTER)))
    name = found["rayjob"] if found else text(labels.get(_SUBMITTER))
    return JobKey(_KIND, namespace_of(pod), name) if name else None


def rayjob_of_child(child: Json) -> JobKey | None:
    """Return the RayJob that owns a RayCluster or a Job.

    A RayCluster without an owner and with such a name is attributed to that RayJob too, so that `own_pods` can tell its
    pods from the RayJob's.
    """
    owner = owner_of(child)
    if owner.get("kind") == _KIND:
        return JobKey(_KIND, namespace_of(child), text(owner.get("name")))
    found = (
        _CLUSTER_NAME.fullmatch(name_of(child)) if child.get("kind") == "RayCluster" and not owner else None
    )
    return JobKey(_KIND, namespace_of(child), found["rayjob"]) if found else None


def own_pods(snapshot: Snapshot) -> tuple[Json, ...]:
    """Return the pods that belong to the RayJob.

    Pods whose owner exists and is not the RayJob's are excluded. A pod whose owner is gone is included: waiting for
    another owner's pod is better than running two gangs on one checkpoint.
    """
    submits_by_job = text(mapping(snapshot.job.get("spec")).get("submissionMode")) in {"", "K8sJobMode"}
    strangers = {
        (text(child.get("kind")), name_of(child))
        for child in snapshot.children
        if owner_of(child).get("uid") != uid_of(snapshot.job)
    }
    return tuple(pod for pod in snapshot.pods if _is_own(pod, strangers, submits_by_job=submits_by_job))


def _is_own(pod: Json, strangers: set[tuple[str, str]], *, submits_by_job: bool) -> bool:
    labels = labels_of(pod)
    cluster = text(labels.get(_CLUSTER))
    if cluster:
        return ("RayCluster", cluster) not in strangers
    return submits_by_job and ("Job", text(labels.get(_SUBMITTER))) not in strangers


class RayJobKind:
    """RayJobs: each resumption creates a new RayCluster from the current template."""

    api_version: ClassVar[str] = "ray.io/v1"
    kind: ClassVar[str] = "RayJob"

    def job_of_pod(self, pod: Json) -> JobKey | None:
        """Return the RayJob of a pod: of its cluster, or of its submitter."""
        return rayjob_of_pod(pod)

    def job_of_child(self, child: Json) -> JobKey | None:
        """Return the RayJob that owns a RayCluster or a Job."""
        return rayjob_of_child(child)

    def observe(self, snapshot: Snapshot, history: PodHistory) -> tuple[Observation, PodHistory]:
        """Return the observation; see JobKind."""
        own = replace(snapshot, pods=own_pods(snapshot))
        job = own.job
        history = updated_history(history, own)
        ray = with_new_failures(
            replace(history.ray, head_unready_since=head_unready_since(history.ray, own)), job, own.now
        )
        history = replace(history, ray=ray)
        following = [each for each in worker_groups(job) if each.follows]
        names = {each.name for each in following}
        gang = gang_placement([pod for pod in own.pods if group_of(pod) in names], own)
        sizes = {each.name: each.expected_pods(own.pods) for each in following}
        expected = sum(sizes.values())
        outcome = outcome_of(job)
        pool = pool_of(each.pod_spec for each in following)
        sight = base_observation(own, history)
        sight = replace(
            sight,
            is_suspension_complete=deployment_status(job) == SUSPENDED and not _has_cluster(own),
            can_be_suspended=honors_suspension(job),
            not_suspendable_reason=not_suspendable_reason(job)
            or affinity_problem([each.pod_spec for each in following], self.kind),
            outcome=outcome,
            failure_cause=failure_cause(history, ended_at(job)) if outcome is JobOutcome.FAILED else None,
            can_be_recreated=can_have_successor(job),
            pool=pool,
            restarts=failed_attempts(job),
            losses=(*sight.losses, *failed_attempts_as_losses(ray, job, pool)),
            head_unready_since=ray.head_unready_since,
            pods_expected=expected,
            pods_missing=max(0, expected - gang.created),
            pods_placed=gang.placed,
            pods_started=gang.started,
            starting_since=gang.starting_since,
            is_elastic=any(each.scales for each in following),
            shapes=tuple(
                shape_of(each.pod_spec, sizes[each.name], pod_labels(mapping(each.spec.get("template"))))
                for each in following
                if sizes[each.name]
            ),
            notices=(
                *exits_zero_events(history),
                *deadline_events(job),
                *max_cost_events(job),
                *attempt_failed_events(ray),
                *_standing_events(job),
            ),
        )
        return sight, history

    def suspension(self, job: Json, action: Suspend, state: str) -> Json:
        """Return the patch of one update: the worker groups select the pool, if there is one, and the RayJob is suspended.

        A running cluster ignores changes of its RayJob's template; the next cluster uses it.
        """
        spec: Json = {"suspend": True}
        if action.pool:
            pooled = _cluster_spec_with_pool(
                job, action.pool, tolerate_reservation=action.tolerate_reservation
            )
            spec = {**spec, **pooled}
        return patches.spec_patch(job, state, spec)

    def resumption(self, job: Json, action: Resume, state: str) -> Json:
        """Return the patch of one update: the worker groups select the pool, the RayJob is resumed."""
        templates = _cluster_spec_with_pool(
            job, action.pool, tolerate_reservation=action.tolerate_reservation
        )
        return patches.spec_patch(job, state, {"suspend": False, **templates})

    def outdated_children(self, snapshot: Snapshot) -> tuple[Json, ...]:
        """Return none: KubeRay deletes a suspended RayJob's cluster and submitter itself."""
        del snapshot
        return ()

    def recreation(self, job: Json, action: Recreate, state: str) -> Recreation | None:
        """Return how to create a failed RayJob's successor, whose workers select the pool."""
        spec = _cluster_spec_with_pool(job, action.pool, tolerate_reservation=False)
        return Recreation(manifest=successor(job, spec, state), patch=predecessor_patch(job))

    def copied_spec(self, job: Json, pool: str, labels: Mapping[str, str]) -> Json:
        """Return the spec of a copy; see JobKind. Its cluster and the pods of its head and workers have the labels.

        KubeRay gives a cluster the labels of its RayJob. A submitter has them if it has a template.
        """
        spec, cluster = mapping(job.get("spec")), cluster_spec(job)
        copied = {
            **spec,
            "rayClusterSpec": {
                **cluster,
                "headGroupSpec": _labelled(mapping(cluster.get("headGroupSpec")), labels),
                "workerGroupSpecs": [_labelled(each, labels) for each in _groups_with_pool(job, pool)],
            },
        }
        if "submitterPodTemplate" in spec:
            copied["submitterPodTemplate"] = with_labels(mapping(spec["submitterPodTemplate"]), labels)
        copied.pop("ttlSecondsAfterFinished", None)
        return copied

    def fails_for_good(self, copy: Json) -> bool:
        """Whether a RayJob that is valid has failed, and does not ask to be created again."""
        return deployment_status(copy) != INVALID and not asks_for_successor(copy)

    def ended_status(self, job: Json, outcome: JobOutcome, message: str, at: datetime) -> Json:
        """Return the status that KubeRay gives a RayJob that has ended."""
        del job
        return ended_status(outcome, message, at)


def _cluster_spec_with_pool(job: Json, pool: str, *, tolerate_reservation: bool) -> Json:
    """Return the patch of the RayJob's cluster template, with those worker groups that follow selecting a pool."""
    uid = uid_of(job) if tolerate_reservation else None
    return {"rayClusterSpec": {"workerGroupSpecs": _groups_with_pool(job, pool, reserved_for_uid=uid)}}


def _groups_with_pool(job: Json, pool: str, *, reserved_for_uid: str | None = None) -> list[Json]:
    return [
        {
            **each.spec,
            "template": {
                **mapping(each.spec.get("template")),
                "spec": with_pool(each.pod_spec, pool, reserved_for_uid=reserved_for_uid),
            },
        }
        if each.follows
        else each.spec
        for each in worker_groups(job)
    ]


def _labelled(group: Json, labels: Mapping[str, str]) -> Json:
    return {**group, "template": with_labels(mapping(group.get("template")), labels)}


def _has_cluster(snapshot: Snapshot) -> bool:
    """Whether a RayCluster of the RayJob exists.

    KubeRay deletes it before it reports a suspension, unless its cache does not show it yet.
    """
    uid = uid_of(snapshot.job)
    return any(
        child.get("kind") == "RayCluster" and owner_of(child).get("uid") == uid for child in snapshot.children
    )


def _standing_events(job: Json) -> tuple[JobEvent, ...]:
    capacity = sorted(selector_of(head_pod_spec(job)).keys() & CAPACITY_KEYS)
    if not capacity or not cluster_spec(job):
        return ()
    return (
        standing_event(
            EventReason.CANNOT_FOLLOW,
            f"Its head selects {', '.join(capacity)}. Moves do not move the head, where it is, and its loss ends the whole "
            "attempt: remove the selector, and the head runs on the default on-demand pool.",
        ),
    )
