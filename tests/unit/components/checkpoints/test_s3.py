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

from hypothesis import given
from hypothesis import strategies as st
from pulumi import Output

from holdfast.components.checkpoints.s3 import (
    CheckpointAccess,
    CheckpointAccessArgs,
    bucket_policy,
    prefix_access,
)
from tests.support.iam_evaluation import Request, is_allowed, is_denied


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
def test_the_role_is_given_to_the_trainers_of_the_namespace(preview: bool) -> None:
    association = recorded_access(preview=preview).one(":PodIdentityAssociation").inputs
    assert association["clusterName"] == "holdfast-dev", "in the stack's cluster"
    assert (association["namespace"], association["serviceAccount"]) == ("vision", "trainer"), (
        "the service account that training pods name"
    )


def test_the_association_gives_the_namespaces_own_role() -> None:
    recording = recorded_access()
    assert text(recording.one(":PodIdentityAssociation"), "roleArn").endswith(":access-role"), "no other role"


def test_no_pod_gets_the_role_before_it_may_do_anything() -> None:
    assert "access-policy" in recorded_access().one(":PodIdentityAssociation").depends_on, (
        "a pod that came between would be refused, and its job would count that as a failure"
    )


def test_the_role_is_for_the_pods_of_one_service_account_in_one_cluster() -> None:
    trust = obj(json.loads(text(recorded_access().one(":Role"), "assumeRolePolicy")))
    (statement,) = objects(trust, "Statement")
    assert statement["Principal"] == {"Service": ["pods.eks.amazonaws.com"]}, "by Pod Identity alone"
    assert statement["Action"] == ["sts:AssumeRole", "sts:TagSession"], "the agent tags each session"
    assert statement["Condition"] == {
        "StringEquals": {
            "aws:RequestTag/eks-cluster-name": "holdfast-dev",
            "aws:RequestTag/kubernetes-namespace": "vision",
            "aws:RequestTag/kubernetes-service-account": "trainer",
        }
    }, "an association that hands the role to other pods is of no use to them"


@pytest.mark.parametrize(
    ("cluster_name", "namespace"),
    [("holdfast-dev", "vision"), ("holdfast-" + "c" * 60, "n" * 63), ("holdfast-dev", "n" * 63)],
)
def test_the_roles_name_fits_however_long_the_namespaces_is(cluster_name: str, namespace: str) -> None:
    prefix = text(recorded_access(cluster_name=cluster_name, namespace=namespace).one(":Role"), "namePrefix")
    assert len(prefix) <= 38, "the provider appends 26 characters, and a role's name has 64"
    assert prefix.startswith("holdfast-"), "a reader of IAM's list sees whose it is"


def test_the_role_reaches_the_namespaces_prefix() -> None:
    policy = text(recorded_access().one(":RolePolicy"), "policy")
    expected = prefix_access(bucket_arn=BUCKET, prefix="vision", key_arn=KEY)
    assert policy == expected, "what that allows and denies is shown of the document itself"


def test_the_roles_description_says_whose_it_is_where_its_name_cannot() -> None:
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
