"""What makes an S3 bucket a safe place for checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.policies.known_values import UNKNOWN, at, is_list, is_object, items_at
from holdfast.policies.rules.attached import attached_to

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.policies.findings import StackResource
    from holdfast.policies.known_values import Value

_BLOCKS: Final = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
_ENDS: Final = ("days", "date")


def is_s3_bucket(type_token: str) -> bool:
    """Whether the type is a bucket of S3."""
    return type_token in {"aws:s3/bucket:Bucket", "aws:s3/bucketV2:BucketV2"}


def s3_problems(bucket: StackResource, resources: Sequence[StackResource]) -> Iterator[str]:
    """Yield what is wrong with a bucket, told from what is attached to it."""
    yield from _public(_of(bucket, resources, "PublicAccessBlock"))
    # S3 encrypts everything with its own keys since 2023: only what takes that away could be wrong, and nothing can.
    yield from _unversioned(_of(bucket, resources, "Versioning"))
    yield from _expiring(_of(bucket, resources, "LifecycleConfiguration"))


def _of(bucket: StackResource, resources: Sequence[StackResource], part: str) -> tuple[StackResource, ...]:
    kinds = [f"aws:s3/bucket{part}{version}:Bucket{part}{version}" for version in ("", "V2")]
    return attached_to(bucket, resources, kinds, "bucket", "bucket", "id")


def _public(blocks: Sequence[StackResource]) -> Iterator[str]:
    open_ways = [
        way for way in _BLOCKS if not any(at(block.props, way) in (True, UNKNOWN) for block in blocks)
    ]
    if open_ways:
        yield f"can be made public: no BucketPublicAccessBlock of it has {', '.join(open_ways)}. Set them to true."


def _unversioned(versionings: Sequence[StackResource]) -> Iterator[str]:
    states = [at(each.props, "versioningConfiguration", "status") for each in versionings]
    if not any(state in ("Enabled", UNKNOWN) for state in states):
        yield (
            "keeps no versions: a checkpoint that is overwritten in the moment of an eviction is lost. Give it a "
            "BucketVersioning with `status: Enabled`."
        )


def _expiring(lifecycles: Sequence[StackResource]) -> Iterator[str]:
    for lifecycle in lifecycles:
        rules = items_at(lifecycle.props, "rules")
        for rule in rules if is_list(rules) else ():
            if ends_current(rule):
                yield (
                    "deletes current checkpoints by their age: a job that has paused for so long starts from nothing. "
                    "Expire noncurrent versions instead (`noncurrentVersionExpiration`)."
                )


def ends_current(rule: Value) -> bool:
    """Whether a lifecycle rule that is in force deletes objects that no newer version has replaced."""
    expiration = at(rule, "expiration")
    ends = is_object(expiration) and any(expiration.get(way) not in (None, UNKNOWN, 0) for way in _ENDS)
    return ends and at(rule, "status") == "Enabled"
