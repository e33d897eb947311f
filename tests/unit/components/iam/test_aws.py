"""IAM documents as AWS reads them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from holdfast.components.iam.aws import (
    Place,
    Statement,
    Workload,
    document,
    pod_identity_trust,
    service_trust,
)
from tests.support.aws_components import WAYS, everything_in_aws
from tests.support.iam_documents import documents_of
from tests.support.iam_evaluation import Request, is_allowed
from tests.support.iam_linter import lint
from tests.support.json_objects import obj, objects
from tests.support.sources import modules

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.fakes.pulumi_engine import Recorded
    from tests.support.iam_linter import Finding


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


#: What the linter finds and we mean: statement and kind of finding → why.
MEANT = {
    ("Assume", "confused_deputy_risk"): (
        "EC2 and EKS serve roles of their own account alone, and a role is passed by somebody who may; roles of pods "
        "are held to one service account by the session's tags"
    ),
    ("AllowSSMReadActions", "resource_mismatch"): "AWS's own parameters have no account in their ARN",
    (
        "Key",
        "invalid_condition_key",
    ): "S3's key of the encryption context, `aws:s3:arn`, has colons of its own",
    ("AllowZonalShiftStatusReadOnly", "overly_permissive"): "a condition names the one cluster instead",
}


@pytest.fixture(scope="module")
def registered() -> list[tuple[str, Recorded]]:
    return list(everything_in_aws())


@pytest.fixture(scope="module")
def documents(registered: list[tuple[str, Recorded]]) -> dict[str, str]:
    return {f"{way}:{where}": text for way, resource in registered for where, text in documents_of(resource)}


@pytest.fixture(scope="module")
def findings(documents: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> list[Finding]:
    return lint(documents, tmp_path_factory.mktemp("reference"))


def test_every_component_that_makes_something_in_aws_is_looked_at(
    registered: list[tuple[str, Recorded]],
) -> None:
    made = {resource.type for _, resource in registered}
    for module in modules("components"):
        if not any(name.startswith("pulumi_aws") for name, _ in module.imports()):
            continue
        for component in module.components():
            assert f"holdfast:index:{component.name}" in made, (
                f"{component.name} in {module.path} is made in none of {list(WAYS)}: add it to "
                "tests/support/aws_components.py, or its documents are never looked at"
            )


def test_no_document_has_a_fault(findings: list[Finding]) -> None:
    wrong = [one for one in findings if (one.statement, one.kind) not in MEANT]
    assert not wrong, "\n".join(
        f"{one.document} [{one.statement}] {one.kind}: {one.message}" for one in wrong
    )


def test_every_exception_is_still_needed(findings: list[Finding]) -> None:
    found = {(one.statement, one.kind) for one in findings}
    assert set(MEANT) <= found, f"{set(MEANT) - found} no longer occurs: take the exception out"


@pytest.mark.parametrize(
    ("statement", "kind"),
    [
        ('"Action": "s3:GetObjekt", "Resource": "*"', "invalid_action"),
        ('"Action": "sqs:SendMessage", "Resource": "arn:aws:s3:::bucket"', "resource_mismatch"),
        (
            '"Action": "iam:PassRole", "Resource": "*", "Condition": {"StringEquals": {"ec2:Vpc": "v"}}',
            "invalid_condition_key",
        ),
        ('"Action": "*", "Resource": "*"', "security_risk"),
    ],
)
def test_the_linter_finds_what_it_is_there_for(statement: str, kind: str, tmp_path: Path) -> None:
    document = f'{{"Version": "2012-10-17", "Statement": [{{"Sid": "One", "Effect": "Allow", {statement}}}]}}'
    found = {one.kind for one in lint({"wrong": document}, tmp_path)}
    assert kind in found, f"a linter that lets {statement} pass shows nothing; it found {found}"
