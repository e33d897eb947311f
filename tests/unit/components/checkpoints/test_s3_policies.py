"""What the documents about a bucket of checkpoints allow, and what they deny."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.components.checkpoints.s3 import bucket_policy, prefix_access
from tests.support.iam_evaluation import Request, is_allowed, is_denied

BUCKET = "arn:aws:s3:::checkpoints-bucket-0a1b2c3"
OTHER_BUCKET = "arn:aws:s3:::payroll"
KEY = "arn:aws:kms:us-east-1:123456789012:key/1"
OTHER_KEY = "arn:aws:kms:us-east-1:123456789012:key/2"
ACCOUNT = "123456789012"
CONTEXT = "kms:EncryptionContext:aws:s3:arn"

TRAINING = [
    "s3:GetObject",
    "s3:PutObject",
    "s3:DeleteObject",
    "s3:AbortMultipartUpload",
    "s3:ListMultipartUploadParts",
]
#: What would end an old version, the bucket, or what guards it, or let others in.
DESTRUCTIVE = [
    "s3:DeleteObjectVersion",
    "s3:DeleteBucket",
    "s3:PutBucketPolicy",
    "s3:DeleteBucketPolicy",
    "s3:PutBucketVersioning",
    "s3:PutLifecycleConfiguration",
    "s3:PutEncryptionConfiguration",
    "s3:PutBucketPublicAccessBlock",
    "s3:PutObjectAcl",
    "s3:BypassGovernanceRetention",
]

names = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,10}[a-z0-9])?", fullmatch=True)
keys = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=20)


def access(prefix: str = "vision", key_arn: str | None = KEY) -> str:
    """What a namespace's pods are given, with the variables filled in as AWS does when they ask."""
    document = prefix_access(bucket_arn=BUCKET, prefix=prefix, key_arn=key_arn)
    return document.replace("${aws:PrincipalAccount}", ACCOUNT)


def trainer_may(action: str, resource: str, *, prefix: str = "vision", **context: str) -> bool:
    """Whether the pods of a namespace may."""
    conditions = {
        "aws:ResourceAccount": ACCOUNT,
        **{key.replace("_", ":"): one for key, one in context.items()},
    }
    return is_allowed([access(prefix)], Request(action=action, resource=resource, context=conditions))


def may_use_key(action: str, key: str, context: dict[str, str]) -> bool:
    """Whether the pods of `vision` may use a key in an encryption context."""
    request = Request(action=action, resource=key, context=context)
    return is_allowed([access()], request)


@given(prefix=names, key=keys)
def test_a_namespace_reads_and_writes_all_that_is_under_its_prefix(prefix: str, key: str) -> None:
    for action in TRAINING:
        assert trainer_may(action, f"{BUCKET}/{prefix}/{key}", prefix=prefix), f"{action} is part of training"


@given(prefix=names, other=names, key=keys)
def test_a_namespace_reaches_no_other_prefix(prefix: str, other: str, key: str) -> None:
    if prefix == other:
        return
    for action in [*TRAINING, *DESTRUCTIVE]:
        assert not trainer_may(action, f"{BUCKET}/{other}/{key}", prefix=prefix), f"{action} reaches {other}"
    assert not trainer_may("s3:ListBucket", BUCKET, prefix=prefix, s3_prefix=f"{other}/{key}"), (
        "the names of other namespaces' checkpoints are theirs too"
    )


@pytest.mark.parametrize("listed", ["vision/", "vision/run-7", "vision/run-7/step-100"])
def test_a_namespace_lists_what_is_under_its_prefix(listed: str) -> None:
    assert trainer_may("s3:ListBucket", BUCKET, s3_prefix=listed), "a job looks for its latest checkpoint"


@pytest.mark.parametrize("listed", ["", "v", "vision", "vision-2/", "tabular/"])
def test_a_namespace_lists_nothing_else(listed: str) -> None:
    assert not trainer_may("s3:ListBucket", BUCKET, s3_prefix=listed), (
        f"{listed!r} would also list the checkpoints of others"
    )


def test_a_listing_of_the_whole_bucket_is_refused() -> None:
    assert not trainer_may("s3:ListBucket", BUCKET), "a call that names no prefix lists all of them"


def test_what_lies_beside_the_prefix_is_out_of_reach() -> None:
    for key in ("vision", "visions/a", "other", ""):
        assert not trainer_may("s3:GetObject", f"{BUCKET}/{key}"), f"{key!r} is not under vision/"


@pytest.mark.parametrize("action", DESTRUCTIVE)
def test_a_namespace_cannot_end_what_protects_its_checkpoints(action: str) -> None:
    for resource in (BUCKET, f"{BUCKET}/vision/step-1"):
        assert not trainer_may(action, resource), "a trainer that runs amok leaves every version behind"


def test_no_other_bucket_is_reached() -> None:
    for action in TRAINING:
        assert not trainer_may(action, f"{OTHER_BUCKET}/vision/a"), f"{action} is for one bucket"
    assert not trainer_may("s3:ListBucket", OTHER_BUCKET, s3_prefix="vision/"), "nor is any other listed"
    assert not trainer_may("s3:ListAllMyBuckets", "*"), "nor even named"


def test_a_bucket_of_that_name_in_another_account_is_sent_nothing() -> None:
    for action in TRAINING:
        request = Request(
            action=action, resource=f"{BUCKET}/vision/a", context={"aws:ResourceAccount": "210987654321"}
        )
        assert not is_allowed([access()], request), (
            "a name is free once its bucket is gone: it may be theirs now"
        )


@pytest.mark.parametrize("action", ["kms:Decrypt", "kms:GenerateDataKey"])
@pytest.mark.parametrize("what", [BUCKET, f"{BUCKET}/vision/step-1"])
def test_the_key_is_used_for_the_namespaces_own_objects(action: str, what: str) -> None:
    assert may_use_key(action, KEY, {CONTEXT: what}), (
        "S3 names the bucket with a bucket key, the object without"
    )


@pytest.mark.parametrize("action", ["kms:Decrypt", "kms:GenerateDataKey"])
@pytest.mark.parametrize(
    ("key", "context"),
    [
        (KEY, {}),
        (KEY, {CONTEXT: OTHER_BUCKET}),
        (KEY, {CONTEXT: f"{BUCKET}/tabular/step-1"}),
        (OTHER_KEY, {CONTEXT: BUCKET}),
    ],
)
def test_the_key_is_used_for_nothing_else(action: str, key: str, context: dict[str, str]) -> None:
    assert not may_use_key(action, key, context), "the key opens this bucket, through S3"


@pytest.mark.parametrize("action", ["kms:ScheduleKeyDeletion", "kms:DisableKey", "kms:PutKeyPolicy"])
def test_the_key_cannot_be_ended_or_given_away(action: str) -> None:
    assert not may_use_key(action, KEY, {CONTEXT: BUCKET}), "without it every checkpoint is lost"


def test_without_a_key_none_is_spoken_of() -> None:
    assert "kms" not in access(key_arn=None), "S3's own key needs no permission"


@pytest.mark.parametrize("action", ["s3:GetObject", "s3:PutObject", "s3:ListBucket", "s3:DeleteBucket"])
@pytest.mark.parametrize("resource", [BUCKET, f"{BUCKET}/vision/step-1"])
def test_the_bucket_answers_nobody_in_plain_text(action: str, resource: str) -> None:
    def denied(secure: str) -> bool:
        context = {"aws:SecureTransport": secure}
        return is_denied([bucket_policy(BUCKET)], Request(action=action, resource=resource, context=context))

    assert denied("false"), "a checkpoint would be read on its way"
    assert not denied("true"), "over TLS the caller's own rights decide"


def test_the_buckets_policy_lets_nobody_in() -> None:
    request = Request(
        action="s3:GetObject", resource=f"{BUCKET}/vision/a", context={"aws:SecureTransport": "true"}
    )
    assert not is_allowed([bucket_policy(BUCKET)], request), "rights come from roles alone"
