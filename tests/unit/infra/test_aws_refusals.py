"""Refusals of an AWS stack's configuration: each mistake is one problem, with field, value, what is allowed, the fix."""

from __future__ import annotations

import pytest

from tests.support.aws_documents import aws_document, aws_problems, section
from tests.support.aws_mistakes import MISTAKES
from tests.support.builders.configurations import Document, entry

PLATFORM = "holdfast:platform"


def test_the_document_that_each_test_breaks_is_valid() -> None:
    assert not aws_problems(aws_document()), "else every test below would be about something else"


@pytest.mark.parametrize("mistake", MISTAKES)
def test_one_mistake_is_one_problem_with_its_field_and_mend(mistake: str) -> None:
    change, field, fix = MISTAKES[mistake]
    found = aws_problems(aws_document(change))
    assert [problem.field for problem in found] == [PLATFORM + field], (
        "it is named where it is, and only there"
    )
    assert fix in found[0].fix, "the user is told what to write"
    assert found[0].value, "what stands there is shown"
    assert found[0].allowed, "what may stand there is shown"
    assert len(str(found[0])) < 700, "a refusal is a line that can be read, not a catalogue"


def test_a_missing_region_is_refused_by_the_key_it_belongs_under() -> None:
    (problem,) = aws_problems(aws_document(), region=None)
    assert problem.field == "aws:region", "the provider reads it there, and so does everything else"
    assert "`aws:region: us-east-1`" in problem.fix, "the line to add is shown"


@pytest.mark.parametrize("region", ["us-west-9", "us-west-2a", "", "US-WEST-2"])
def test_a_region_that_is_none_is_refused(region: str) -> None:
    (problem,) = aws_problems(aws_document(), region=region)
    assert problem.field == "aws:region", "and nothing is said of zones and machines of a region that is none"
    assert "us-west-2" in problem.allowed, "the regions there are are shown"


def test_a_wrong_region_hides_no_other_mistake() -> None:
    document = aws_document(
        lambda d: (entry(d, "pools", 0).pop("default"), section(d, "cluster").update(version="1.30"))
    )
    fields = {problem.field for problem in aws_problems(document, region="us-west-9")}
    assert fields == {"aws:region", f"{PLATFORM}.pools", f"{PLATFORM}.cluster.version"}, (
        "whoever fixes one mistake should not meet the next one only then"
    )


def test_all_mistakes_are_shown_at_once() -> None:
    def change(document: Document) -> None:
        for name in ("a single system node", "a VPC with zones", "a family with a typo", "no default pool"):
            MISTAKES[name][0](document)

    fields = {problem.field.removeprefix(PLATFORM) for problem in aws_problems(aws_document(change))}
    assert fields == {".cluster.systemNodes.count", ".network.zones", ".pools[1].families[1]"}, (
        "all but the default pool, which may be the one that cannot be read"
    )


def test_a_public_endpoint_for_everybody_can_be_said_aloud() -> None:
    document = aws_document(
        lambda d: section(d, "cluster").update(
            publicAccessCidrs=["0.0.0.0/0"], allowPublicAccessFromAnywhere=True
        )
    )
    assert not aws_problems(document), "whoever says it twice means it"
