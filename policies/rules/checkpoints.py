"""Checkpoint storage is private and encrypted, keeps overwritten versions, and never expires current ones.

A bucket is taken to hold checkpoints if its name contains `checkpoint`, or if the setting `buckets` lists it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatch
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.program.resources import (
    StackResource,
    Value,
    amount,
    at,
    is_list,
    is_object,
    items_at,
    text_at,
)
from pulumi_holdfast.program.settings import Settings, names_setting
from rule import NAMES_SCHEMA, Finding, Group, Level, Rule, RuleSeverity, Setting

_BUCKETS: Final = "buckets"
_PROTECTED: Final = "protectedStacks"
_NAMES: Final = ("bucket", "name", "accountName")

_NO_VERSIONS: Final = "a checkpoint that is overwritten at the moment of an eviction is lost"
_EXPIRES: Final = (
    "deletes current checkpoints by their age: a job that is suspended for that long starts from scratch."
)

_S3_BLOCKS: Final = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
#: A lifecycle condition with one of these applies only to versions that a newer one has replaced.
_GCS_NONCURRENT: Final = ("daysSinceNoncurrentTime", "noncurrentTimeBefore", "numNewerVersions")
_GCS_BUCKET: Final = "gcp:storage/bucket:Bucket"
_AZURE_STORAGE: Final = "azure-native:storage"


def find(resources: Sequence[StackResource], settings: Settings) -> tuple[Finding, ...]:
    """Return what is wrong with the storage of checkpoints."""
    named, protected = names_setting(settings, _BUCKETS), names_setting(settings, _PROTECTED)
    found: list[Finding] = []
    for resource in resources:
        for kind, (is_kind, problems) in _KINDS.items():
            if is_kind(resource.type) and _holds_checkpoints(resource, named):
                found.extend(
                    Finding(
                        urn=resource.urn,
                        message=f"{kind} {resource.logical_name!r}, which holds checkpoints, {problem}",
                    )
                    for problem in (*problems(resource, resources), *_unprotected(resource, protected))
                )
    return tuple(found)


def _holds_checkpoints(resource: StackResource, named: frozenset[str]) -> bool:
    known = {resource.logical_name, *(text_at(resource.props, key) for key in _NAMES)}
    texts = {each for each in known if isinstance(each, str)}
    return bool(texts & named) or any("checkpoint" in each.lower() for each in texts)


def _unprotected(resource: StackResource, protected: frozenset[str]) -> Iterator[str]:
    if not resource.is_protected and any(fnmatch(resource.stack, each) for each in protected):
        yield "can be deleted with its stack, which must be protected. Set the resource option `protect`."


def _attached_to(
    owner: StackResource, resources: Sequence[StackResource], types: Sequence[str], key: str, *identities: str
) -> tuple[StackResource, ...]:
    """Return the resources of these types whose property `key` refers to the owner, or names one of its identities.

    On preview the name may not be known yet, but the reference is.
    """
    known = {text_at(owner.props, identity) for identity in identities} - {None, UNKNOWN}
    return tuple(
        each
        for each in resources
        if each.type in types
        and (owner.urn in each.refers_to.get(key, ()) or text_at(each.props, key) in known)
    )


def _is_s3_bucket(type_token: str) -> bool:
    return type_token in {"aws:s3/bucket:Bucket", "aws:s3/bucketV2:BucketV2"}


def _s3_problems(bucket: StackResource, resources: Sequence[StackResource]) -> Iterator[str]:
    """Yield what is wrong with a bucket of S3, which encrypts every object since 2023."""
    blocks = _of_bucket(bucket, resources, "PublicAccessBlock")
    not_blocked = [
        field
        for field in _S3_BLOCKS
        if not any(at(block.props, field) in (True, UNKNOWN) for block in blocks)
    ]
    if not_blocked:
        yield (
            f"can be made public: no BucketPublicAccessBlock of it has {', '.join(not_blocked)}. Set them to true."
        )
    versionings = _of_bucket(bucket, resources, "Versioning")
    states = [at(each.props, "versioningConfiguration", "status") for each in versionings]
    if not any(state in ("Enabled", UNKNOWN) for state in states):
        yield f"keeps no versions: {_NO_VERSIONS}. Add a BucketVersioning with `status: Enabled`."
    for lifecycle in _of_bucket(bucket, resources, "LifecycleConfiguration"):
        rules = items_at(lifecycle.props, "rules")
        for rule in rules if is_list(rules) else ():
            if _s3_expires_current(rule):
                yield f"{_EXPIRES} Expire noncurrent versions instead (`noncurrentVersionExpiration`)."


def _of_bucket(
    bucket: StackResource, resources: Sequence[StackResource], part: str
) -> tuple[StackResource, ...]:
    types = [f"aws:s3/bucket{part}{version}:Bucket{part}{version}" for version in ("", "V2")]
    return _attached_to(bucket, resources, types, "bucket", "bucket", "id")


def _s3_expires_current(rule: Value) -> bool:
    """Return whether an enabled lifecycle rule deletes objects that no newer version has replaced."""
    expiration = at(rule, "expiration")
    expires = is_object(expiration) and any(
        expiration.get(field) not in (None, UNKNOWN, 0) for field in ("days", "date")
    )
    return expires and at(rule, "status") == "Enabled"


def _is_gcs_bucket(type_token: str) -> bool:
    return type_token == _GCS_BUCKET


def _gcs_problems(bucket: StackResource, _: Sequence[StackResource]) -> Iterator[str]:
    """Yield what is wrong with a bucket of Cloud Storage, which encrypts every object."""
    if at(bucket.props, "publicAccessPrevention") not in ("enforced", UNKNOWN):
        yield "can be made public. Set `publicAccessPrevention: enforced`."
    if at(bucket.props, "uniformBucketLevelAccess") not in (True, UNKNOWN):
        yield "accepts access lists of single objects, which no review covers. Set `uniformBucketLevelAccess: true`."
    if not _gcs_keeps_versions(bucket):
        yield (
            f"keeps neither versions nor deleted objects: {_NO_VERSIONS}. Set `versioning.enabled: true`, or a "
            "`softDeletePolicy`."
        )
    rules = items_at(bucket.props, "lifecycleRules")
    if is_list(rules) and any(_gcs_expires_current(rule) for rule in rules):
        yield f"{_EXPIRES} Add `daysSinceNoncurrentTime`, or `withState: ARCHIVED`, to the rule."


def _gcs_keeps_versions(bucket: StackResource) -> bool:
    versions = at(bucket.props, "versioning", "enabled")
    policy = at(bucket.props, "softDeletePolicy")
    retention = amount(at(policy, "retentionDurationSeconds"))
    # Without a policy, deleted objects can be restored for a week.
    return (
        versions in (True, UNKNOWN) or policy is None or retention is UNKNOWN or retention not in (None, 0.0)
    )


def _gcs_expires_current(rule: Value) -> bool:
    """Return whether a lifecycle rule deletes objects that no newer version has replaced."""
    condition = at(rule, "condition")
    if at(rule, "action", "type") != "Delete" or not is_object(condition):
        return False
    noncurrent = any(condition.get(key) not in (None, 0) for key in _GCS_NONCURRENT)
    return not noncurrent and condition.get("withState") not in ("ARCHIVED", UNKNOWN)


def _is_storage_account(type_token: str) -> bool:
    return type_token.startswith(_AZURE_STORAGE) and type_token.endswith(":StorageAccount")


def _blob_problems(account: StackResource, resources: Sequence[StackResource]) -> Iterator[str]:
    """Yield what is wrong with a storage account of Azure."""
    if at(account.props, "allowBlobPublicAccess") not in (False, UNKNOWN):
        yield "can be made public. Set `allowBlobPublicAccess: false`."
    if at(account.props, "allowSharedKeyAccess") not in (False, UNKNOWN):
        yield (
            "accepts shared keys, which grant access to the checkpoints of every namespace. Set "
            "`allowSharedKeyAccess: false`."
        )
    if at(account.props, "minimumTlsVersion") not in ("TLS1_2", "TLS1_3", UNKNOWN):
        yield "accepts TLS older than 1.2. Set `minimumTlsVersion: TLS1_2`."
    services = _of_account(account, resources, "BlobServiceProperties")
    if not any(at(each.props, "isVersioningEnabled") in (True, UNKNOWN) for each in services):
        yield f"keeps no versions: {_NO_VERSIONS}. Add BlobServiceProperties with `isVersioningEnabled: true`."
    for policy in _of_account(account, resources, "ManagementPolicy"):
        rules = items_at(policy.props, "policy", "rules")
        if is_list(rules) and any(_blob_expires_current(rule) for rule in rules):
            yield (
                f"{_EXPIRES} Set `actions.version.delete` in the rule instead of `actions.baseBlob.delete`."
            )


def _of_account(
    account: StackResource, resources: Sequence[StackResource], kind: str
) -> tuple[StackResource, ...]:
    types = [
        each.type
        for each in resources
        if each.type.startswith(_AZURE_STORAGE) and each.type.endswith(f":{kind}")
    ]
    return _attached_to(account, resources, types, "accountName", "accountName", "name")


def _blob_expires_current(rule: Value) -> bool:
    """Return whether an enabled rule deletes blobs that are not previous versions."""
    return (
        is_object(at(rule, "definition", "actions", "baseBlob", "delete"))
        and at(rule, "enabled") is not False
    )


_KINDS: Final[Mapping[str, tuple[Callable[[str], bool], Callable[..., Iterator[str]]]]] = {
    "S3 bucket": (_is_s3_bucket, _s3_problems),
    "GCS bucket": (_is_gcs_bucket, _gcs_problems),
    "storage account": (_is_storage_account, _blob_problems),
}

RULE: Final = Rule(
    name="checkpoint-storage-protected",
    title="Checkpoint storage is private, versioned and protected",
    description="Checkpoint storage is private and encrypted, keeps overwritten versions, never expires current ones, and "
    "cannot be deleted in protected stacks.",
    fix="Make the change that the message names.",
    group=Group.PLATFORM,
    level=Level.ADVISORY,
    strict=Level.MANDATORY,
    severity=RuleSeverity.CRITICAL,
    find=find,
    settings={
        _BUCKETS: Setting(
            schema={
                **NAMES_SCHEMA,
                "description": "Buckets and storage accounts that hold checkpoints but have no `checkpoint` in their names.",
            },
            default=[],
        ),
        _PROTECTED: Setting(
            schema={
                **NAMES_SCHEMA,
                "description": "Name patterns of stacks whose checkpoint storage must be protected.",
            },
            default=["prod", "*-prod", "production", "*-production"],
        ),
    },
)
