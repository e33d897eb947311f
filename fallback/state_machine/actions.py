"""What is to be done for a job. Each action says how things should be, so doing it twice is doing it once.

A decision's actions are done in their order. Those that carry a `state` write it into the job's annotation in the
same update as what else they change, under the resource version that was observed; when one fails, the rest are
not tried, and the job is observed and decided anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from datetime import datetime

    from holdfast.fallback.reservations.pod_shapes import PodShape
    from holdfast.fallback.state_machine.events import JobEvent
    from holdfast.fallback.state_machine.state import JobState


@dataclass(frozen=True, kw_only=True)
class WriteState:
    """Write the annotation and nothing else."""

    state: JobState


@dataclass(frozen=True, kw_only=True)
class Suspend:
    """One update: the template selects `pool` (by the pool key alone), `suspend: true`, the state.

    Also given for a job that is suspended already, when its template has to select another pool than it does. The
    template is set here, not on resumption: an operator that recreates a suspended child Job then makes it from the
    new one. `tolerate_reservation`: the pods also tolerate the taint of the capacity held for this job.
    """

    state: JobState
    pool: str
    tolerate_reservation: bool = False


@dataclass(frozen=True, kw_only=True)
class DeleteChildren:
    """Delete the suspended child Jobs that were made from another template than the job has now."""


@dataclass(frozen=True, kw_only=True)
class Resume:
    """One update: the template selects `pool` as under Suspend (it does already), `suspend: false`, the state.

    Whoever carries it out first asks the API server itself, not a cache, whether a pod of the job is left: a watch
    that lags would let two gangs write one checkpoint. If one is, nothing is done and the job is observed anew.
    """

    state: JobState
    pool: str
    tolerate_reservation: bool = False


@dataclass(frozen=True, kw_only=True)
class CreatePlaceholders:
    """Make the placeholder pods of the gang's shape in `pool` that are not there yet."""

    pool: str
    shapes: tuple[PodShape, ...]


@dataclass(frozen=True, kw_only=True)
class TaintReservedNodes:
    """Taint the nodes of this job's placeholders, so that only this job's pods get them."""


@dataclass(frozen=True, kw_only=True)
class DeletePlaceholders:
    """Delete this job's placeholders; their nodes stay tainted, so that its own pods find the room."""


@dataclass(frozen=True, kw_only=True)
class ReleaseReservation:
    """Delete this job's placeholders, then take its taint off every node that bears it."""


@dataclass(frozen=True, kw_only=True)
class RequestCheckpoint:
    """Ask the job to write a checkpoint now; `at` names the request, and is the same when it is repeated."""

    at: datetime


@dataclass(frozen=True, kw_only=True)
class ForceDelete:
    """Delete these pods without waiting for a kubelet: their machines are gone for good."""

    pods: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Recreate:
    """Make the failed job anew from its own manifest, on `pool`, with the state (whose `uid` is empty until it is seen).

    A death between deleting and creating must not lose the job: whoever carries it out keeps the manifest elsewhere
    until the new one exists.
    """

    state: JobState
    pool: str


Action: TypeAlias = (
    WriteState
    | Suspend
    | DeleteChildren
    | Resume
    | CreatePlaceholders
    | TaintReservedNodes
    | DeletePlaceholders
    | ReleaseReservation
    | RequestCheckpoint
    | ForceDelete
    | Recreate
)


@dataclass(frozen=True, kw_only=True)
class Step:
    """A part's answer. A state that no action carries is recorded by whoever puts the parts together."""

    state: JobState | None
    actions: tuple[Action, ...] = ()
    events: tuple[JobEvent, ...] = ()
