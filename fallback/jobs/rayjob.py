"""RayJob as the ladder sees it, and a decision as KubeRay takes it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from holdfast.fallback.jobs import writes
from holdfast.fallback.jobs.affinity import pinned_by_affinity
from holdfast.fallback.jobs.gang import placement_of
from holdfast.fallback.jobs.memory import settled
from holdfast.fallback.jobs.notices import ends_well_when_stopped, standing
from holdfast.fallback.jobs.outcomes import cause_of_end
from holdfast.fallback.jobs.rayjob_failures import attempt_notice, failed_attempts_as_losses, recorded
from holdfast.fallback.jobs.rayjob_gang import cluster_spec, group_of, head_pod_spec, worker_groups
from holdfast.fallback.jobs.rayjob_head import head_silent_since
from holdfast.fallback.jobs.rayjob_pods import own_pods, rayjob_of_child, rayjob_of_pod
from holdfast.fallback.jobs.rayjob_status import (
    SUSPENDED,
    deployment_status,
    ended_at,
    failed_attempts,
    honours_suspension,
    never_suspendable,
    outcome_of,
)
from holdfast.fallback.jobs.rayjob_successor import can_have_successor, succeeded, successor
from holdfast.fallback.jobs.selection import pool_of, selecting, selector_of
from holdfast.fallback.jobs.shapes import shape_of
from holdfast.fallback.jobs.sight import first_sight
from holdfast.fallback.jobs.succession import Succession
from holdfast.fallback.jobs.values import mapping, uid_of
from holdfast.fallback.state_machine.observation import Outcome
from holdfast.scheduling.labels import CAPACITY_KEYS

if TYPE_CHECKING:
    from holdfast.fallback.jobs.memory import JobMemory
    from holdfast.fallback.jobs.snapshot import JobKey, Snapshot
    from holdfast.fallback.state_machine.actions import Recreate, Resume, Suspend
    from holdfast.fallback.state_machine.observation import Observation
    from holdfast.fallback.state_machine.report import Report
    from holdfast.scheduling.json import Json


class RayJobKind:
    """RayJobs: each resumption makes a new RayCluster from the template as it is then."""

    api_version: ClassVar[str] = "ray.io/v1"
    kind: ClassVar[str] = "RayJob"

    def job_of_pod(self, pod: Json) -> JobKey | None:
        """Return which RayJob a pod is of: of its cluster, or of its submitter."""
        return rayjob_of_pod(pod)

    def job_of_child(self, child: Json) -> JobKey | None:
        """Return which RayJob owns a RayCluster or a Job."""
        return rayjob_of_child(child)

    def observe(self, seen: Snapshot, memory: JobMemory) -> tuple[Observation, JobMemory]:
        """Return what the ladder decides by; see JobKind."""
        own = replace(seen, pods=own_pods(seen))
        job = own.job
        memory = settled(memory, own)
        ray = recorded(replace(memory.ray, head_silent_since=head_silent_since(memory.ray, own)), own)
        memory = replace(memory, ray=ray)
        following = [each for each in worker_groups(job) if each.follows]
        names = {each.name for each in following}
        gang = placement_of([pod for pod in own.pods if group_of(pod) in names], own)
        expected = sum(each.pods for each in following)
        outcome = outcome_of(job)
        pool = pool_of(each.pod_spec for each in following)
        sight = first_sight(own, memory)
        sight = replace(
            sight,
            at_rest=deployment_status(job) == SUSPENDED,
            can_be_suspended=honours_suspension(job),
            never_suspendable=never_suspendable(job)
            or pinned_by_affinity([each.pod_spec for each in following], self.kind),
            outcome=outcome,
            outcome_cause=cause_of_end(memory, ended_at(job)) if outcome is Outcome.FAILED else None,
            can_be_recreated=can_have_successor(job),
            pool=pool,
            restarts=failed_attempts(job),
            losses=(*sight.losses, *failed_attempts_as_losses(ray, job, pool)),
            head_silent_since=ray.head_silent_since,
            pods_expected=expected,
            pods_unmade=max(0, expected - gang.made),
            pods_placed=gang.placed,
            pods_started=gang.started,
            starting_since=gang.starting_since,
            shapes=tuple(shape_of(each.pod_spec, each.pods) for each in following if each.pods),
            notices=(*ends_well_when_stopped(memory), *attempt_notice(ray), *_notices(job)),
        )
        return sight, memory

    def suspension(self, job: Json, action: Suspend, state: str) -> Json:
        """Return the patch of one update: the worker groups select the pool, the RayJob is suspended.

        A cluster that lives takes no notice of its RayJob's template; the next one is made from it.
        """
        return writes.update(
            job, state, {"suspend": True, **_selecting(job, action.pool, hold=action.tolerate_hold)}
        )

    def resumption(self, job: Json, action: Resume, state: str) -> Json:
        """Return the patch of one update: the worker groups select the pool, the RayJob is resumed."""
        return writes.update(
            job, state, {"suspend": False, **_selecting(job, action.pool, hold=action.tolerate_hold)}
        )

    def outdated_children(self, seen: Snapshot) -> tuple[Json, ...]:
        """Return none: KubeRay deletes a suspended RayJob's cluster and submitter itself."""
        del seen
        return ()

    def succession(self, job: Json, action: Recreate, state: str) -> Succession | None:
        """Return how a failed RayJob's successor is made, whose workers select the pool."""
        spec = _selecting(job, action.pool, hold=False)
        return Succession(manifest=successor(job, spec, state), patch=succeeded(job))


def _selecting(job: Json, pool: str, *, hold: bool) -> Json:
    """Return the RayJob's cluster template, those worker groups that follow selecting a pool."""
    held_for = uid_of(job) if hold else None
    groups = [
        {
            **each.spec,
            "template": {
                **mapping(each.spec.get("template")),
                "spec": selecting(each.pod_spec, pool, held_for=held_for),
            },
        }
        if each.follows
        else each.spec
        for each in worker_groups(job)
    ]
    return {"rayClusterSpec": {"workerGroupSpecs": groups}}


def _notices(job: Json) -> tuple[Report, ...]:
    capacity = sorted(selector_of(head_pod_spec(job)).keys() & CAPACITY_KEYS)
    if not capacity or not cluster_spec(job):
        return ()
    return (
        standing(
            "HeadSelectsCapacity",
            f"Its head selects {', '.join(capacity)}. Moves leave the head where it is, and losing it costs the whole "
            "attempt: leave the selector out, and the head runs on the default on-demand pool.",
        ),
    )
