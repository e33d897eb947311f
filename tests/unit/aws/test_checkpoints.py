"""Checkpoints in an S3 bucket, and access to them."""

import json
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pulumi import Output

from pulumi_holdfast.aws.checkpoints import CheckpointBucket, CheckpointBucketArgs, bucket_access
from pulumi_holdfast.aws.identities import CheckpointAccess, CheckpointAccessArgs
from tests.support.fakes.iam_evaluation import Request, is_allowed
from tests.support.fakes.pulumi_engine import Recording, record
from tests.support.inputs import mapping, objects, text, value
from tests.support.json_objects import obj


def recorded(*, retain_days: int = 30, kms: bool = True) -> Recording:
    args = CheckpointBucketArgs(namespaces=["vision"], retain_days=retain_days, kms=kms, protected=False)
    return record(lambda: CheckpointBucket("checkpoints", args))


def test_public_access_and_requests_without_tls_are_denied() -> None:
    recording = recorded()
    block = recording.one(":BucketPublicAccessBlock").inputs
    closed = {name for name, setting in block.items() if setting is True}
    assert closed == {"blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets"}
    policy = recording.one(":BucketPolicy")
    assert "checkpoints-vision-private" in policy.depends_on
    (statement,) = objects(obj(json.loads(text(policy, "policy"))), "Statement")
    arn = "arn:aws:s3:us-east-1:123456789012:checkpoints-vision-bucket"
    assert statement["Effect"] == "Deny"
    assert (statement["Principal"], statement["Action"]) == ("*", ["s3:*"])
    assert statement["Resource"] == [arn, f"{arn}/*"]
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


@pytest.mark.parametrize("kms", [True, False])
def test_objects_are_encrypted_with_a_kms_key_or_s3s_own(kms: bool) -> None:
    recording = recorded(kms=kms)
    (rule,) = objects(recording.one(":BucketServerSideEncryptionConfiguration"), "rules")
    assert rule["blockedEncryptionTypes"] == ["SSE-C"], "other users could not read the checkpoint"
    default = mapping(rule, "applyServerSideEncryptionByDefault")
    if not kms:
        assert recording.of(":Key") == []
        assert default == {"sseAlgorithm": "AES256"}
        return
    assert default["sseAlgorithm"] == "aws:kms"
    assert default["kmsMasterKeyId"] == "arn:aws:kms:us-east-1:123456789012:checkpoints-key"
    assert rule["bucketKeyEnabled"] is True, "otherwise each shard of a checkpoint is a KMS call"
    key = recording.one(":Key").inputs
    assert key["enableKeyRotation"] is True, "KMS does not rotate it by default"
    assert key["deletionWindowInDays"] == 7


@pytest.mark.parametrize("retain_days", [1, 3650])
def test_old_versions_are_kept_for_retain_days_and_current_objects_forever(retain_days: int) -> None:
    recording = recorded(retain_days=retain_days)
    status = text(recording.one(":BucketVersioning"), "versioningConfiguration", "status")
    assert status == "Enabled"
    lifecycle = recording.one(":BucketLifecycleConfiguration")
    assert "checkpoints-vision-versions" in lifecycle.depends_on
    (rule,) = objects(lifecycle, "rules")
    assert rule["noncurrentVersionExpiration"] == {"noncurrentDays": retain_days}
    assert value(rule, "abortIncompleteMultipartUpload", "daysAfterInitiation") == 7
    assert rule["expiration"] == {"expiredObjectDeleteMarker": True}
    assert not {"transitions", "noncurrentVersionTransitions"} & rule.keys()
    assert (rule["status"], rule["filter"]) == ("Enabled", {})


BUCKET: Final = "arn:aws:s3:::checkpoints-bucket-0a1b2c3"
KEY: Final = "arn:aws:kms:us-east-1:123456789012:key/1"


def recorded_access(
    *, cluster_name: str = "holdfast-dev", namespace: str = "vision", preview: bool = False
) -> Recording:
    def build() -> None:
        args = CheckpointAccessArgs(
            cluster_name=cluster_name,
            namespace=namespace,
            bucket_arn=Output.from_input(BUCKET),
            key_arn=Output.from_input(KEY),
        )
        CheckpointAccess("access", args)

    return record(build, preview=preview)


@pytest.mark.parametrize("preview", [False, True])
def test_the_namespaces_own_role_is_associated_with_its_trainers(preview: bool) -> None:
    association = recorded_access(preview=preview).one(":PodIdentityAssociation")
    assert association.inputs["clusterName"] == "holdfast-dev"
    assert (association.inputs["namespace"], association.inputs["serviceAccount"]) == ("vision", "trainer")
    if not preview:
        assert text(association, "roleArn").endswith(":access-role")
    assert "access-policy" in association.depends_on


def test_only_pods_of_one_service_account_and_cluster_assume_the_role() -> None:
    recording = recorded_access()
    (statement,) = objects(obj(json.loads(text(recording.one(":Role"), "assumeRolePolicy"))), "Statement")
    assert statement["Principal"] == {"Service": ["pods.eks.amazonaws.com"]}
    assert statement["Action"] == ["sts:AssumeRole", "sts:TagSession"]
    assert value(statement, "Condition", "StringEquals") == {
        "aws:RequestTag/eks-cluster-name": "holdfast-dev",
        "aws:RequestTag/kubernetes-namespace": "vision",
        "aws:RequestTag/kubernetes-service-account": "trainer",
    }
    assert text(recording.one(":RolePolicy"), "policy") == bucket_access(bucket_arn=BUCKET, key_arn=KEY)


@pytest.mark.parametrize(
    ("cluster_name", "namespace"),
    [("holdfast-dev", "vision"), ("holdfast-" + "c" * 60, "n" * 63), ("holdfast-dev", "n" * 63)],
)
def test_the_role_name_fits_for_any_namespace_name(cluster_name: str, namespace: str) -> None:
    role = recorded_access(cluster_name=cluster_name, namespace=namespace).one(":Role")
    prefix = text(role, "namePrefix")
    assert len(prefix) <= 38
    assert prefix.startswith("holdfast-")
    expected = f"Checkpoints of {namespace}/trainer in {cluster_name}"
    assert text(role, "description") == expected


ACCOUNT: Final = "123456789012"
CONTEXT: Final = "kms:EncryptionContext:aws:s3:arn"
OBJECT: Final = f"{BUCKET}/vision/step-1"
TRAINING: Final = [
    f"s3:{name}"
    for name in ("GetObject", "PutObject", "DeleteObject", "AbortMultipartUpload", "ListMultipartUploadParts")
]
#: Actions that would delete an old version or the bucket, change its settings or give others access.
DESTRUCTIVE: Final = [
    *("s3:DeleteObjectVersion", "s3:DeleteBucket", "s3:PutBucketPolicy", "s3:DeleteBucketPolicy"),
    *("s3:PutBucketVersioning", "s3:PutLifecycleConfiguration", "s3:PutEncryptionConfiguration"),
    *("s3:PutBucketPublicAccessBlock", "s3:PutObjectAcl", "s3:BypassGovernanceRetention"),
]

names = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,10}[a-z0-9])?", fullmatch=True)
keys = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), max_size=20)


def access(key_arn: str | None = KEY) -> str:
    """The permissions of a namespace's pods, with AWS's policy variables filled in."""
    document = bucket_access(bucket_arn=BUCKET, key_arn=key_arn)
    return document.replace("${aws:PrincipalAccount}", ACCOUNT)


def trainer_may(action: str, resource: str, *, account: str = ACCOUNT, **context: str) -> bool:
    conditions = {"aws:ResourceAccount": account, **{key.replace("_", ":"): context[key] for key in context}}
    return is_allowed([access()], Request(action=action, resource=resource, context=conditions))


@given(other=names, key=keys)
def test_a_namespace_reads_and_writes_in_its_bucket_only(other: str, key: str) -> None:
    for action in TRAINING:
        assert trainer_may(action, f"{BUCKET}/{key}"), f"training needs {action}"
    for action in [*TRAINING, *DESTRUCTIVE]:
        assert not trainer_may(action, f"{BUCKET}-{other}/{key}"), f"{action} reaches {other}"
    assert not trainer_may("s3:ListBucket", f"{BUCKET}-{other}")


def test_requests_without_a_prefix_are_allowed_so_that_a_missing_object_is_no_error() -> None:
    assert trainer_may("s3:ListBucket", BUCKET), "HeadBucket, and what decides between 404 and 403"
    assert trainer_may("s3:ListBucket", BUCKET, s3_prefix="vision/run-7/")


def test_a_namespace_accesses_no_other_bucket_and_keeps_its_protection() -> None:
    for action in TRAINING:
        assert not trainer_may(action, "arn:aws:s3:::payroll/vision/a"), f"{action} is allowed for one bucket"
        assert not trainer_may(action, OBJECT, account="210987654321")
    assert not trainer_may("s3:ListBucket", "arn:aws:s3:::payroll", s3_prefix="vision/")
    assert not trainer_may("s3:ListAllMyBuckets", "*")
    for action in DESTRUCTIVE:
        for resource in (BUCKET, OBJECT):
            assert not trainer_may(action, resource), f"{action}: every version survives a faulty trainer"


@pytest.mark.parametrize("action", ["kms:Decrypt", "kms:GenerateDataKey"])
def test_the_key_is_usable_for_the_buckets_objects_only(action: str) -> None:
    def may(action: str, key: str, context: dict[str, str]) -> bool:
        return is_allowed([access()], Request(action=action, resource=key, context=context))

    for what in (BUCKET, OBJECT):
        assert may(action, KEY, {CONTEXT: what})
    for context in ({}, {CONTEXT: "arn:aws:s3:::payroll"}, {CONTEXT: f"{BUCKET}-2/step-1"}):
        assert not may(action, KEY, context)
    assert not may(action, KEY.replace("key/1", "key/2"), {CONTEXT: BUCKET})
    for destructive in ("kms:ScheduleKeyDeletion", "kms:DisableKey", "kms:PutKeyPolicy"):
        assert not may(destructive, KEY, {CONTEXT: BUCKET})
    assert "kms" not in access(key_arn=None)
