"""Patches that write a decision into a job, each one update under the resource version that was observed."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from pulumi_holdfast.controller.api.objects import (
    annotations_of,
    labels_of,
    metadata_of,
    moment,
    objects,
    stamp,
    text,
    uid_of,
)
from pulumi_holdfast.controller.state_machine.state import JobState, UnreadableState
from pulumi_holdfast.controller.state_machine.state_annotation import read_record, write_marker
from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.ladder.labels import (
    CHECKPOINT_REQUESTED,
    CHECKPOINTED,
    CHECKPOINTS_ON_REQUEST,
    STATE,
    SUSPENDED_FOR,
    TIER,
)

_DISRUPTED: Final = "DisruptionTarget"


def state_patch(job: Json, state: str) -> Json:
    """Return the patch that writes the state and nothing else; `state` is the annotation's text."""
    return {"metadata": {**fence(job), "annotations": {STATE: state}}}


def spec_patch(job: Json, state: str, spec: Json) -> Json:
    """Return the patch that writes the state together with part of the job's spec."""
    return {**state_patch(job, state), "spec": spec}


def with_marks(patch: Json, job: Json, state: JobState) -> Json:
    """Return a patch that writes a state, with the marker of the job's suspension and the label of its tier beside it."""
    metadata = mapping(patch.get("metadata"))
    marker = write_marker(state)
    if marker or SUSPENDED_FOR in annotations_of(job):
        # Empty, not removed: admission restores annotations that an applied manifest lacks.
        metadata = {
            **metadata,
            "annotations": {**mapping(metadata.get("annotations")), SUSPENDED_FOR: marker},
        }
    tier = tier_label(state.pool)
    if labels_of(job).get(TIER) != tier:
        metadata = {**metadata, "labels": {TIER: tier}}
    return {**patch, "metadata": metadata}


_LONGEST_LABEL: Final = 63


def tier_label(pool: str) -> str:
    """Return the label of a job on a pool's tier: `us-east-2.a100-spot` for a pool in another cluster."""
    return pool.replace("/", ".")[:_LONGEST_LABEL].rstrip("-.")


def checkpoint_request(obj: Json, at: datetime) -> Json:
    """Return the patch that asks a job, or one of its pods, to write a checkpoint.

    It has only the uid as a precondition: other changes of the object do not matter.
    """
    return {
        "metadata": {"uid": metadata_of(obj).get("uid"), "annotations": {CHECKPOINT_REQUESTED: stamp(at)}}
    }


def terminated_pod_status(pod: Json, at: datetime) -> Json:
    """Return the status patch that ends a pod whose machine is gone, as the pod garbage collector writes it.

    Deleting the pod is not enough: a Job with a pod failure policy keeps its finalizer until the pod has ended, and reads
    from it whether it was disrupted.
    """
    status = mapping(pod.get("status"))
    others = [each for each in objects(status.get("conditions")) if each.get("type") != _DISRUPTED]
    target: Json = {
        "type": _DISRUPTED,
        "status": "True",
        "reason": "DeletionByPodGC",
        "message": "Its machine is gone permanently.",
        "lastTransitionTime": at.strftime("%Y-%m-%dT%H:%M:%SZ"),
    }
    return {
        "metadata": {"uid": metadata_of(pod).get("uid")},
        "status": {"phase": "Failed", "conditions": [*others, target]},
    }


def recorded_state(job: Json) -> JobState | UnreadableState | None:
    """Return the state that a controller has recorded in a job; None if it has recorded none."""
    annotations = annotations_of(job)
    state = text(annotations[STATE]) if STATE in annotations else None
    return read_record(state, text(annotations.get(SUSPENDED_FOR)), uid_of(job))


def checkpoint_requested_at(job: Json) -> datetime | None:
    """Return the last checkpoint request that a job was sent."""
    return moment(annotations_of(job).get(CHECKPOINT_REQUESTED))


def checkpoints_on_request(job: Json) -> bool:
    """Whether a job declares that its program answers checkpoint requests."""
    return annotations_of(job).get(CHECKPOINTS_ON_REQUEST) == "true"


def checkpointed_at(pods: Iterable[Json]) -> datetime | None:
    """Return the last answer of a job's pods."""
    answers = [moment(annotations_of(pod).get(CHECKPOINTED)) for pod in pods]
    return max((each for each in answers if each is not None), default=None)


def fence(obj: Json) -> Json:
    """Return metadata that makes the API server reject the patch of an object that has changed or been replaced."""
    known = metadata_of(obj)
    return {"resourceVersion": known.get("resourceVersion"), "uid": known.get("uid")}
