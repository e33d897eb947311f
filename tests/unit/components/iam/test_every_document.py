"""Every IAM document of the package, wherever it is made, held to AWS's reference and to good practice."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.aws_components import WAYS, everything_in_aws
from tests.support.iam_documents import documents_of
from tests.support.iam_linter import lint
from tests.support.sources import modules

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.fakes.pulumi_engine import Recorded
    from tests.support.iam_linter import Finding

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
