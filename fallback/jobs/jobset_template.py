"""A JobSet's templates, made to select a pool."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.fallback.jobs.jobset_gang import replicated_jobs
from holdfast.fallback.jobs.selection import placement_of, selecting
from holdfast.fallback.jobs.values import mapping, uid_of

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json, JsonValue


def selecting_pool(job: Json, pool: str, *, hold: bool) -> Json:
    """Return the JobSet's templates, those that follow selecting a pool."""
    held_for = uid_of(job) if hold else None
    return {
        "replicatedJobs": [
            _with_pod_spec(each.spec, selecting(each.pod_spec, pool, held_for=held_for))
            if each.follows
            else each.spec
            for each in replicated_jobs(job)
        ]
    }


def _with_pod_spec(replicated_job: Json, pod_spec: Json) -> Json:
    template = mapping(replicated_job.get("template"))
    job_spec = mapping(template.get("spec"))
    pod_template = {**mapping(job_spec.get("template")), "spec": pod_spec}
    return {**replicated_job, "template": {**template, "spec": {**job_spec, "template": pod_template}}}


def placement_of_child(child: Json) -> JsonValue:
    """Return the part of a child Job's template that a move changes."""
    pod_spec = mapping(mapping(mapping(child.get("spec")).get("template")).get("spec"))
    return placement_of(pod_spec)
