"""The child Jobs that JobSet creates: whether one still creates pods, has ended, or is going to."""

from __future__ import annotations

from pulumi_holdfast.controller.api.objects import condition_of, labels_of, metadata_of, text
from pulumi_holdfast.controller.jobs.pod_templates import capacity_selection
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping
from pulumi_holdfast.ladder.labels import REPLICATED_JOB, RESTART_ATTEMPT


def replicated_job_of(child: Json) -> str:
    """Return the name of the template of a child Job or a pod."""
    return text(labels_of(child).get(REPLICATED_JOB))


def is_complete(child: Json) -> bool:
    """Whether a child Job has completed, or creates no more pods and is about to complete."""
    return has_condition(child, "Complete") or has_condition(child, "SuccessCriteriaMet")


def has_failed(child: Json) -> bool:
    """Whether a child Job has failed: JobSet reacts to a failure even while it is suspended."""
    return has_condition(child, "Failed")


def will_fail(child: Json) -> bool:
    """Whether a child Job is going to fail and has not yet.

    A suspended Job does not fail, even without pods (measured on 1.36); it fails once it is resumed.
    """
    return has_condition(child, "FailureTarget") and not has_failed(child)


def has_condition(obj: Json, condition: str) -> bool:
    """Whether an object has a condition that is true."""
    return condition_of(obj, condition).get("status") == "True"


def is_suspended(child: Json) -> bool:
    """Whether JobSet has suspended a child Job."""
    return mapping(child.get("spec")).get("suspend") is True


def stays_suspended(child: Json) -> bool:
    """Whether the Job controller has noticed that a child Job is suspended. It suspends none that will fail.

    One that is being deleted may fail all the same.
    """
    is_kept = is_suspended(child) and not has_failed(child) and not is_being_deleted(child)
    return is_kept and (has_condition(child, "Suspended") or will_fail(child))


def is_being_deleted(child: Json) -> bool:
    """Whether the deletion of a child Job was requested."""
    return bool(metadata_of(child).get("deletionTimestamp"))


def is_older(child: Json, restarts: int) -> bool:
    """Whether a child Job is from before the last of these restarts of its JobSet."""
    attempt = text(labels_of(child).get(RESTART_ATTEMPT))
    return attempt.isdecimal() and int(attempt) < restarts


def capacity_selection_of_child(child: Json) -> JsonValue:
    """Return the part of a child Job's template that a move changes."""
    pod_spec = mapping(mapping(mapping(child.get("spec")).get("template")).get("spec"))
    return capacity_selection(pod_spec)
