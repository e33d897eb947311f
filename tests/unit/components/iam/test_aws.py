"""IAM documents as AWS reads them."""

from __future__ import annotations

import json

import pytest

from holdfast.components.iam.aws import (
    Place,
    Statement,
    Workload,
    document,
    pod_identity_trust,
    service_trust,
)
from tests.support.iam_evaluation import Request, is_allowed
from tests.support.json_objects import obj, objects

WORKLOAD = Workload(cluster_name="holdfast-dev", namespace="vision", service_account="trainer")
TAGS = {
    "aws:RequestTag/eks-cluster-name": "holdfast-dev",
    "aws:RequestTag/kubernetes-namespace": "vision",
    "aws:RequestTag/kubernetes-service-account": "trainer",
}


def assuming(action: str = "sts:AssumeRole", **changed: str) -> Request:
    tags = {key: changed.get(key.rpartition("-")[2], value) for key, value in TAGS.items()}
    return Request(action=action, context=tags, service="pods.eks.amazonaws.com")


def test_what_is_empty_is_left_out() -> None:
    (statement,) = objects(obj(json.loads(document(Statement(sid="Read", actions=["s3:Get*"]))))["Statement"])
    assert statement == {"Sid": "Read", "Effect": "Allow", "Action": ["s3:Get*"]}, (
        "IAM refuses an empty condition, an empty resource and a principal where there must be none"
    )


def test_a_document_has_the_version_with_variables() -> None:
    assert obj(json.loads(document()))["Version"] == "2012-10-17", "without it IAM takes the rules of 2008"


def test_a_service_may_assume_its_role_and_no_other_service_may() -> None:
    trust = service_trust("ec2.amazonaws.com")
    assert is_allowed([trust], Request(action="sts:AssumeRole", service="ec2.amazonaws.com")), "its own role"
    assert not is_allowed([trust], Request(action="sts:AssumeRole", service="lambda.amazonaws.com")), (
        "not its"
    )


@pytest.mark.parametrize("action", ["sts:AssumeRole", "sts:TagSession"])
def test_pods_assume_a_role_and_tag_the_session(action: str) -> None:
    assert is_allowed([pod_identity_trust(WORKLOAD)], assuming(action)), (
        "the agent does both, or neither works"
    )


@pytest.mark.parametrize("other", [{"name": "prod"}, {"namespace": "tabular"}, {"account": "default"}])
def test_another_workload_never_gets_the_role(other: dict[str, str]) -> None:
    trust = pod_identity_trust(WORKLOAD)
    assert not is_allowed([trust], assuming(**other)), (
        f"an association of {other} with this role would hand out what it may do"
    )


def test_arns_are_those_of_the_partition() -> None:
    china = Place(account="123456789012", region="cn-north-1", partition="aws-cn")
    assert china.role("r") == "arn:aws-cn:iam::123456789012:role/r", "roles belong to no region"
    assert china.queue("q") == "arn:aws-cn:sqs:cn-north-1:123456789012:q", "queues do"
    assert china.aws_policy("P") == "arn:aws-cn:iam::aws:policy/P", "AWS's own policies belong to no account"
    assert china.ec2_service() == "ec2.amazonaws.com.cn", "EC2 has a name of its own in China"
    assert (
        Place(account="1", region="us-gov-west-1", partition="aws-us-gov").ec2_service()
        == "ec2.amazonaws.com"
    ), "and only there"
