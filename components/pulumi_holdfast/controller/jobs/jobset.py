"""JobSets: their observation, and the patches that suspend and resume them.

The gang is the pods of the replicated jobs that follow the ladder; a move changes the pool that their templates select.
"""

from __future__ import annotations

from collections import Counter
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
    capacity_selection_of_child,
    followers,
    has_condition,
    has_failed,
    is_being_deleted,
    is_complete,
    is_older,
    is_suspended,
    pod_labels,
    pool_of,
    replicated_job_of,
    shape_of,
    stays_suspended,
    will_fail,
    with_labels,
    with_pool,
)
from pulumi_holdfast.controller.jobs.pod_templates import capacity_selection as placement_in
from pulumi_holdfast.controller.jobs.pods_and_nodes import JobKey, is_terminating, phase_of
from pulumi_holdfast.controller.kube.objects import (
    annotations_of,
    condition_of,
    count,
    counter,
    labels_of,
    metadata_of,
    moment,
    namespace_of,
    objects,
    owner_of,
    stamp,
    text,
    uid_of,
)
from pulumi_holdfast.ladder.frozen import replace
from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.ladder.labels import EXCLUSIVE_TOPOLOGY, JOBSET_NAME, REPLICATED_JOB

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from pulumi_holdfast.controller.jobs.actions import JobEvent, Recreate, Resume, Suspend
    from pulumi_holdfast.controller.jobs.observation import Observation
    from pulumi_holdfast.controller.jobs.pod_history import PodHistory
    from pulumi_holdfast.controller.jobs.pod_shapes import PodShape
    from pulumi_holdfast.controller.jobs.pods_and_nodes import Recreation, Snapshot


@dataclass(frozen=True, kw_only=True)
class ReplicatedJob:
    """One of a JobSet's templates. `follows`: its pods are placed by the tier."""

    name: str
    spec: Json
    follows: bool

    @property
    def replicas(self) -> int:
        """How many child Jobs it has."""
        return count(self.spec.get("replicas"), 1)

    @property
    def job_spec(self) -> Json:
        """The spec of its child Jobs."""
        return mapping(mapping(self.spec.get("template")).get("spec"))

    @property
    def template(self) -> Json:
        """The template of its pods."""
        return mapping(self.job_spec.get("template"))

    @property
    def pod_spec(self) -> Json:
        """The spec of its pods."""
        return mapping(self.template.get("spec"))

    @property
    def pods_at_once(self) -> int:
        """How many pods one of its Jobs runs at a time."""
        parallelism = count(self.job_spec.get("parallelism"), 1)
        completions = count(self.job_spec.get("completions"), parallelism)
        return min(parallelism, completions)


def replicated_jobs(jobset: Json) -> tuple[ReplicatedJob, ...]:
    """Return a JobSet's templates in order."""
    specs = objects(mapping(jobset.get("spec")).get("replicatedJobs"))
    plain = [ReplicatedJob(name=text(spec.get("name")), spec=spec, follows=True) for spec in specs]
    follow = followers([each.template for each in plain])
    return tuple(
        ReplicatedJob(name=each.name, spec=each.spec, follows=flag)
        for each, flag in zip(plain, follow, strict=True)
    )


def pods_expected(jobset: Json, children: Sequence[Json], pods: Sequence[Json]) -> Mapping[str, int]:
    """How many pods of the tier must run now, by the name of their template; a template without any is left out.

    Excludes completed pods, and pods of a template that waits for another one to be ready or complete: they need no
    node yet, and must not look like missing capacity.
    """
    succeeded = Counter(text(owner_of(pod).get("uid")) for pod in pods if phase_of(pod) == "Succeeded")
    in_order = (
        mapping(mapping(jobset.get("spec")).get("startupPolicy")).get("startupPolicyOrder") == "InOrder"
    )
    suspended = mapping(jobset.get("spec")).get("suspend") is True
    expected = Counter[str]()
    for place, each in enumerate(replicated_jobs(jobset)):
        made = [child for child in children if replicated_job_of(child) == each.name]
        begun = made if suspended else [child for child in made if not is_suspended(child)]
        waits = (in_order and place > 0) or bool(objects(each.spec.get("dependsOn")))
        if each.follows and (begun or not waits):
            missing = max(0, each.replicas - len(made))
            expected[each.name] += missing * each.pods_at_once
            expected[each.name] += sum(
                _expected_pods_of(child, each.pods_at_once, succeeded[uid_of(child)]) for child in made
            )
    return +expected


def _expected_pods_of(child: Json, at_once: int, succeeded: int) -> int:
    """How many pods of a child Job must run; `succeeded` of its pods have, and its status counts them some time later."""
    if is_complete(child):
        return 0
    completions = mapping(child.get("spec")).get("completions")
    done = max(succeeded, count(mapping(child.get("status")).get("succeeded")))
    return max(0, min(at_once, (at_once if completions is None else count(completions)) - done))


def templates_with_pool(job: Json, pool: str, *, tolerate_reservation: bool) -> Json:
    """Return the JobSet's templates, with those that follow selecting a pool."""
    reserved_for_uid = uid_of(job) if tolerate_reservation else None
    return {
        "replicatedJobs": [
            _with_pod_spec(each.spec, with_pool(each.pod_spec, pool, reserved_for_uid=reserved_for_uid))
            if each.follows
            else each.spec
            for each in replicated_jobs(job)
        ]
    }


def _with_pod_spec(replicated_job: Json, pod_spec: Json) -> Json:
    template = mapping(replicated_job.get("template"))
    job_spec = mapping(template.get("spec"))
    pod_template = {**mapping(job_spec.get("template")), "spec": pod_spec}
    return {**replicated_job, "template": {**template, "spec": {**job_spec, "template": pod_template}}}


def _labelled(replicated_job: Json, labels: Mapping[str, str]) -> Json:
    """Return a replicated job whose child Jobs and pods have further labels."""
    job = with_labels(mapping(replicated_job.get("template")), labels)
    job_spec = mapping(job.get("spec"))
    pod = with_labels(mapping(job_spec.get("template")), labels)
    return {**replicated_job, "template": {**job, "spec": {**job_spec, "template": pod}}}


_UID: Final = "jobset.sigs.k8s.io/jobset-uid"


class JobSetKind:
    """JobSets: suspended and resumed with their templates, by means of their child Jobs."""

    api_version: ClassVar[str] = "jobset.x-k8s.io/v1alpha2"
    kind: ClassVar[str] = "JobSet"

    def job_of_pod(self, pod: Json) -> JobKey | None:
        """Return the JobSet of a pod."""
        name = text(labels_of(pod).get(JOBSET_NAME))
        return JobKey(self.kind, namespace_of(pod), name) if name else None

    def job_of_child(self, child: Json) -> JobKey | None:
        """Return the JobSet that owns a Job."""
        owner = owner_of(child)
        if owner.get("kind") != self.kind:
            return None
        return JobKey(self.kind, namespace_of(child), text(owner.get("name")))

    def observe(self, snapshot: Snapshot, history: PodHistory) -> tuple[Observation, PodHistory]:
        """Return the observation; see JobKind."""
        own = _own_snapshot(snapshot)
        history = updated_history(history, own)
        job, status = own.job, mapping(own.job.get("status"))
        following = [each for each in replicated_jobs(job) if each.follows]
        names = {each.name for each in following}
        gang = gang_placement([pod for pod in own.pods if replicated_job_of(pod) in names], own)
        sizes = pods_expected(job, own.children, own.pods)
        expected = sum(sizes.values())
        outcome, ended_at = _outcome_of(job)
        restarts = counter(status.get("restarts"))
        sight = replace(
            base_observation(own, history),
            is_suspension_complete=_is_suspension_complete(own),
            children_create_no_pods=_children_create_no_pods(own, restarts),
            operator_status=_status_text(own.job, restarts),
            can_be_suspended=outcome is None,
            not_suspendable_reason=affinity_problem([each.pod_spec for each in following], "JobSet"),
            outcome=outcome,
            failure_cause=failure_cause(history, ended_at) if outcome is JobOutcome.FAILED else None,
            pool=pool_of(each.pod_spec for each in following),
            restarts=restarts,
            disrupted_restarts=max(0, restarts - counter(status.get("restartsCountTowardsMax"))),
            pods_expected=expected,
            pods_missing=max(0, expected - gang.created),
            pods_placed=gang.placed,
            pods_started=gang.started,
            starting_since=gang.starting_since,
            outdated_children=len(self.outdated_children(own)),
            # Not what runs later or is complete: a reservation is no larger than what the namespace's quota has counted.
            shapes=tuple(_shape(job, each, sizes[each.name]) for each in following if each.name in sizes),
            notices=(
                *exits_zero_events(history),
                *deadline_events(job),
                *max_cost_events(job),
                *_standing_events(job),
            ),
        )
        return sight, history

    def suspension(self, job: Json, action: Suspend, state: str) -> Json:
        """Return the patch of one update: the templates select the pool, if there is one, and the JobSet is suspended."""
        spec: Json = {"suspend": True}
        if action.pool:
            pooled = templates_with_pool(job, action.pool, tolerate_reservation=action.tolerate_reservation)
            spec = {**spec, **pooled}
        return patches.spec_patch(job, state, spec)

    def resumption(self, job: Json, action: Resume, state: str) -> Json:
        """Return the patch of one update: the templates select the pool, the JobSet is resumed."""
        templates = templates_with_pool(job, action.pool, tolerate_reservation=action.tolerate_reservation)
        return patches.spec_patch(job, state, {"suspend": False, **templates})

    def outdated_children(self, snapshot: Snapshot) -> tuple[Json, ...]:
        """Return the suspended Jobs that must not be resumed: those of another template, or that are going to fail.

        On resumption JobSet merges its template into them: selectors of the old template would stay. A Job that lost a pod
        before it was suspended would fail at once, and the job would start twice. JobSet recreates deleted ones at once,
        also suspended, from the current template.
        """
        own = _own_snapshot(snapshot)
        if mapping(own.job.get("spec")).get("suspend") is not True:
            return ()
        wanted = {each.name: placement_in(each.pod_spec) for each in replicated_jobs(own.job)}
        return tuple(
            child
            for child in own.children
            if not is_complete(child)
            and not has_failed(child)
            and not is_being_deleted(child)
            and (
                wanted.get(replicated_job_of(child)) != capacity_selection_of_child(child)
                or _is_stalled(child, own)
            )
        )

    def recreation(self, job: Json, action: Recreate, state: str) -> Recreation | None:
        """Return None: a JobSet is never recreated."""
        del job, action, state
        return None

    def copied_spec(self, job: Json, pool: str, labels: Mapping[str, str]) -> Json:
        """Return the spec of a copy; see JobKind. JobSet deletes a JobSet that has ended after `ttlSecondsAfterFinished`."""
        spec = {**mapping(job.get("spec")), **templates_with_pool(job, pool, tolerate_reservation=False)}
        spec.pop("ttlSecondsAfterFinished", None)
        return {
            **spec,
            "replicatedJobs": [_labelled(each, labels) for each in objects(spec["replicatedJobs"])],
        }

    def fails_for_good(self, copy: Json) -> bool:
        """Return True: a failed JobSet has no restarts left."""
        del copy
        return True

    def ended_status(self, job: Json, outcome: JobOutcome, message: str, at: datetime) -> Json:
        """Return the condition with which JobSet ignores a JobSet, beside the others, and its terminal state."""
        kind = _CONDITION_OF[outcome]
        conditions = objects(mapping(job.get("status")).get("conditions"))
        ended: Json = {
            "type": kind,
            "status": "True",
            "reason": "CopyEnded",
            "message": message,
            "lastTransitionTime": stamp(at),
        }
        others = [each for each in conditions if each.get("type") != kind]
        return {"conditions": [*others, ended], "terminalState": kind}


def _shape(job: Json, each: ReplicatedJob, size: int) -> PodShape:
    """Return the shape of a template's pods, so many. JobSet itself keeps the pods of exclusive topologies apart."""
    labels = {
        **pod_labels(each.template),
        JOBSET_NAME: text(metadata_of(job).get("name")),
        REPLICATED_JOB: each.name,
    }
    is_exclusive = any(
        EXCLUSIVE_TOPOLOGY in annotations_of(owner) for owner in (job, mapping(each.spec.get("template")))
    )
    problem = f"JobSet places its pods ({EXCLUSIVE_TOPOLOGY})" if is_exclusive else None
    return shape_of(each.pod_spec, size, labels, problem)


def _own_snapshot(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot without objects of an earlier JobSet with the same name, whose pods may still terminate."""
    uid = uid_of(snapshot.job)
    return replace(
        snapshot,
        pods=tuple(pod for pod in snapshot.pods if labels_of(pod).get(_UID) in {uid, None}),
        children=tuple(child for child in snapshot.children if owner_of(child).get("uid") == uid),
    )


def _is_stalled(child: Json, snapshot: Snapshot) -> bool:
    """Whether a Job is going to fail but cannot while suspended: while a pod terminates, the Job controller still may."""
    return will_fail(child) and not _has_terminating_pods(snapshot)


def _has_terminating_pods(snapshot: Snapshot) -> bool:
    return any(is_terminating(pod) for pod in snapshot.pods)


def _is_suspension_complete(snapshot: Snapshot) -> bool:
    """Whether JobSet has suspended the JobSet and every child Job, and all controllers have finished reacting to failures.

    The JobSet's condition alone may be left from an earlier suspension: a resumption changes it last. A child Job that does
    not exist yet may be about to be created from the old template by a restart that began before the suspension; JobSet
    creates it suspended otherwise. A child Job without its own condition may still get pods of the old template. A failed
    Job is restarted even while the JobSet is suspended; and while the Job controller still tracks an evicted pod, the Job
    does not show yet that it will fail. A resumption before that would start the job twice, or on the wrong tier.
    """
    return (
        has_condition(snapshot.job, "Suspended")
        and all(_are_suspended(each, snapshot.children) for each in replicated_jobs(snapshot.job))
        and not _has_terminating_pods(snapshot)
    )


def _are_suspended(each: ReplicatedJob, children: Sequence[Json]) -> bool:
    """Whether all child Jobs of a template exist and create no pods. One that will fail is deleted instead."""
    made = [child for child in children if replicated_job_of(child) == each.name]
    waits = bool(objects(each.spec.get("dependsOn")))
    return (waits or len(made) >= each.replicas) and all(
        is_complete(child) or stays_suspended(child) for child in made
    )


def _children_create_no_pods(snapshot: Snapshot, restarts: int) -> bool:
    """Whether no child Job that exists can create a pod, or still has to be counted as failed.

    A Job that has failed or is being deleted creates none, but JobSet counts its failure, also after the resumption, unless it is
    older than the last restart: it would restart the job again, on its new tier.
    """
    return not _has_terminating_pods(snapshot) and all(
        is_complete(child)
        or stays_suspended(child)
        or ((has_failed(child) or is_being_deleted(child)) and is_older(child, restarts))
        for child in snapshot.children
    )


def _status_text(job: Json, restarts: int) -> str:
    """Return what JobSet changes in the status when it observes a suspension or a failure."""
    suspended = condition_of(job, "Suspended")
    return f"{restarts} {text(suspended.get('status')) or '-'} {text(suspended.get('lastTransitionTime')) or '-'}"


_CONDITION_OF: Final = {JobOutcome.COMPLETED: "Completed", JobOutcome.FAILED: "Failed"}


def _outcome_of(job: Json) -> tuple[JobOutcome | None, datetime | None]:
    for outcome, kind in _CONDITION_OF.items():
        condition = condition_of(job, kind)
        if condition.get("status") == "True":
            return outcome, moment(condition.get("lastTransitionTime"))
    return None, None


def _standing_events(job: Json) -> tuple[JobEvent, ...]:
    policy = mapping(mapping(job.get("spec")).get("failurePolicy"))
    restarts = any(text(rule.get("action")).startswith("Restart") for rule in objects(policy.get("rules")))
    if count(policy.get("maxRestarts")) > 0 or restarts:
        return ()
    return (
        standing_event(
            EventReason.ENDS_AT_FIRST_LOSS,
            "Its failurePolicy restarts nothing, so the first lost pod ends the JobSet permanently, regardless of its ladder. "
            "The policy is immutable: create the JobSet again with failurePolicy.maxRestarts.",
        ),
    )
