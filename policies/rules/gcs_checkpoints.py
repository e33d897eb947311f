"""What makes a bucket of Google Cloud Storage a safe place for checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.policies.declared.amounts import amount
from holdfast.policies.known_values import UNKNOWN, at, is_list, is_object, items_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.policies.findings import StackResource
    from holdfast.policies.known_values import Value

#: A condition with one of these holds for objects alone that a newer version has replaced.
_OF_OLD_VERSIONS: Final = ("daysSinceNoncurrentTime", "noncurrentTimeBefore", "numNewerVersions")


_BUCKET: Final = "gcp:storage/bucket:Bucket"


def is_gcs_bucket(type_token: str) -> bool:
    """Whether the type is a bucket of Google Cloud Storage."""
    return type_token == _BUCKET


def gcs_problems(bucket: StackResource, _: Sequence[StackResource]) -> Iterator[str]:
    """Yield what is wrong with a bucket. Google encrypts every one."""
    if at(bucket.props, "publicAccessPrevention") not in ("enforced", UNKNOWN):
        yield "can be made public. Set `publicAccessPrevention: enforced`."
    if at(bucket.props, "uniformBucketLevelAccess") not in (True, UNKNOWN):
        yield "takes access lists of single objects, which no review sees. Set `uniformBucketLevelAccess: true`."
    if not _keeps_what_was_there(bucket):
        yield (
            "keeps neither versions nor what was deleted: a checkpoint that is overwritten in the moment of a preemption "
            "is lost. Set `versioning.enabled: true`, or a `softDeletePolicy`."
        )
    rules = items_at(bucket.props, "lifecycleRules")
    if is_list(rules) and any(ends_current(rule) for rule in rules):
        yield (
            "deletes current checkpoints by their age: a job that has paused for so long starts from nothing. Give the "
            "rule `daysSinceNoncurrentTime`, or `withState: ARCHIVED`."
        )


def _keeps_what_was_there(bucket: StackResource) -> bool:
    versions = at(bucket.props, "versioning", "enabled")
    policy = at(bucket.props, "softDeletePolicy")
    kept = amount(at(policy, "retentionDurationSeconds"))
    # Where nothing is said, what is deleted can be had back for a week.
    return versions in (True, UNKNOWN) or policy is None or kept is UNKNOWN or kept not in (None, 0.0)


def ends_current(rule: Value) -> bool:
    """Whether a lifecycle rule deletes objects that no newer version has replaced."""
    condition = at(rule, "condition")
    if at(rule, "action", "type") != "Delete" or not is_object(condition):
        return False
    of_old = any(condition.get(key) not in (None, 0) for key in _OF_OLD_VERSIONS)
    return not of_old and condition.get("withState") not in ("ARCHIVED", UNKNOWN)
