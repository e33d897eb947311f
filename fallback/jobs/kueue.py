"""Whether Kueue manages a job. What it manages is left alone: see docs/adr/0018-kueue.md."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.fallback.jobs.values import mapping, metadata_of, objects, text, uid_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from holdfast.scheduling.json import Json

QUEUE: Final = "kueue.x-k8s.io/queue-name"
# A job whose reconciliation is handed to another cluster's operator, by Kueue.
_MULTIKUEUE: Final = "kueue.x-k8s.io/multikueue"


def is_queued(job: Json, workloads: Iterable[Json]) -> bool:
    """Whether Kueue manages a job: by its label, by a Workload it owns, or by handing it to another cluster.

    Kueue may be told to manage jobs that name no queue; those are known by their Workloads alone.
    """
    labelled = bool(text(mapping(metadata_of(job).get("labels")).get(QUEUE)))
    handed_on = mapping(job.get("spec")).get("managedBy") == _MULTIKUEUE
    return labelled or handed_on or any(_is_owned(workload, uid_of(job)) for workload in workloads)


def _is_owned(workload: Json, uid: str) -> bool:
    owners = objects(metadata_of(workload).get("ownerReferences"))
    return any(each.get("uid") == uid for each in owners)
