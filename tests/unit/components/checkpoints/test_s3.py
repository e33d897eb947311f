"""Checkpoints in an S3 bucket, and access to them."""

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

from hypothesis import given
from hypothesis import strategies as st
from pulumi import Output

from holdfast.components.checkpoints.s3 import (
    CheckpointAccess,
    CheckpointAccessArgs,
    bucket_policy,
    prefix_access,
)
from tests.support.fakes.iam_evaluation import Request, is_allowed, is_denied


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
def test_each_namespace_has_its_own_prefix(preview: bool) -> None:
    addresses: list[str] = []

    def use(bucket: CheckpointBucket) -> None:
        store: CheckpointStore = bucket
        for namespace in ("vision", "tabular"):
            store.uri(namespace).apply(addresses.append)

    recorded(preview=preview, use=use)
    assert sorted(addresses) == [
        "s3://checkpoints-bucket-0a1b2c3/tabular",
        "s3://checkpoints-bucket-0a1b2c3/vision",
    ], "the bucket's generated name is known on preview"


def test_an_unknown_namespace_is_rejected() -> None:
    with pytest.raises(ValueError, match=r"'audio' is not one of the bucket's namespaces"):
        recorded(use=lambda bucket: bucket.uri("audio"))


def test_all_four_settings_block_public_access() -> None:
    block = recorded().one(":BucketPublicAccessBlock").inputs
    closed = {name for name, setting in block.items() if setting is True}
    assert closed == {"blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets"}, (
        "each of them blocks a different way"
    )


def test_requests_without_tls_are_denied() -> None:
    policy = obj(json.loads(text(recorded().one(":BucketPolicy"), "policy")))
    (statement,) = objects(policy, "Statement")
    arn = "arn:aws:s3:us-east-1:123456789012:checkpoints-bucket"
    assert (statement["Effect"], statement["Principal"], statement["Action"]) == ("Deny", "*", ["s3:*"]), (
        "for all principals and actions"
    )
    assert statement["Resource"] == [arn, f"{arn}/*"], "for the bucket and its objects"
    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}, "TLS is allowed"


def test_a_kms_key_is_used_through_bucket_keys_and_rotated() -> None:
    rule = encryption(args(kms=True))
    default = mapping(rule, "applyServerSideEncryptionByDefault")
    assert default["sseAlgorithm"] == "aws:kms", "with the stack's key"
    assert default["kmsMasterKeyId"] == "arn:aws:kms:us-east-1:123456789012:checkpoints-key", "this one"
    assert rule["bucketKeyEnabled"] is True, "otherwise each shard of a checkpoint is a KMS call"
    assert recorded().one(":Key").inputs["enableKeyRotation"] is True, "KMS does not rotate it by default"


def test_without_a_kms_key_the_bucket_is_encrypted_too() -> None:
    recording = recorded(args(kms=False))
    assert recording.of(":Key") == [], "no key is billed"
    assert mapping(encryption(args(kms=False)), "applyServerSideEncryptionByDefault") == {
        "sseAlgorithm": "AES256"
    }, "S3's own key"


@pytest.mark.parametrize("kms", [True, False])
def test_customer_provided_keys_are_disabled(kms: bool) -> None:
    assert encryption(args(kms=kms))["blockedEncryptionTypes"] == ["SSE-C"], (
        "other users could not read the checkpoint"
    )


def test_an_overwritten_checkpoint_can_be_restored() -> None:
    status = text(recorded().one(":BucketVersioning"), "versioningConfiguration", "status")
    assert status == "Enabled", "a job that is killed while it writes may leave a broken one"


@pytest.mark.parametrize("retain_days", [1, 30, 3650])
def test_the_lifecycle_deletes_old_versions_and_uploads_and_no_current_objects(retain_days: int) -> None:
    rule = lifecycle(retain_days)
    assert rule["noncurrentVersionExpiration"] == {"noncurrentDays": retain_days}, "after retain_days"
    assert value(rule, "abortIncompleteMultipartUpload", "daysAfterInitiation") == 7, (
        "parts of an interrupted upload are billed and invisible"
    )
    assert rule["expiration"] == {"expiredObjectDeleteMarker": True}, (
        "neither days nor a date: a current checkpoint never expires"
    )
    assert not {"transitions", "noncurrentVersionTransitions"} & rule.keys(), (
        "restoring a checkpoint from an archive takes hours"
    )
    assert (rule["status"], rule["filter"]) == ("Enabled", {}), "the rule is enabled for the whole bucket"


def test_the_lifecycle_depends_on_versioning() -> None:
    assert "checkpoints-versions" in recorded().one(":BucketLifecycleConfiguration").depends_on, (
        "S3 needs the versioning before the lifecycle"
    )


def test_the_bucket_policy_depends_on_the_public_access_block() -> None:
    assert "checkpoints-private" in recorded().one(":BucketPolicy").depends_on, (
        "S3 rejects concurrent changes of both"
    )


def test_a_protected_bucket_is_retained_with_its_settings() -> None:
    found = everything_of(recorded(args(protected=True)))
    assert len(found) == 7, "bucket, key, and five settings"
    for resource in found:
        assert resource.protect, f"{resource.name}: a plain `destroy` would delete it"
        assert resource.retain_on_delete, (
            f"{resource.name}: without it the retained bucket would be open or unreadable"
        )
    assert recorded(args(protected=True)).one(":Bucket").inputs["forceDestroy"] is False, (
        "its objects are not deleted with it"
    )


def test_an_unprotected_bucket_is_deleted_with_its_checkpoints() -> None:
    recording = recorded(args(protected=False))
    for resource in everything_of(recording):
        kept = resource.protect or resource.retain_on_delete
        assert not kept, f"{resource.name} would be left behind"
    assert recording.one(":Bucket").inputs["forceDestroy"] is True, "a bucket with objects cannot be deleted"
    assert recording.one(":Key").inputs["deletionWindowInDays"] == 7, "the shortest period that AWS allows"


@pytest.mark.parametrize("protected", [True, False])
def test_the_bucket_name_is_generated(protected: bool) -> None:
    asked = recorded(args(protected=protected)).one(":Bucket").inputs
    assert not {"bucket", "bucketPrefix"} & asked.keys(), "a fixed name could already be taken"


BUCKET = "arn:aws:s3:::checkpoints-bucket-0a1b2c3"
KEY = "arn:aws:kms:us-east-1:123456789012:key/1"


def recorded_access(
    *, cluster_name: str = "holdfast-dev", namespace: str = "vision", preview: bool = False
) -> Recording:
    def build() -> None:
        CheckpointAccess(
            "access",
            CheckpointAccessArgs(
                cluster_name=cluster_name,
                namespace=namespace,
                bucket_arn=Output.from_input(BUCKET),
                prefix=namespace,
                key_arn=Output.from_input(KEY),
            ),
        )

    return record(build, preview=preview)


@pytest.mark.parametrize("preview", [False, True])
def test_the_role_is_associated_with_the_trainers_of_the_namespace(preview: bool) -> None:
    association = recorded_access(preview=preview).one(":PodIdentityAssociation").inputs
    assert association["clusterName"] == "holdfast-dev", "in the stack's cluster"
    assert (association["namespace"], association["serviceAccount"]) == ("vision", "trainer"), (
        "the service account of training pods"
    )


def test_the_association_has_the_namespaces_own_role() -> None:
    recording = recorded_access()
    assert text(recording.one(":PodIdentityAssociation"), "roleArn").endswith(":access-role"), "no other role"


def test_the_association_depends_on_the_policy() -> None:
    assert "access-policy" in recorded_access().one(":PodIdentityAssociation").depends_on, (
        "a pod with the role but without its policy would be denied, and its job would count a failure"
    )


def test_only_pods_of_one_service_account_and_cluster_assume_the_role() -> None:
    trust = obj(json.loads(text(recorded_access().one(":Role"), "assumeRolePolicy")))
    (statement,) = objects(trust, "Statement")
    assert statement["Principal"] == {"Service": ["pods.eks.amazonaws.com"]}, "by Pod Identity only"
    assert statement["Action"] == ["sts:AssumeRole", "sts:TagSession"], "the agent tags each session"
    assert statement["Condition"] == {
        "StringEquals": {
            "aws:RequestTag/eks-cluster-name": "holdfast-dev",
            "aws:RequestTag/kubernetes-namespace": "vision",
            "aws:RequestTag/kubernetes-service-account": "trainer",
        }
    }, "another association with this role gives no access"


@pytest.mark.parametrize(
    ("cluster_name", "namespace"),
    [("holdfast-dev", "vision"), ("holdfast-" + "c" * 60, "n" * 63), ("holdfast-dev", "n" * 63)],
)
def test_the_role_name_fits_for_any_namespace_name(cluster_name: str, namespace: str) -> None:
    prefix = text(recorded_access(cluster_name=cluster_name, namespace=namespace).one(":Role"), "namePrefix")
    assert len(prefix) <= 38, "the provider appends 26 characters, and a role's name has 64"
    assert prefix.startswith("holdfast-"), "the name shows its cluster and namespace"


def test_the_role_allows_access_to_the_namespaces_prefix() -> None:
    policy = text(recorded_access().one(":RolePolicy"), "policy")
    expected = prefix_access(bucket_arn=BUCKET, prefix="vision", key_arn=KEY)
    assert policy == expected, "the document itself is tested below"


def test_the_role_description_contains_the_full_names() -> None:
    description = text(recorded_access(namespace="n" * 63).one(":Role"), "description")
    assert description == f"Checkpoints of {'n' * 63}/trainer in holdfast-dev", "in full"


OTHER_BUCKET = "arn:aws:s3:::payroll"
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
#: Actions that would delete an old version or the bucket, change its settings or give others access.
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
    """The permissions of a namespace's pods, with AWS's policy variables filled in."""
    document = prefix_access(bucket_arn=BUCKET, prefix=prefix, key_arn=key_arn)
    return document.replace("${aws:PrincipalAccount}", ACCOUNT)


def trainer_may(action: str, resource: str, *, prefix: str = "vision", **context: str) -> bool:
    """Whether the pods of a namespace may perform an action."""
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
def test_a_namespace_reads_and_writes_below_its_prefix(prefix: str, key: str) -> None:
    for action in TRAINING:
        assert trainer_may(action, f"{BUCKET}/{prefix}/{key}", prefix=prefix), f"training needs {action}"


@given(prefix=names, other=names, key=keys)
def test_a_namespace_cannot_access_another_prefix(prefix: str, other: str, key: str) -> None:
    if prefix == other:
        return
    for action in [*TRAINING, *DESTRUCTIVE]:
        assert not trainer_may(action, f"{BUCKET}/{other}/{key}", prefix=prefix), f"{action} reaches {other}"
    assert not trainer_may("s3:ListBucket", BUCKET, prefix=prefix, s3_prefix=f"{other}/{key}"), (
        "the names of other checkpoints are not visible either"
    )


@pytest.mark.parametrize("listed", ["vision/", "vision/run-7", "vision/run-7/step-100"])
def test_a_namespace_lists_its_prefix(listed: str) -> None:
    assert trainer_may("s3:ListBucket", BUCKET, s3_prefix=listed), "a job looks for its latest checkpoint"


@pytest.mark.parametrize("listed", ["", "v", "vision", "vision-2/", "tabular/"])
def test_a_namespace_lists_no_other_prefix(listed: str) -> None:
    assert not trainer_may("s3:ListBucket", BUCKET, s3_prefix=listed), (
        f"{listed!r} would also list other checkpoints"
    )


def test_listing_the_whole_bucket_is_denied() -> None:
    assert not trainer_may("s3:ListBucket", BUCKET), "a call without a prefix lists everything"


def test_keys_beside_the_prefix_are_denied() -> None:
    for key in ("vision", "visions/a", "other", ""):
        assert not trainer_may("s3:GetObject", f"{BUCKET}/{key}"), f"{key!r} is not under vision/"


@pytest.mark.parametrize("action", DESTRUCTIVE)
def test_a_namespace_cannot_remove_the_protection_of_its_checkpoints(action: str) -> None:
    for resource in (BUCKET, f"{BUCKET}/vision/step-1"):
        assert not trainer_may(action, resource), "every version survives a faulty trainer"


def test_no_other_bucket_is_accessible() -> None:
    for action in TRAINING:
        assert not trainer_may(action, f"{OTHER_BUCKET}/vision/a"), f"{action} is allowed for one bucket"
    assert not trainer_may("s3:ListBucket", OTHER_BUCKET, s3_prefix="vision/"), (
        "no other bucket can be listed"
    )
    assert not trainer_may("s3:ListAllMyBuckets", "*"), "nor their names"


def test_a_bucket_of_the_same_name_in_another_account_is_denied() -> None:
    for action in TRAINING:
        request = Request(
            action=action, resource=f"{BUCKET}/vision/a", context={"aws:ResourceAccount": "210987654321"}
        )
        assert not is_allowed([access()], request), (
            "the name of a deleted bucket can be taken by another account"
        )


@pytest.mark.parametrize("action", ["kms:Decrypt", "kms:GenerateDataKey"])
@pytest.mark.parametrize("what", [BUCKET, f"{BUCKET}/vision/step-1"])
def test_the_key_is_usable_for_the_namespaces_objects(action: str, what: str) -> None:
    assert may_use_key(action, KEY, {CONTEXT: what}), (
        "the context is the bucket with a bucket key, and the object without"
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
def test_the_key_is_usable_for_nothing_else(action: str, key: str, context: dict[str, str]) -> None:
    assert not may_use_key(action, key, context), "for this bucket only, through S3"


@pytest.mark.parametrize("action", ["kms:ScheduleKeyDeletion", "kms:DisableKey", "kms:PutKeyPolicy"])
def test_the_key_cannot_be_deleted_or_shared(action: str) -> None:
    assert not may_use_key(action, KEY, {CONTEXT: BUCKET}), "without it all checkpoints are lost"


def test_without_a_key_there_is_no_kms_statement() -> None:
    assert "kms" not in access(key_arn=None), "S3's own key needs no permission"


@pytest.mark.parametrize("action", ["s3:GetObject", "s3:PutObject", "s3:ListBucket", "s3:DeleteBucket"])
@pytest.mark.parametrize("resource", [BUCKET, f"{BUCKET}/vision/step-1"])
def test_the_bucket_policy_denies_requests_without_tls(action: str, resource: str) -> None:
    def denied(secure: str) -> bool:
        context = {"aws:SecureTransport": secure}
        return is_denied([bucket_policy(BUCKET)], Request(action=action, resource=resource, context=context))

    assert denied("false"), "checkpoints are not sent unencrypted"
    assert not denied("true"), "with TLS the caller's permissions decide"


def test_the_bucket_policy_allows_nothing() -> None:
    request = Request(
        action="s3:GetObject", resource=f"{BUCKET}/vision/a", context={"aws:SecureTransport": "true"}
    )
    assert not is_allowed([bucket_policy(BUCKET)], request), "only roles allow access"
