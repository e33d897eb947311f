"""Copies of a job in other clusters: the manifest of one, both sides of a transfer as views, and the patches of its steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from pulumi_holdfast.controller.jobs.base_observation import (
    first_created,
    max_cost_left,
    progress_of,
    work_done_annotation,
)
from pulumi_holdfast.controller.jobs.kinds import JobKind
from pulumi_holdfast.controller.jobs.observation import CopyStatus, JobOutcome, Observation
from pulumi_holdfast.controller.jobs.patches import fence, recorded_state
from pulumi_holdfast.controller.jobs.pod_history import PodHistory
from pulumi_holdfast.controller.jobs.pods_and_nodes import Snapshot, has_ended, node_of
from pulumi_holdfast.controller.jobs.state import JobState, Ledger, Phase
from pulumi_holdfast.controller.kube.objects import annotations_of, metadata_of, text, uid_of
from pulumi_holdfast.controller.other_clusters.protocol import (
    CopyView,
    HomeView,
    Permit,
    RemoteView,
    SetPermit,
    TransferRecord,
    TransferStage,
    may_run,
    read_epoch,
    read_permit,
    read_transfer,
    write_record,
)
from pulumi_holdfast.controller.state_machine.ledger import use_of
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping
from pulumi_holdfast.ladder.labels import (
    CHECKPOINT_REQUESTED,
    COPY_OF,
    FIRST_CREATED,
    LOST_COPY,
    MAX_COST,
    PERMIT,
    STATE,
    STOP,
    SUSPENDED_FOR,
    TIER,
    TRANSFER,
)

_VERSION: Final = "v1"
_PARTS: Final = 4
_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"

# What belongs to the job at home alone.
_HOME_ANNOTATIONS: Final = frozenset(
    {STATE, SUSPENDED_FOR, CHECKPOINT_REQUESTED, STOP, TRANSFER, LOST_COPY, _APPLIED}
)


def copy_of(kind: JobKind, job: Json, *, home: str, epoch: int, pool: str) -> Json:
    """Return the copy of a job for a pool of another cluster: suspended, without a permit.

    `home`: the uid of the job's cluster. The controller there reads only the copy, so the copy has the rest of the job's
    limits.
    """
    uid = uid_of(job)
    metadata = metadata_of(job)
    labels = {key: value for key, value in mapping(metadata.get("labels")).items() if key != TIER}
    annotations = {
        key: value
        for key, value in mapping(metadata.get("annotations")).items()
        if key not in _HOME_ANNOTATIONS
    }
    state = state_of(job)
    annotations = {**annotations, **work_done_annotation(None if state is None else state.pace)}
    if created := first_created(job):
        # Its ladder's deadline, and its age beside other jobs.
        annotations[FIRST_CREATED] = created
    if MAX_COST in annotations:
        annotations[MAX_COST] = max_cost_left(job, ledger_of(job))
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {
            "name": metadata.get("name"),
            "namespace": metadata.get("namespace"),
            "labels": {**labels, COPY_OF: uid},
            "annotations": {
                **annotations,
                COPY_OF: f"{_VERSION} {home} {uid} {epoch}",
                PERMIT: Permit.WAITING.value,
            },
        },
        "spec": {**kind.copied_spec(job, pool, {COPY_OF: uid}), "suspend": True},
    }


def home_view(kind: JobKind, snapshot: Snapshot, *, wanted: str) -> HomeView:
    """Return the job at home; `wanted`: the cluster that its ladder wants it in, empty for home."""
    job = snapshot.job
    metadata = metadata_of(job)
    annotations = annotations_of(job)
    seen, _ = kind.observe(snapshot, PodHistory())
    return HomeView(
        uid=uid_of(job),
        record=read_transfer(text(annotations.get(TRANSFER)), uid_of(job)),
        is_held=is_held(job),
        is_deleted=bool(metadata.get("deletionTimestamp")),
        is_suspended=seen.suspended,
        is_quiet=seen.suspended
        and seen.is_suspension_complete
        and not seen.pods_remaining
        and not seen.outdated_children,
        is_ended=seen.outcome is not None,
        wanted=wanted,
        abandoned=read_epoch(text(annotations.get(LOST_COPY))),
    )


def record_of(job: Json) -> TransferRecord:
    """Return a job's record. A lost record is one without an epoch, which needs every copy."""
    found = read_transfer(text(annotations_of(job).get(TRANSFER)), uid_of(job))
    if found is not None:
        return found
    return TransferRecord(
        uid=uid_of(job), stage=TransferStage.RETURNING if is_held(job) else TransferStage.HOME
    )


def home_of(found: Json) -> str:
    """Return the identity of the cluster that an object is a copy from, empty for no copy."""
    return _origin(found)[0]


def origin_of(found: Json) -> str:
    """Return the uid of the job that an object is a copy of, empty for no copy."""
    return _origin(found)[1]


def _origin(found: Json) -> tuple[str, str, int]:
    """Return the home of a copy, the uid of its job, and its epoch; empty for no copy."""
    parts = text(annotations_of(found).get(COPY_OF)).split(" ")
    if len(parts) != _PARTS or parts[0] != _VERSION:
        return "", "", 0
    epoch = read_epoch(parts[3])
    return ("", "", 0) if epoch is None else (parts[1], parts[2], epoch)


def is_held(job: Json) -> bool:
    """Whether a job has the finalizer of a transfer."""
    return TRANSFER in _finalizers(job)


def may_run_here(job: Json) -> bool:
    """Whether no copy of a job can run in another cluster."""
    return not is_held(job) and record_of(job).stage is TransferStage.HOME


def remote_view(
    kind: JobKind, found: Json | None, children: Sequence[Json], pods: Sequence[Json], now: datetime
) -> RemoteView:
    """Return the objects of a job in another cluster: the object with its name, and the children and pods of its copies."""
    is_clear = not children and all(has_ended(pod) for pod in pods)
    if found is None:
        return RemoteView(is_clear=is_clear)
    _, origin, epoch = _origin(found)
    seen = _observe_there(kind, found, children, pods, now)
    is_stopped = seen.outcome is not None or (seen.suspended and seen.is_suspension_complete)
    view = CopyView(
        uid=uid_of(found),
        version=text(metadata_of(found).get("resourceVersion")),
        origin=origin,
        epoch=epoch,
        permit=read_permit(text(annotations_of(found).get(PERMIT))),
        is_quiet=is_stopped and all(has_ended(pod) for pod in pods),
        outcome=None if _may_continue(kind, found, seen) else seen.outcome,
    )
    return RemoteView(copy=view, is_clear=is_clear)


def copy_status(
    kind: JobKind, found: Json, children: Sequence[Json], pods: Sequence[Json], now: datetime, *, cluster: str
) -> CopyStatus:
    """Return the status of a copy: its pods, and the state that the controller there has recorded."""
    seen = _observe_there(kind, found, children, pods, now)
    state = state_of(found)
    return CopyStatus(
        pods_expected=seen.pods_expected,
        pods_placed=seen.pods_placed,
        pool=state.pool if state else "",
        evictions=state.evictions if state else 0,
        application_failures=state.application_failures if state else 0,
        unexplained=state.unexplained if state else 0,
        is_given_up=_may_continue(kind, found, seen)
        or (state is not None and state.phase in {Phase.GIVEN_UP, Phase.REFUSED}),
        uid=seen.uid,
        cluster=cluster,
        ledger=state.ledger if state else None,
        capacity=use_of(state.ledger, state.pool).capacity if state else None,
        is_closed=state is None
        or state.phase in {Phase.STOPPED, Phase.GIVEN_UP, Phase.REFUSED, Phase.FINISHED},
        pace=state.pace if state else None,
        progress=progress_of(found, pods),
    )


def ledger_of(job: Json) -> Ledger | None:
    """Return the ledger that the controller has recorded for a job; None without a readable one."""
    state = state_of(job)
    return None if state is None else state.ledger


def state_of(job: Json) -> JobState | None:
    """Return the state that the controller of a job's cluster has recorded; None without a readable one."""
    read = recorded_state(job)
    return read if isinstance(read, JobState) else None


def _may_continue(kind: JobKind, copy: Json, seen: Observation) -> bool:
    """Whether the job continues in its own cluster although its copy has failed."""
    return seen.outcome is JobOutcome.FAILED and not kind.fails_for_good(copy)


def _observe_there(
    kind: JobKind, found: Json, children: Sequence[Json], pods: Sequence[Json], now: datetime
) -> Observation:
    # Nodes there are not read: the rights end at the training namespaces. A pod with a node has a live one.
    nodes: Mapping[str, Json] = {name: {} for pod in pods if (name := node_of(pod))}
    snapshot = Snapshot(job=found, now=now, pods=tuple(pods), children=tuple(children), nodes=nodes)
    seen, _ = kind.observe(snapshot, PodHistory())
    return seen


def record_patch(job: Json, record: TransferRecord, *, hold: bool) -> Json:
    """Return the patch of the record and the finalizer in one update of the job that was observed."""
    others: list[JsonValue] = [each for each in _finalizers(job) if each != TRANSFER]
    return {
        "metadata": {
            **fence(job),
            "annotations": {TRANSFER: write_record(record)},
            "finalizers": [*others, TRANSFER] if hold else others,
        }
    }


def suspension_patch(job: Json) -> Json:
    """Return the patch that suspends the job that was observed."""
    return {"metadata": fence(job), "spec": {"suspend": True}}


def outcome_patch(kind: JobKind, job: Json, outcome: JobOutcome, cluster: str, at: datetime) -> Json:
    """Return the patch that gives the job the terminal status of its copy."""
    message = f"The copy of the job in {cluster} has ended."
    return {"metadata": fence(job), "status": kind.ended_status(job, outcome, message, at)}


def permit_patch(action: SetPermit) -> Json:
    """Return the patch of a copy's permit and suspension, for the copy and the version that were observed."""
    return {
        "metadata": {
            "uid": action.copy,
            "resourceVersion": action.version,
            "annotations": {PERMIT: action.permit.value},
        },
        "spec": {"suspend": not may_run(action.permit)},
    }


def _finalizers(job: Json) -> list[str]:
    found = metadata_of(job).get("finalizers")
    return [text(each) for each in found] if isinstance(found, list) else []
