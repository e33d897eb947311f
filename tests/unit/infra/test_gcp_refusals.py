"""Refusals of a GCP stack's configuration: each mistake is one problem, with field, value, what is allowed, the fix."""

from __future__ import annotations

import pytest

from tests.support.aws_documents import section
from tests.support.builders.configurations import Document, entry
from tests.support.gcp_documents import gcp_document, gcp_problems
from tests.support.gcp_mistakes import MISTAKES, pool

PLATFORM = "holdfast:platform"


def test_the_document_that_each_test_breaks_is_valid() -> None:
    assert not gcp_problems(gcp_document()), "else every test below would be about something else"


@pytest.mark.parametrize("mistake", MISTAKES)
def test_one_mistake_is_one_problem_with_its_field_and_mend(mistake: str) -> None:
    change, field, fix = MISTAKES[mistake]
    found = gcp_problems(gcp_document(change))
    assert [problem.field for problem in found] == [PLATFORM + field], (
        "it is named where it is, and only there"
    )
    assert fix in found[0].fix, "the user is told what to write"
    assert found[0].value, "what stands there is shown"
    assert found[0].allowed, "what may stand there is shown"
    assert len(str(found[0])) < 700, "a refusal is a line that can be read, not a catalogue"


@pytest.mark.parametrize(
    ("project", "region", "field", "fix"),
    [
        (None, "us-central1", "gcp:project", "`gcp:project: my-project`"),
        ("123456789012", "us-central1", "gcp:project", "`gcloud projects describe 123456789012`"),
        ("My Project", "us-central1", "gcp:project", "the id, and not the name"),
        ("my-project", None, "gcp:region", "`gcp:region: us-central1`"),
        ("my-project", "us-central1-a", "gcp:region", 'Write "us-central1".'),
        ("my-project", "us-centrall", "gcp:region", 'Write "us-central1".'),
        ("my-project", "mars", "gcp:region", "`gcp:region: us-central1`"),
    ],
)
def test_what_stands_beside_the_document_is_refused_by_its_own_key(
    project: str | None, region: str | None, field: str, fix: str
) -> None:
    (problem,) = gcp_problems(gcp_document(), region=region, project=project)
    assert problem.field == field, "and nothing is said of the zones of a region that is none"
    assert fix in problem.fix, "the line to write is shown"


def test_a_wrong_region_hides_no_other_mistake() -> None:
    document = gcp_document(
        lambda d: (entry(d, "pools", 0).pop("default"), section(d, "cluster").update(version="1.30"))
    )
    fields = {problem.field for problem in gcp_problems(document, region="mars")}
    assert fields == {"gcp:region", f"{PLATFORM}.pools", f"{PLATFORM}.cluster.version"}, (
        "whoever fixes one mistake should not meet the next one only then"
    )


def test_all_mistakes_are_shown_at_once() -> None:
    def change(document: Document) -> None:
        for name in ("no way in", "several machine types", "versions in real folders", "ranges that overlap"):
            MISTAKES[name][0](document)

    fields = {problem.field.removeprefix(PLATFORM) for problem in gcp_problems(gcp_document(change))}
    assert fields == {
        ".cluster.access",
        ".pools[1].machineType",
        ".checkpoints.recovery",
        ".network.servicesCidr",
    }, "one run, one list"


def test_capacity_types_are_not_mixed_in_a_class() -> None:
    def change(document: Document) -> None:
        for index in (2, 3):
            pool(index, computeClass="a100")(document)

    fields = [problem.field.removeprefix(PLATFORM) for problem in gcp_problems(gcp_document(change))]
    assert fields == [".pools[3].computeClass", ".namespaces[0].ladder"], (
        "GKE would put some of a job's pods on spot and some not, and no tier would be left to fall to"
    )


def test_a_ladder_of_classes_alone_is_allowed() -> None:
    def change(document: Document) -> None:
        pool(2, computeClass="a100-spot")(document)
        pool(3, computeClass="a100")(document)

    assert not gcp_problems(gcp_document(change)), "each tier is a class, and of one capacity type"


@pytest.mark.parametrize("order", [(2, 3), (3, 2)])
def test_one_pool_of_a_class_beside_another_is_the_same_tier(order: tuple[int, int]) -> None:
    def change(document: Document) -> None:
        for index in order:
            pool(index, computeClass="any", capacity="on-demand")(document)

    (problem,) = gcp_problems(gcp_document(change))
    assert problem.field == f"{PLATFORM}.namespaces[0].ladder", "a job that moves on would stay where it is"
    assert "a100-spot, a100" in problem.value, "which they are is said"


def test_an_endpoint_for_everybody_can_be_said_aloud() -> None:
    document = gcp_document(
        lambda d: section(d, "cluster").update(access={"dnsEndpoint": {"allowExternal": True}})
    )
    assert not gcp_problems(document), "whoever says it means it"


def test_a_blue_green_upgrade_needs_room_for_a_second_set_of_nodes() -> None:
    def change(document: Document) -> None:
        section(document, "network").update(podsCidr="10.44.0.0/18")
        pool(0, maxNodes=30)(document)

    assert not gcp_problems(gcp_document(change)), "64 nodes have room for 50 and 9"
    (problem,) = gcp_problems(gcp_document(lambda d: (change(d), pool(0, upgrades="blue-green")(d))))
    assert problem.field == f"{PLATFORM}.network.podsCidr", "half of them would find no addresses"
