"""Successors of RayJobs: a failed RayJob cannot be resumed, so it is created again under another name on request."""

from __future__ import annotations

from typing import Final

from pulumi_holdfast.controller.api.objects import (
    annotations_of,
    metadata_of,
    name_of,
    namespace_of,
    owner_of,
    text,
    uid_of,
)
from pulumi_holdfast.controller.jobs.patches import fence
from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.ladder.labels import (
    CHECKPOINT_REQUESTED,
    COPY_OF,
    FIRST_CREATED,
    LOST_COPY,
    RECREATE,
    STATE,
    STOP,
    SUCCESSOR,
    SUCCESSOR_OF,
    SUSPENDED_FOR,
    TRANSFER,
)

# The longest RayJob name that KubeRay accepts, and the part of a uid that distinguishes successors.
_LONGEST_NAME: Final = 47
_OF_UID: Final = 8
_NOT_COPIED_ANNOTATIONS: Final = frozenset(
    {
        STATE,
        SUSPENDED_FOR,
        SUCCESSOR,
        CHECKPOINT_REQUESTED,
        TRANSFER,
        LOST_COPY,
        "kubectl.kubernetes.io/last-applied-configuration",
    }
)


def asks_for_successor(job: Json) -> bool:
    """Whether a RayJob asks to be recreated."""
    return annotations_of(job).get(RECREATE) == "true"


def can_have_successor(job: Json) -> bool:
    """Whether a RayJob asks to be recreated, has not been, and has no owner or home that decides instead."""
    annotations = annotations_of(job)
    return asks_for_successor(job) and not annotations.keys() & {SUCCESSOR, COPY_OF} and not owner_of(job)


def successor_name(job: Json) -> str:
    """Return the name of a RayJob's successor, always the same."""
    ending = f"-{uid_of(job)[:_OF_UID]}"
    return f"{_first_name(job)[: _LONGEST_NAME - len(ending)]}{ending}"


def successor(job: Json, spec: Json, state: str) -> Json:
    """Return the successor's manifest. `spec`: the fields that differ; `state`: its annotation's text.

    The successor of a job that its user has stopped starts no pod.
    """
    metadata = metadata_of(job)
    annotations = {
        name: value
        for name, value in mapping(metadata.get("annotations")).items()
        if name not in _NOT_COPIED_ANNOTATIONS
    }
    cluster = {
        **mapping(mapping(job.get("spec")).get("rayClusterSpec")),
        **mapping(spec.get("rayClusterSpec")),
    }
    return {
        "apiVersion": "ray.io/v1",
        "kind": "RayJob",
        "metadata": {
            "name": successor_name(job),
            "namespace": namespace_of(job),
            "labels": mapping(metadata.get("labels")),
            "annotations": {
                **annotations,
                SUCCESSOR_OF: _first_name(job),
                FIRST_CREATED: text(annotations.get(FIRST_CREATED) or metadata.get("creationTimestamp")),
                STATE: state,
            },
        },
        "spec": {
            **mapping(job.get("spec")),
            "suspend": annotations.get(STOP) == "true",
            "rayClusterSpec": cluster,
        },
    }


def predecessor_patch(job: Json) -> Json:
    """Return the patch of the failed RayJob once its successor exists: the controller no longer manages it."""
    return {"metadata": {**fence(job), "annotations": {SUCCESSOR: successor_name(job), STATE: None}}}


def _first_name(job: Json) -> str:
    return text(annotations_of(job).get(SUCCESSOR_OF)) or name_of(job)
