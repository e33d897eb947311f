"""The actions that a decision asks the reconciler to carry out. Each names a target state, so repeating one is harmless.

A decision's actions are carried out in order. Actions with a `state` write it into the job's annotation in the same
update as their other changes, under the resource version that was observed; when one action fails, the rest are not
tried, and the job is observed and decided again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from datetime import datetime

    from pulumi_holdfast.controller.reservations.pod_shapes import PodShape
    from pulumi_holdfast.controller.state_machine.events import JobEvent
    from pulumi_holdfast.controller.state_machine.state import JobState


@dataclass(frozen=True, kw_only=True)
class WriteState:
    """Write the annotation and nothing else."""

    state: JobState


@dataclass(frozen=True, kw_only=True)
class Suspend:
    """One update: the template selects `pool` (by the pool key only; empty: what it does), `suspend: true`, the state.

    Also given for a job that is already suspended when its template has to select another pool. The template is set here,
    not on resumption: an operator that recreates a suspended child Job then creates it from the new template.
    `tolerate_reservation`: the pods also tolerate the taint of the capacity that is reserved for this job.
    `only_without_nodes`: the executor first reads from the API server, not from a cache, whether a pod has no node. If all
    have one, nothing is written and the job is observed again.
    """

    state: JobState
    pool: str
    tolerate_reservation: bool = False
    only_without_nodes: bool = False


@dataclass(frozen=True, kw_only=True)
class DeleteChildren:
    """Delete the suspended child Jobs whose pod template differs from the job's current one."""


@dataclass(frozen=True, kw_only=True)
class Resume:
    """One update: the template selects `pool` as under Suspend (it does already), `suspend: false`, the state.

    The executor first reads from the API server, not from a cache, whether a pod of the job is left: with a lagging watch
    two gangs could write one checkpoint. If a pod is left, nothing is written and the job is observed again.
    `recreates_children`: the operator has observed the suspension, so it creates missing child Jobs from the new template; the
    executor does not wait for them.
    """

    state: JobState
    pool: str
    tolerate_reservation: bool = False
    recreates_children: bool = False


@dataclass(frozen=True, kw_only=True)
class CreatePlaceholders:
    """Create the missing placeholder pods of the gang's shape in `pool`."""

    pool: str
    shapes: tuple[PodShape, ...]


@dataclass(frozen=True, kw_only=True)
class TaintReservedNodes:
    """Taint the nodes of this job's placeholders, so that only this job's pods are scheduled there."""


@dataclass(frozen=True, kw_only=True)
class DeletePlaceholders:
    """Delete this job's placeholders; their nodes stay tainted, so that the job's own pods get them."""


@dataclass(frozen=True, kw_only=True)
class ReleaseReservation:
    """Delete this job's placeholders, then remove its taint from every node."""


@dataclass(frozen=True, kw_only=True)
class RequestCheckpoint:
    """Ask the job to write a checkpoint now; `at` identifies the request and is the same when it is repeated."""

    at: datetime


@dataclass(frozen=True, kw_only=True)
class ForceDelete:
    """Delete these pods without waiting for a kubelet: their machines are gone permanently."""

    pods: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Recreate:
    """Create the failed job again from its own manifest, on `pool`, with the state (whose `uid` is empty until it is known).

    A crash between two writes must not lose the job, so nothing is deleted.
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
class JobStep:
    """What one part of the state machine returns: the next state, the actions, and the events.

    A state that no action carries is written by `decide`.
    """

    state: JobState | None
    actions: tuple[Action, ...] = ()
    events: tuple[JobEvent, ...] = ()
