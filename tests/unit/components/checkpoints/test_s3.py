"""Checkpoints in an S3 bucket."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from holdfast.components.checkpoints.s3 import CheckpointBucket, CheckpointBucketArgs
from tests.support.fakes.pulumi_engine import Recorded, Recording, record
from tests.support.inputs import mapping, objects, text, value
from tests.support.json_objects import obj

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.components.contracts import CheckpointStore
    from holdfast.scheduling.json import Json


def args(*, retain_days: int = 30, kms: bool = True, protected: bool = False) -> CheckpointBucketArgs:
    return CheckpointBucketArgs(
        namespaces=["vision", "tabular"], retain_days=retain_days, kms=kms, protected=protected
    )


def recorded(
    given: CheckpointBucketArgs | None = None,
    *,
    preview: bool = False,
    use: Callable[[CheckpointBucket], object] = lambda _: None,
) -> Recording:
    return record(lambda: use(CheckpointBucket("checkpoints", given or args())), preview=preview)


def encryption(given: CheckpointBucketArgs) -> Json:
    (rule,) = objects(recorded(given).one(":BucketServerSideEncryptionConfiguration"), "rules")
    return rule


def lifecycle(retain_days: int = 30) -> Json:
    (rule,) = objects(recorded(args(retain_days=retain_days)).one(":BucketLifecycleConfiguration"), "rules")
    return rule


def everything_of(recording: Recording) -> list[Recorded]:
    return [resource for resource in recording if resource.custom]


@pytest.mark.parametrize("preview", [False, True])
def test_each_namespace_has_a_prefix_of_its_own(preview: bool) -> None:
    addresses: list[str] = []

    def use(bucket: CheckpointBucket) -> None:
        store: CheckpointStore = bucket
        for namespace in ("vision", "tabular"):
            store.uri(namespace).apply(addresses.append)

    recorded(preview=preview, use=use)
    assert sorted(addresses) == [
        "s3://checkpoints-bucket-0a1b2c3/tabular",
        "s3://checkpoints-bucket-0a1b2c3/vision",
    ], "a preview knows the addresses too: the bucket's name is made up before it"


def test_a_namespace_that_the_bucket_was_not_told_of_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'audio' is not one of the bucket's namespaces"):
        recorded(use=lambda bucket: bucket.uri("audio"))


def test_the_public_is_kept_out_by_all_four_means() -> None:
    block = recorded().one(":BucketPublicAccessBlock").inputs
    closed = {name for name, setting in block.items() if setting is True}
    assert closed == {"blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets"}, (
        "each closes a way that the others leave open"
    )


def test_plain_text_is_refused_for_the_bucket_and_all_in_it() -> None:
    policy = obj(json.loads(text(recorded().one(":BucketPolicy"), "policy")))
    (statement,) = objects(policy, "Statement")
    arn = "arn:aws:s3:us-east-1:123456789012:checkpoints-bucket"
    assert (statement["Effect"], statement["Principal"], statement["Action"]) == ("Deny", "*", ["s3:*"]), (
        "whoever it is and whatever it is that they ask"
    )
    assert statement["Resource"] == [arn, f"{arn}/*"], "the bucket is one thing, its objects are another"
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}, "TLS passes"


def test_a_key_of_its_own_is_used_through_bucket_keys_and_turned_over() -> None:
    rule = encryption(args(kms=True))
    default = mapping(rule, "applyServerSideEncryptionByDefault")
    assert default["sseAlgorithm"] == "aws:kms", "with a key of the stack's own"
    assert default["kmsMasterKeyId"] == "arn:aws:kms:us-east-1:123456789012:checkpoints-key", (
        "namely this one"
    )
    assert rule["bucketKeyEnabled"] is True, "else each shard of a checkpoint is a call to KMS"
    assert recorded().one(":Key").inputs["enableKeyRotation"] is True, (
        "a key that never changes leaks for ever"
    )


def test_without_a_key_of_its_own_it_is_encrypted_all_the_same() -> None:
    recording = recorded(args(kms=False))
    assert recording.of(":Key") == [], "no key is paid for"
    assert mapping(encryption(args(kms=False)), "applyServerSideEncryptionByDefault") == {
        "sseAlgorithm": "AES256"
    }, "S3's own key"


@pytest.mark.parametrize("kms", [True, False])
def test_nobody_leaves_a_checkpoint_that_only_their_own_key_opens(kms: bool) -> None:
    assert encryption(args(kms=kms))["blockedEncryptionTypes"] == ["SSE-C"], (
        "nobody else could resume from it"
    )


def test_an_overwritten_checkpoint_can_be_had_back() -> None:
    status = text(recorded().one(":BucketVersioning"), "versioningConfiguration", "status")
    assert status == "Enabled", "a job that is killed while it writes may leave a broken one"


@pytest.mark.parametrize("retain_days", [1, 30, 3650])
def test_old_versions_and_unfinished_uploads_end_and_current_objects_never_do(retain_days: int) -> None:
    rule = lifecycle(retain_days)
    assert rule["noncurrentVersionExpiration"] == {"noncurrentDays": retain_days}, "as long as was asked for"
    assert value(rule, "abortIncompleteMultipartUpload", "daysAfterInitiation") == 7, (
        "parts of an upload that was cut off are paid for and seen by nobody"
    )
    assert rule["expiration"] == {"expiredObjectDeleteMarker": True}, (
        "neither days nor a date: a current checkpoint never expires"
    )
    assert not {"transitions", "noncurrentVersionTransitions"} & rule.keys(), (
        "a checkpoint in an archive is hours away when a job wants to resume"
    )
    assert (rule["status"], rule["filter"]) == ("Enabled", {}), "the rule is on, and for all of the bucket"


def test_versions_expire_only_once_there_are_versions() -> None:
    assert "checkpoints-versions" in recorded().one(":BucketLifecycleConfiguration").depends_on, (
        "S3 settles a bucket's versioning before its lifecycle"
    )


def test_the_buckets_settings_do_not_come_at_once_where_s3_refuses_that() -> None:
    assert "checkpoints-private" in recorded().one(":BucketPolicy").depends_on, (
        "S3 refuses a policy while the public is being shut out: a conflicting operation is in progress"
    )


def test_a_protected_bucket_outlives_its_stack_with_all_that_guards_it() -> None:
    found = everything_of(recorded(args(protected=True)))
    assert len(found) == 7, "bucket, key, and five settings"
    for resource in found:
        assert resource.protect, f"{resource.name} is deleted by a mere `destroy`"
        assert resource.retain_on_delete, (
            f"{resource.name} goes with the stack: the bucket left behind would be open, or its objects unreadable"
        )
    assert recorded(args(protected=True)).one(":Bucket").inputs["forceDestroy"] is False, (
        "checkpoints are not deleted with the bucket"
    )


def test_a_bucket_for_development_goes_with_its_stack_checkpoints_and_all() -> None:
    recording = recorded(args(protected=False))
    for resource in everything_of(recording):
        kept = resource.protect or resource.retain_on_delete
        assert not kept, f"{resource.name} is left behind"
    assert recording.one(":Bucket").inputs["forceDestroy"] is True, "a bucket with objects cannot be deleted"
    assert recording.one(":Key").inputs["deletionWindowInDays"] == 7, "the shortest that AWS allows"


@pytest.mark.parametrize("protected", [True, False])
def test_a_new_stack_never_meets_the_bucket_that_an_old_one_left(protected: bool) -> None:
    asked = recorded(args(protected=protected)).one(":Bucket").inputs
    assert not {"bucket", "bucketPrefix"} & asked.keys(), "a fixed name would be taken"
