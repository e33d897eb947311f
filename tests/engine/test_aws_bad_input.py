"""The command rejects an invalid AWS stack in one message, before it starts any process."""

from pathlib import Path

import pytest

from tests.support.builders.configurations import aws_document
from tests.support.clusters.cloud_workspaces import workspace_of
from tests.support.command_line import refusal
from tests.support.invalid_configs.aws import INVALID_CONFIGS

pytestmark = [pytest.mark.engine, pytest.mark.timeout(120)]


@pytest.mark.parametrize(
    "mistake",
    [
        "an instance type that the region does not have",
        "a zone of another region",
        "a network that overlaps the service range",
        "a version without pinned add-ons",
        "a version without MutatingAdmissionPolicy",
        "a price cap as in Determined",
        "an account of eleven digits",
        "an administrator of eleven digits",
        "no public and no private access",
    ],
)
def test_an_invalid_field_is_one_line_and_starts_nothing(tmp_path: Path, mistake: str) -> None:
    change, field, fix = INVALID_CONFIGS[mistake]
    workspace_of(tmp_path, "aws", aws_document(change))
    (line,) = refusal(tmp_path, "rehearse", "aws").splitlines()
    assert line.startswith(f"error: holdfast:platform{field}: got ")
    assert fix in line
    assert not (tmp_path / ".rehearsal").exists(), "something was made for a stack that cannot be"


def test_a_duplicate_key_is_rejected_as_by_the_engine(tmp_path: Path) -> None:
    workspace_of(tmp_path, "aws", aws_document())
    with (tmp_path / "stacks" / "Pulumi.aws.yaml").open("a") as file:
        file.write("  aws:region: eu-west-1\n")
    said = refusal(tmp_path, "rehearse", "preview", "aws")
    assert "the key aws:region is duplicated" in said, "the engine would use the second value"
    assert not (tmp_path / ".rehearsal").exists(), "something was made for a stack that cannot be"
