"""A namespace's way to its own checkpoints in S3."""

from __future__ import annotations

import json

import pytest
from pulumi import Output

from holdfast.components.checkpoints.s3 import CheckpointAccess, CheckpointAccessArgs, prefix_access
from tests.support.fakes.pulumi_engine import Recording, record
from tests.support.inputs import objects, text
from tests.support.json_objects import obj

BUCKET = "arn:aws:s3:::checkpoints-bucket-0a1b2c3"
KEY = "arn:aws:kms:us-east-1:123456789012:key/1"


def recorded(
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
    association = recorded(preview=preview).one(":PodIdentityAssociation").inputs
    assert association["clusterName"] == "holdfast-dev", "in the stack's cluster"
    assert (association["namespace"], association["serviceAccount"]) == ("vision", "trainer"), (
        "the service account that training pods name"
    )


def test_the_association_gives_the_namespaces_own_role() -> None:
    recording = recorded()
    assert text(recording.one(":PodIdentityAssociation"), "roleArn").endswith(":access-role"), "no other role"


def test_no_pod_gets_the_role_before_it_may_do_anything() -> None:
    assert "access-policy" in recorded().one(":PodIdentityAssociation").depends_on, (
        "a pod that came between would be refused, and its job would count that as a failure"
    )


def test_the_role_is_for_the_pods_of_one_service_account_in_one_cluster() -> None:
    trust = obj(json.loads(text(recorded().one(":Role"), "assumeRolePolicy")))
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
    prefix = text(recorded(cluster_name=cluster_name, namespace=namespace).one(":Role"), "namePrefix")
    assert len(prefix) <= 38, "the provider appends 26 characters, and a role's name has 64"
    assert prefix.startswith("holdfast-"), "a reader of IAM's list sees whose it is"


def test_the_role_reaches_the_namespaces_prefix() -> None:
    policy = text(recorded().one(":RolePolicy"), "policy")
    expected = prefix_access(bucket_arn=BUCKET, prefix="vision", key_arn=KEY)
    assert policy == expected, "what that allows and denies is shown of the document itself"


def test_the_roles_description_says_whose_it_is_where_its_name_cannot() -> None:
    description = text(recorded(namespace="n" * 63).one(":Role"), "description")
    assert description == f"Checkpoints of {'n' * 63}/trainer in holdfast-dev", "in full"
