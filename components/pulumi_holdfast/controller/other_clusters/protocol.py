"""Transfer of a job to another cluster and back: which cluster may run the job, and the next step of a transfer.

The job's own cluster is its home. There the job stays, suspended, while a copy of it runs in the other cluster. Home's
controller takes every step; the other cluster's controller treats the copy as a job of its own as long as `may_run` allows
it. docs/adr/0044-transfer-to-another-cluster.md has the protocol and its reasons.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeAlias

from pulumi_holdfast.controller.jobs.observation import GRANTED
from pulumi_holdfast.ladder.frozen import replace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulumi_holdfast.controller.jobs.observation import JobOutcome


class TransferStage(StrEnum):
    """The stage of a transfer. Stages follow each other in this order; each epoch has each stage once."""

    HOME = "Home"  #: the job may run at home; no copy may run
    PREPARING = "Preparing"  #: a copy is created, suspended; neither may run
    AWAY = "Away"  #: the recorded copy may run; the job may not run at home
    RETURNING = "Returning"  #: the copy is stopped and deleted; neither may run


class Permit(StrEnum):
    """Whether a copy may run. It never goes back to an earlier value."""

    WAITING = "Waiting"  #: home has not recorded the copy yet
    GRANTED = GRANTED  #: home has recorded the copy
    RECALLED = "Recalled"  #: the copy must stop and is deleted


@dataclass(frozen=True, kw_only=True)
class TransferRecord:
    """The record of a transfer, in the job's annotation `fallback.holdfast.dev/transfer`.

    `uid`: the job's. `epoch`: of the last transfer, 0 before the first. `cluster`: where the copy is, empty at home. `copy`:
    the uid of the copy that may run, empty until it is known.
    """

    uid: str
    epoch: int = 0
    stage: TransferStage = TransferStage.HOME
    cluster: str = ""
    copy: str = ""


_VERSION: Final = "v1"
# Users may write the annotations: Python parses no number of thousands of digits.
_EPOCH: Final = re.compile(r"[0-9]{1,18}", re.ASCII)
_ABSENT: Final = "-"
_PARTS: Final = 6


def write_record(record: TransferRecord) -> str:
    """Return the annotation's text. The API server's rules and every version of the controller read this format."""
    return " ".join(
        (
            _VERSION,
            record.uid,
            str(record.epoch),
            record.stage.value,
            record.cluster or _ABSENT,
            record.copy or _ABSENT,
        )
    )


def read_epoch(text: str) -> int | None:
    """Read the epoch of a transfer; None for a text that is not one."""
    return int(text) if _EPOCH.fullmatch(text) else None


def read_transfer(text: str, uid: str) -> TransferRecord | None:
    """Read the annotation of the job with this uid; None for a text that is not the job's record."""
    parts = text.split(" ")
    if len(parts) != _PARTS or parts[0] != _VERSION or parts[1] != uid:
        return None
    epoch = read_epoch(parts[2])
    if epoch is None or parts[3] not in set(TransferStage):
        return None
    cluster, copy = ("" if part == _ABSENT else part for part in parts[4:])
    return TransferRecord(uid=uid, epoch=epoch, stage=TransferStage(parts[3]), cluster=cluster, copy=copy)


@dataclass(frozen=True, kw_only=True)
class HomeView:
    """The job at home.

    `record`: None if it is missing or cannot be read. `is_held`: the job has the finalizer of a transfer, which it has in
    every stage but HOME. `is_suspended`: `spec.suspend`. `is_quiet`: it is suspended, its operator has carried that out,
    and it has no pod. `is_ended`: it has completed or failed. `wanted`: the cluster that its ladder wants it in, empty for
    home. `abandoned`: the epoch whose copy its user declares lost with its cluster, None for none.
    """

    uid: str
    record: TransferRecord | None = None
    is_held: bool = False
    is_deleted: bool = False
    is_suspended: bool = True
    is_quiet: bool = False
    is_ended: bool = False
    wanted: str = ""
    abandoned: int | None = None


@dataclass(frozen=True, kw_only=True)
class CopyView:
    """The copy of a job, or another object with its name.

    `origin`: the uid of the job it is a copy of, empty for an object that is no copy. `is_quiet`: its operator has stopped
    it, and it has no pod.
    """

    uid: str
    version: str
    origin: str = ""
    epoch: int = 0
    permit: Permit = Permit.WAITING
    is_quiet: bool = False
    outcome: JobOutcome | None = None


@dataclass(frozen=True, kw_only=True)
class RemoteView:
    """The objects of a job in the other cluster.

    `is_clear`: no child Job and no pod of any copy of the job is left there.
    """

    copy: CopyView | None = None
    is_clear: bool = True


class LiveRead(StrEnum):
    """What the API server itself, not a cache, must show right before a write."""

    NOTHING = "Nothing"
    QUIET_AT_HOME = "QuietAtHome"  #: the job's suspension is complete and no pod of it is left
    NOTHING_THERE = (
        "NothingThere"  #: the other cluster has no copy of the job, no child Job and no pod of one
    )


@dataclass(frozen=True, kw_only=True)
class WriteRecord:
    """Write the record and the finalizer in one update of the job, under the version that was observed, after the live read."""

    record: TransferRecord
    is_held: bool = True
    live_read: LiveRead = LiveRead.NOTHING


@dataclass(frozen=True, kw_only=True)
class SuspendAtHome:
    """Suspend the job: another client has resumed it although a copy may run."""


@dataclass(frozen=True, kw_only=True)
class RecordOutcome:
    """Write how the copy ended into the job's status."""

    outcome: JobOutcome


@dataclass(frozen=True, kw_only=True)
class CreateCopy:
    """Create the copy: suspended, its permit WAITING, with the job's uid and this epoch."""

    epoch: int


@dataclass(frozen=True, kw_only=True)
class SetPermit:
    """Write the permit and `suspend` (false with GRANTED alone) in one update of the copy of this uid and version."""

    copy: str
    version: str
    permit: Permit


@dataclass(frozen=True, kw_only=True)
class DeleteCopy:
    """Delete the copy of this uid and version."""

    copy: str
    version: str


TransferAction: TypeAlias = WriteRecord | SuspendAtHome | RecordOutcome | CreateCopy | SetPermit | DeleteCopy


def read_permit(text: str) -> Permit:
    """Read a copy's permit. One that cannot be read lets nothing run."""
    return Permit(text) if text in set(Permit) else Permit.WAITING


def may_run(permit: Permit) -> bool:
    """Whether a copy may have pods: its home has granted the permit."""
    return permit is Permit.GRANTED


def decide_transfer(view: HomeView, remotes: Mapping[str, RemoteView | None]) -> TransferAction | None:
    """Return the next step; None to wait. `remotes`: by cluster; None for one that cannot be read now.

    Time is no argument: while a cluster cannot be read, no step that depends on it is taken.
    """
    if view.record is None:
        return _recover(view, remotes) if view.is_held else _at_home(view, TransferRecord(uid=view.uid))
    record = view.record
    if record.stage is not TransferStage.HOME:
        if view.abandoned == record.epoch:
            return _home_record(record)
        if not view.is_suspended and not view.is_ended:
            return SuspendAtHome()
    remote = remotes.get(record.cluster)
    match record.stage:
        case TransferStage.HOME:
            return _at_home(view, record)
        case TransferStage.PREPARING:
            return _preparing(view, record, remote)
        case TransferStage.AWAY:
            return _away(view, record, remote)
        case TransferStage.RETURNING:
            return _returning(view, record, remote)


def is_name_taken(view: HomeView, remote: RemoteView | None) -> bool:
    """Whether the other cluster has an object with the job's name that is no copy of this job."""
    return remote is not None and remote.copy is not None and remote.copy.origin != view.uid


def decide_leftover(
    copy: CopyView, cluster: str, home: TransferRecord | None
) -> SetPermit | DeleteCopy | None:
    """Return the next step to remove a copy that no transfer needs; None if one may need it, or while its pods end.

    `home`: the record of the job with the uid of the copy's origin, None if that job does not exist. It must be read from
    the API server, after the copy. Without a cluster, in another stage than HOME, it is of a job whose record is lost.
    """
    is_needed = home is not None and home.stage is not TransferStage.HOME and home.cluster in {cluster, ""}
    return None if is_needed else _remove(copy)


def _recover(view: HomeView, remotes: Mapping[str, RemoteView | None]) -> TransferAction | None:
    """The record is lost, but not the finalizer: find the copy, and take it back."""
    if any(remote is None for remote in remotes.values()):
        return None
    for cluster, remote in sorted(remotes.items()):
        copy = None if remote is None else remote.copy
        if copy is not None and copy.origin == view.uid:
            return WriteRecord(
                record=TransferRecord(
                    uid=view.uid,
                    epoch=copy.epoch,
                    stage=TransferStage.RETURNING,
                    cluster=cluster,
                    copy=copy.uid,
                )
            )
        if remote is not None and not remote.is_clear:
            return None
    return WriteRecord(record=TransferRecord(uid=view.uid), is_held=False, live_read=LiveRead.NOTHING_THERE)


def _at_home(view: HomeView, record: TransferRecord) -> TransferAction | None:
    if view.is_held:
        return WriteRecord(record=record, is_held=False)
    is_leaving = bool(view.wanted) and not view.is_deleted and not view.is_ended
    if not is_leaving or not view.is_quiet:
        return None
    next_epoch = TransferRecord(
        uid=view.uid, epoch=record.epoch + 1, stage=TransferStage.PREPARING, cluster=view.wanted
    )
    return WriteRecord(record=next_epoch)


def _preparing(view: HomeView, record: TransferRecord, remote: RemoteView | None) -> TransferAction | None:
    if _must_return(view, record):
        # No copy has got this epoch's permit: one that a late request creates never runs, and is removed.
        return _home_record(record) if remote is None else _returning_record(record)
    if remote is None or is_name_taken(view, remote):
        return None
    if remote.copy is None:
        return CreateCopy(epoch=record.epoch) if remote.is_clear else None
    copy = remote.copy
    if copy.epoch < record.epoch:
        # What is left of an earlier transfer: created by a request that arrived late.
        return _remove(copy)
    if copy.epoch > record.epoch or copy.permit is not Permit.WAITING:
        # Home's record is older than the copy: home was restored from a backup.
        return WriteRecord(
            record=replace(record, epoch=copy.epoch, stage=TransferStage.RETURNING, copy=copy.uid)
        )
    granted = replace(record, stage=TransferStage.AWAY, copy=copy.uid)
    return WriteRecord(record=granted, live_read=LiveRead.QUIET_AT_HOME) if view.is_quiet else None


def _away(view: HomeView, record: TransferRecord, remote: RemoteView | None) -> TransferAction | None:
    copy = None if remote is None else remote.copy
    is_own = copy is not None and copy.uid == record.copy
    if is_own and copy is not None and copy.outcome is not None and not _is_settled(view):
        return RecordOutcome(outcome=copy.outcome)
    if _must_return(view, record):
        return _returning_record(record)
    if remote is None:
        return None
    if not is_own or copy is None or copy.permit is Permit.RECALLED:
        return _returning_record(record)
    if copy.permit is Permit.WAITING:
        return SetPermit(copy=copy.uid, version=copy.version, permit=Permit.GRANTED)
    return None


def _returning(view: HomeView, record: TransferRecord, remote: RemoteView | None) -> TransferAction | None:
    if remote is None:
        return None
    copy = remote.copy
    if copy is None or copy.origin != view.uid:
        return replace(_home_record(record), live_read=LiveRead.NOTHING_THERE) if remote.is_clear else None
    if copy.uid == record.copy and copy.outcome is not None and not _is_settled(view):
        return RecordOutcome(outcome=copy.outcome)
    return _remove(copy)


def _is_settled(view: HomeView) -> bool:
    """Whether the outcome of the copy no longer matters."""
    return view.is_ended or view.is_deleted


def _must_return(view: HomeView, record: TransferRecord) -> bool:
    return view.is_deleted or view.is_ended or view.wanted != record.cluster


def _remove(copy: CopyView) -> SetPermit | DeleteCopy | None:
    """Recall the copy, so that no delayed request can grant its permit; delete it once it has stopped."""
    if copy.permit is not Permit.RECALLED:
        return SetPermit(copy=copy.uid, version=copy.version, permit=Permit.RECALLED)
    return DeleteCopy(copy=copy.uid, version=copy.version) if copy.is_quiet else None


def _returning_record(record: TransferRecord) -> WriteRecord:
    return WriteRecord(record=replace(record, stage=TransferStage.RETURNING))


def _home_record(record: TransferRecord) -> WriteRecord:
    return WriteRecord(record=replace(record, stage=TransferStage.HOME, cluster="", copy=""), is_held=False)
