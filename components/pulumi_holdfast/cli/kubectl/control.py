"""Stops, resumes and moves a job for its user, through the annotations and fields that the fallback controller reads.

A move stops the job, selects the other pool while no pod is left, and resumes it: the same order as the controller's own moves.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pulumi_holdfast.cli.kubectl.cluster import JOB_KINDS, Cluster, rejected
from pulumi_holdfast.cli.kubectl.job_view import has_finished, reference_of, selected_pool, state_of
from pulumi_holdfast.controller.jobs.actions import Suspend
from pulumi_holdfast.controller.jobs.kinds import KINDS
from pulumi_holdfast.controller.jobs.observation import Observation
from pulumi_holdfast.controller.jobs.pods_and_nodes import JobKey
from pulumi_holdfast.controller.jobs.state import JobState, Phase
from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.controller.kube.objects import annotations_of, labels_of, metadata_of, text
from pulumi_holdfast.controller.other_clusters.copies import may_run_here
from pulumi_holdfast.ladder.errors import ConfigError, Problem
from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.ladder.labels import FOLLOWS, FOLLOWS_VALUE, STATE, STOP
from pulumi_holdfast.ladder.ladder import Policy, cluster_of

_POLL_SECONDS: Final = 0.5
_ATTEMPTS: Final = 10
_ASK_STOP: Final[Json] = {"metadata": {"annotations": {STOP: "true"}}}
_RESUME: Final[Json] = {"metadata": {"annotations": {STOP: None}}, "spec": {"suspend": False}}
_AT_REST: Final = frozenset({Phase.STOPPED, Phase.GIVEN_UP, Phase.REFUSED})


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """How long a command waits for the controller, and how it reports the condition that it waits for."""

    seconds: float
    say: Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Step:
    """One write of a move: the patch of the job, once a condition holds of it; `what` is the condition as text."""

    condition: Callable[[Json, Observation], bool]
    patch: Callable[[Json], Json]
    what: str


def stop_job(cluster: Cluster, key: JobKey) -> str:
    """Request the stop of a job; return a description of what follows."""
    job = cluster.job(key)
    _require_following(job)
    if has_finished(job):
        raise ConfigError([_ended(job, "Only a job that has not ended can be stopped.")])
    _write(cluster, key, _ASK_STOP)
    name = reference_of(job)
    return (
        f"{name} is asked to stop: the fallback controller suspends it and leaves it suspended, also in the middle of a move. "
        f"Its pods get their grace period. `kubectl holdfast resume {name}` continues it from its latest checkpoint."
    )


def resume_job(cluster: Cluster, key: JobKey) -> str:
    """Resume a job that was stopped, suspended or given up; return a description of what follows."""
    for _ in range(_ATTEMPTS):
        job = cluster.job(key)
        problem = _cannot_resume(job)
        if problem is not None:
            raise ConfigError([problem])
        if _is_written(cluster, key, _fenced(job, _RESUME)):
            return f"{reference_of(job)} is resumed{_where(job)}, from its latest checkpoint.{_was_away(job)}"
    raise ConfigError([_changing(key)])


def move_job(cluster: Cluster, key: JobKey, pool: str, waiting: Waiting) -> str:
    """Move a job to another tier of its ladder, regardless of the tiers' limits; return a description of the move.

    Raises ConfigError where the job or the pool does not allow it, or a step takes longer than the limit: the job is then
    stopped, and the message says how to continue.
    """
    job = cluster.job(key)
    _require_following(job)
    state = _state_to_move(cluster, job, pool)
    _write(cluster, key, _ASK_STOP)
    waiting.say(f"{reference_of(job)} is asked to stop")
    _write_when(
        cluster,
        key,
        waiting,
        Step(
            condition=_is_stopped,
            patch=lambda stopped: _selecting(stopped, pool, state),
            what="the job is stopped, and no pod and no copy of it is left",
        ),
    )
    waiting.say(f"its pods select {pool}")
    _write_when(
        cluster,
        key,
        waiting,
        Step(
            condition=_has_no_old_children,
            patch=lambda ready: _fenced(ready, _RESUME),
            what="the Jobs of its old pool are deleted",
        ),
    )
    return f"{reference_of(job)} is resumed on {pool}, from its latest checkpoint. The ladder continues from there."


def _where(job: Json) -> str:
    """Return the pool on which a job is resumed: the one that its pods select, not the one of its old state."""
    pool = selected_pool(job)
    return f" on {pool}" if pool else ""


def _was_away(job: Json) -> str:
    state = state_of(job)
    cluster = cluster_of(state.pool) if state is not None else ""
    return (
        f" It was on a tier in the cluster {cluster}, to which its ladder may move it again."
        if cluster
        else ""
    )


def _state_to_move(cluster: Cluster, job: Json, pool: str) -> JobState:
    policy = cluster.policy()
    state = state_of(job)
    tiers = [tier.name for tier in policy.tiers] if isinstance(policy, Policy) else []
    pools = [tier for tier in tiers if not cluster_of(tier)]
    if pool in tiers and pool not in pools:
        raise ConfigError.of(
            field="pool",
            value=f'"{pool}", a tier in another cluster',
            allowed=f"the tiers of the ladder in this cluster: {', '.join(pools) or 'it has none'}",
            fix="Name one of them: the fallback controller alone moves a job to another cluster, when the limits of the tiers above "
            "it are spent.",
        )
    if pool not in pools:
        raise ConfigError.of(
            field="pool",
            value=f'"{pool}"',
            allowed=f"the tiers of the ladder in this cluster: {', '.join(pools) or 'it has none'}",
            fix="Name one of them.",
        )
    if has_finished(job):
        raise ConfigError([_ended(job, "Only a job that has not ended can be moved.")])
    if state is None or (state.suspended_by_us and state.phase not in _AT_REST):
        where = (
            "which the fallback controller has not recorded"
            if state is None
            else f"which is {state.phase.value}"
        )
        raise ConfigError.of(
            field="job",
            value=f"{reference_of(job)}, {where}",
            allowed="a job that runs, waits for nodes, or is stopped",
            fix=f"Wait until it does; `kubectl holdfast why {reference_of(job)}` says what it waits for.",
        )
    if state.pool == pool:
        raise ConfigError.of(
            field="pool",
            value=f'"{pool}", where {reference_of(job)} is',
            allowed=f"another tier of the ladder in this cluster: {', '.join(each for each in pools if each != pool) or 'it has none'}",
            fix="Name another tier.",
        )
    return state


def _cannot_resume(job: Json) -> Problem | None:
    state, name = state_of(job), reference_of(job)
    if has_finished(job):
        return _ended(job, "Create the job again: it continues from its checkpoint.")
    asked = annotations_of(job).get(STOP) == "true"
    is_suspended = mapping(job.get("spec")).get("suspend") is True
    if not asked and not is_suspended:
        return Problem(
            field="job",
            value=f"{name}, which is not suspended",
            allowed="a job that is stopped, suspended or given up",
            fix="Do nothing: no suspension is to be removed.",
        )
    if state is not None and not (state.phase in _AT_REST and is_suspended):
        return Problem(
            field="job",
            value=f"{name}, which is {state.phase.value}",
            allowed="a job that is stopped, suspended or given up",
            fix="Wait until it is Stopped: it is being suspended now."
            if asked
            else "Wait: the fallback controller resumes it by itself.",
        )
    if not may_run_here(job):
        return Problem(
            field="job",
            value=f"{name}, whose copy in another cluster may still run",
            allowed="a job without a copy in another cluster",
            fix="Wait until the fallback controller has deleted the copy, then resume the job; before, it would be suspended again.",
        )
    return None


def _is_stopped(job: Json, seen: Observation) -> bool:
    state = state_of(job)
    is_recorded = state is not None and state.phase is Phase.STOPPED
    is_quiet = seen.suspended and seen.is_suspension_complete and seen.pods_remaining == 0
    return is_recorded and is_quiet and may_run_here(job)


def _has_no_old_children(job: Json, seen: Observation) -> bool:
    return _is_stopped(job, seen) and seen.outdated_children == 0


def _selecting(job: Json, pool: str, state: JobState) -> Json:
    """Return the patch with which a suspended job's pods select another pool; the recorded state stays unchanged."""
    recorded = text(annotations_of(job).get(STATE))
    return KINDS[text(job.get("kind"))].suspension(job, Suspend(state=state, pool=pool), recorded)


def _write_when(cluster: Cluster, key: JobKey, waiting: Waiting, step: Step) -> None:
    """Write a step's patch to the job as soon as its condition holds; again, if the job was changed in between."""
    deadline = time.monotonic() + waiting.seconds
    while True:
        job = cluster.job(key)
        if step.condition(job, cluster.observe(key, job)) and _is_written(cluster, key, step.patch(job)):
            return
        if time.monotonic() > deadline:
            raise ConfigError([_too_slow(reference_of(job), waiting.seconds, step.what)])
        time.sleep(_POLL_SECONDS)


def _too_slow(name: str, seconds: float, what: str) -> Problem:
    return Problem(
        field="--timeout",
        value=f"{seconds:.0f}s, in which this did not happen: {what}",
        allowed="a time in which the pods terminate and the fallback controller answers",
        fix=f"{name} stays stopped. Run the move again with a longer --timeout, or `kubectl holdfast resume {name}`.",
    )


def _require_following(job: Json) -> None:
    if labels_of(job).get(FOLLOWS) == FOLLOWS_VALUE:
        return
    raise ConfigError.of(
        field="job",
        value=f"{reference_of(job)}, which does not follow the ladder",
        allowed=f'a job with the label {FOLLOWS}: "{FOLLOWS_VALUE}"',
        fix="Set `suspend` in its spec with `kubectl patch` instead: no controller of Holdfast touches it.",
    )


def _fenced(job: Json, patch: Json) -> Json:
    """Return a patch that is rejected if the job was changed or replaced since it was read."""
    known = metadata_of(job)
    fence: Json = {"resourceVersion": known.get("resourceVersion"), "uid": known.get("uid")}
    return {**patch, "metadata": {**mapping(patch.get("metadata")), **fence}}


def _write(cluster: Cluster, key: JobKey, patch: Json) -> None:
    if not _is_written(cluster, key, patch):
        raise ConfigError([_changing(key)])


def _changing(key: JobKey) -> Problem:
    return Problem(
        field="job",
        value=f"{key.kind.lower()}/{key.name}, which other clients change all the time",
        allowed="a job that stays as it was read",
        fix="Run the command again.",
    )


def _is_written(cluster: Cluster, key: JobKey, patch: Json) -> bool:
    """Write a patch; False if the job was changed since it was read, as operators do all the time."""
    try:
        cluster.patch(JOB_KINDS[key.kind], key.name, patch)
    except ApiError as error:
        if error.is_conflict:
            return False
        raise rejected(error, f"{key.kind.lower()}/{key.name}", "Follow the message.") from error
    return True


def _ended(job: Json, fix: str) -> Problem:
    return Problem(
        field="job",
        value=f"{reference_of(job)}, which has ended",
        allowed="a job that has not ended",
        fix=fix,
    )
