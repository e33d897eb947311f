"""IAM documents in AWS's form, and a linter run over all of them."""

import json
from pathlib import Path

import pytest

from pulumi_holdfast.aws.policy_documents import (
    Place,
    Statement,
    Workload,
    document,
    pod_identity_trust,
    service_trust,
)
from tests.support.builders.aws_components import WAYS, everything_in_aws
from tests.support.fakes.iam_evaluation import Request, documents_of, is_allowed
from tests.support.fakes.iam_linter import Finding, lint
from tests.support.fakes.pulumi_engine import Recorded
from tests.support.json_objects import obj, objects
from tests.support.sources import modules

WORKLOAD = Workload(cluster_name="holdfast-dev", namespace="vision", service_account="trainer")
TAGS = {
    "aws:RequestTag/eks-cluster-name": "holdfast-dev",
    "aws:RequestTag/kubernetes-namespace": "vision",
    "aws:RequestTag/kubernetes-service-account": "trainer",
}


def assuming(action: str = "sts:AssumeRole", **changed: str) -> Request:
    tags = {key: changed.get(key.rpartition("-")[2], value) for key, value in TAGS.items()}
    return Request(action=action, context=tags, service="pods.eks.amazonaws.com")


def test_a_document_has_the_current_version_and_no_empty_fields() -> None:
    (statement,) = objects(obj(json.loads(document(Statement(sid="Read", actions=["s3:Get*"]))))["Statement"])
    assert statement == {"Sid": "Read", "Effect": "Allow", "Action": ["s3:Get*"]}
    assert obj(json.loads(document()))["Version"] == "2012-10-17"


def test_only_the_given_service_or_workload_may_assume_a_role() -> None:
    trust = service_trust("ec2.amazonaws.com")
    assert is_allowed([trust], Request(action="sts:AssumeRole", service="ec2.amazonaws.com"))
    assert not is_allowed([trust], Request(action="sts:AssumeRole", service="lambda.amazonaws.com"))
    trust = pod_identity_trust(WORKLOAD)
    for action in ("sts:AssumeRole", "sts:TagSession"):
        assert is_allowed([trust], assuming(action)), f"the agent needs {action}"
    for other in ({"name": "prod"}, {"namespace": "tabular"}, {"account": "default"}):
        assert not is_allowed([trust], assuming(**other)), f"{other} must not get the permissions"


def test_arns_have_the_configured_partition() -> None:
    china = Place(account="123456789012", region="cn-north-1", partition="aws-cn")
    assert china.role("r") == "arn:aws-cn:iam::123456789012:role/r"
    assert china.queue("q") == "arn:aws-cn:sqs:cn-north-1:123456789012:q"
    assert china.aws_policy("P") == "arn:aws-cn:iam::aws:policy/P"
    assert china.ec2_service() == "ec2.amazonaws.com.cn"
    assert (
        Place(account="1", region="us-gov-west-1", partition="aws-us-gov").ec2_service()
        == "ec2.amazonaws.com"
    )


#: Accepted findings of the linter: statement and kind of finding → reason.
ACCEPTED_FINDINGS = {
    ("Assume", "confused_deputy_risk"): (
        "EC2 and EKS only use roles of their own account, and passing a role needs a permission; pods' roles are "
        "limited to one service account by session tags"
    ),
    ("AllowSSMReadActions", "resource_mismatch"): "the ARNs of AWS's public parameters have no account",
    ("Key", "invalid_condition_key"): "the encryption context's key `aws:s3:arn` contains colons",
    (
        "MountAndWrite",
        "missing_principal_condition_any_of",
    ): "who mounts is a node without credentials, by an access point",
    ("MountAndWrite", "resource_mismatch"): "the ARN of a file system that does not exist",
    ("AllowZonalShiftStatusReadOnly", "overly_permissive"): "a condition names the cluster instead",
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


def test_every_aws_component_is_linted(registered: list[tuple[str, Recorded]]) -> None:
    made = {resource.type for _, resource in registered}
    for module in modules("components"):
        if not any(name.startswith("pulumi_aws") for name, _ in module.imports()):
            continue
        for component in module.components():
            assert f"holdfast:index:{component.name}" in made, (
                f"{component.name} in {module.path} is created in none of {list(WAYS)}: add it to "
                "tests/support/builders/aws_components.py so that its documents are linted"
            )


def test_no_document_has_a_finding_beyond_the_accepted_ones(findings: list[Finding]) -> None:
    wrong = [one for one in findings if (one.statement, one.kind) not in ACCEPTED_FINDINGS]
    assert not wrong, "\n".join(
        f"{one.document} [{one.statement}] {one.kind}: {one.message}" for one in wrong
    )
    found = {(one.statement, one.kind) for one in findings}
    assert set(ACCEPTED_FINDINGS) <= found


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
def test_the_linter_finds_known_faults(statement: str, kind: str, tmp_path: Path) -> None:
    document = f'{{"Version": "2012-10-17", "Statement": [{{"Sid": "One", "Effect": "Allow", {statement}}}]}}'
    found = {one.kind for one in lint({"wrong": document}, tmp_path)}
    assert kind in found, f"the linter must report {statement}; it found {found}"
