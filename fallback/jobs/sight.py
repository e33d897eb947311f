"""The part of an observation that is the same for every kind of job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.fallback.jobs import writes
from holdfast.fallback.jobs.gang import left
from holdfast.fallback.jobs.kueue import is_queued
from holdfast.fallback.jobs.losses import dead_pods_in, losses_in
from holdfast.fallback.jobs.values import mapping, metadata_of, moment, uid_of
from holdfast.fallback.state_machine.observation import Observation
from holdfast.scheduling.labels import FOLLOWS, FOLLOWS_VALUE

if TYPE_CHECKING:
    from holdfast.fallback.jobs.memory import JobMemory
    from holdfast.fallback.jobs.snapshot import Snapshot
    from holdfast.scheduling.json import Json


def first_sight(seen: Snapshot, memory: JobMemory) -> Observation:
    """Return what any job shows: who it is, what was lost of it, what is left of it, what it says of checkpoints."""
    job = seen.job
    return Observation(
        uid=uid_of(job),
        created=moment(metadata_of(job).get("creationTimestamp")) or seen.now,
        now=seen.now,
        follows=_follows(job),
        suspended=mapping(job.get("spec")).get("suspend") is True,
        queued=is_queued(job, seen.workloads),
        losses=losses_in(memory),
        pods_left=left(seen.pods),
        dead_pods=dead_pods_in(memory),
        listens=writes.listens(job),
        checkpoint_asked_at=writes.asked_at(job),
        checkpointed_at=writes.answered_at(seen.pods),
    )


def _follows(job: Json) -> bool:
    """Whether a job asks to follow the ladder; one that is being deleted goes nowhere any more."""
    metadata = metadata_of(job)
    labelled = mapping(metadata.get("labels")).get(FOLLOWS) == FOLLOWS_VALUE
    return labelled and not metadata.get("deletionTimestamp")
