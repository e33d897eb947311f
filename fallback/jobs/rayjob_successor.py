"""A failed RayJob's successor: the same job under another name, since one that has ended can never be resumed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.fallback.jobs.values import mapping, metadata_of, name_of, namespace_of, owner_of, text, uid_of
from holdfast.scheduling.labels import RECREATE, STATE

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json

# On one that has a successor: its name. On the successor: the name of the first of the line.
SUCCESSOR: Final = "fallback.holdfast.dev/successor"
FIRST: Final = "fallback.holdfast.dev/successor-of"

# What KubeRay takes for a RayJob's name, and what of a uid tells one successor from another.
_LONGEST_NAME: Final = 47
_OF_UID: Final = 8
_DROPPED: Final = frozenset(
    {
        STATE,
        SUCCESSOR,
        "fallback.holdfast.dev/checkpoint-asked",
        "kubectl.kubernetes.io/last-applied-configuration",
    }
)


def can_have_successor(job: Json) -> bool:
    """Whether a RayJob asks to be made anew, has not been, and is nobody's who may do so himself."""
    annotations = mapping(metadata_of(job).get("annotations"))
    asks = annotations.get(RECREATE) == "true"
    return asks and not annotations.get(SUCCESSOR) and not owner_of(job)


def successor_name(job: Json) -> str:
    """Return the name of a RayJob's successor: the same whenever it is asked for."""
    ending = f"-{uid_of(job)[:_OF_UID]}"
    return f"{_first_name(job)[: _LONGEST_NAME - len(ending)]}{ending}"


def successor(job: Json, spec: Json, state: str) -> Json:
    """Return the successor's manifest. `spec`: what it has of its own; `state`: its annotation's text."""
    metadata = metadata_of(job)
    kept = {
        name: value for name, value in mapping(metadata.get("annotations")).items() if name not in _DROPPED
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
            "annotations": {**kept, FIRST: _first_name(job), STATE: state},
        },
        "spec": {**mapping(job.get("spec")), "suspend": False, "rayClusterSpec": cluster},
    }


def succeeded(job: Json) -> Json:
    """Return the patch of the failed RayJob, once its successor is there: it is nobody's from then on."""
    metadata = metadata_of(job)
    return {
        "metadata": {
            "resourceVersion": metadata.get("resourceVersion"),
            "uid": metadata.get("uid"),
            "annotations": {SUCCESSOR: successor_name(job), STATE: None},
        }
    }


def _first_name(job: Json) -> str:
    return text(mapping(metadata_of(job).get("annotations")).get(FIRST)) or name_of(job)
