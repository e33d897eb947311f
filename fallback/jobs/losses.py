"""Which pods were lost, when and why: read from pods and nodes, never from an operator's counters."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.fallback.jobs.memory import NOTICE, records
from holdfast.fallback.state_machine.observation import Cause, Loss

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.fallback.jobs.memory import JobMemory, PodRecord


def losses_in(memory: JobMemory) -> tuple[Loss, ...]:
    """Return every loss that is remembered, first to last."""
    found = [loss for uid, record in records(memory) if (loss := _loss(uid, record)) is not None]
    return tuple(sorted(found, key=lambda loss: (loss.at, loss.pod)))


def dead_pods_in(memory: JobMemory) -> tuple[str, ...]:
    """Return the names of the pods that exist and whose machine is gone for good: no kubelet will ever end them."""
    return tuple(
        sorted(
            record.name
            for _, record in records(memory)
            if record.is_there and record.node_is_gone and not record.ending.is_over
        )
    )


def _loss(uid: str, record: PodRecord) -> Loss | None:
    found = _cause(record) if record.is_of_gang else None
    if found is None:
        return None
    cause, at = found
    return Loss(pod=uid, at=at, cause=cause, part=record.part, pool=record.pool)


def _cause(record: PodRecord) -> tuple[Cause, datetime] | None:
    ending = record.ending
    lost_at = None if record.is_dismissed else record.node_lost_at
    if ending.disrupted_at is not None:
        # A node that vanished is what its pods were lost to, though they are only collected a minute later.
        at = min(ending.disrupted_at, lost_at or ending.disrupted_at)
        return (Cause.NODE_GONE if record.node_is_gone and at == lost_at else Cause.EVICTION), at
    if ending.failed_at is not None:
        return _cause_of_failure(record, ending.failed_at), ending.failed_at
    if lost_at is not None and not ending.succeeded:
        return (Cause.NODE_GONE if record.node_is_gone else Cause.UNREACHABLE), lost_at
    return None


def _cause_of_failure(record: PodRecord, at: datetime) -> Cause:
    """Why a pod failed that nobody says was evicted: its node may have been on the way out."""
    if record.node_lost_at is not None and record.node_lost_at - at <= NOTICE:
        return Cause.NODE_GONE
    if record.node_drained_at is not None and record.node_drained_at - at <= NOTICE:
        return Cause.EVICTION
    return Cause.APPLICATION
