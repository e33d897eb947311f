"""Refusals of configuration: each mistake is one problem, with field, value, what is allowed and the fix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.builders.configurations import entry, platform_document, problems, read, tier
from tests.support.mistakes import MISTAKES

if TYPE_CHECKING:
    from holdfast.scheduling.errors import Problem
    from holdfast.scheduling.json import JsonValue
    from tests.support.builders.configurations import Document

PLATFORM = "holdfast:platform"


def test_the_document_that_each_test_breaks_is_valid() -> None:
    assert not problems(platform_document()), "else every test below would be about something else"


@pytest.mark.parametrize("mistake", MISTAKES)
def test_one_mistake_is_one_problem_with_its_field_and_mend(mistake: str) -> None:
    change, field, fix = MISTAKES[mistake]
    found = problems(platform_document(change))
    assert [problem.field for problem in found] == [PLATFORM + field], (
        "it is named where it is, and only there"
    )
    assert fix in found[0].fix, "the user is told what to write"
    assert found[0].value, "what stands there is shown"
    assert found[0].allowed, "what may stand there is shown"


@pytest.mark.parametrize("document", [None, "local", [], 7])
def test_no_document_is_a_problem_of_the_whole(document: JsonValue) -> None:
    (problem,) = problems(document)
    assert problem.field == PLATFORM, "no field of it can be named"
    assert "stacks/Pulumi.local.yaml" in problem.fix, "an example to start from is named"


def test_all_mistakes_are_shown_at_once() -> None:
    def change(document: Document) -> None:
        entry(document, "pools", 1).update(capacity="spt")
        entry(document, "namespaces", 1).update(name="default")
        tier(document, 0, 0).update(procurementTimeout="15")
        tier(document, 0, 1).update(pool="a10")
        document.update(cluster={"version": "1.30"})

    fields = {problem.field.removeprefix(PLATFORM) for problem in problems(platform_document(change))}
    assert fields == {
        ".pools[1].capacity",
        ".namespaces[1].name",
        ".namespaces[0].ladder[0].procurementTimeout",
        ".namespaces[0].ladder[1].pool",
        ".cluster.version",
    }, "whoever fixes one mistake should not meet the next one only then"


def test_a_pool_that_cannot_be_read_is_no_missing_pool_to_the_ladders() -> None:
    found = problems(platform_document(lambda d: entry(d, "pools", 2).update(maxNodes="many")))
    assert [problem.field for problem in found] == [f"{PLATFORM}.pools[2].maxNodes"], (
        "the ladder that names it is right as it is"
    )


def test_a_long_value_is_cut() -> None:
    (problem,) = problems(platform_document(lambda d: d.update(mirror="x" * 500)))
    assert len(problem.value) < 100, "a refusal is one line that can be read"


def test_the_text_of_a_refusal_has_one_line_for_each_problem() -> None:
    found: tuple[Problem, ...] = problems(
        platform_document(lambda d: (d.pop("pools"), entry(d, "namespaces", 0).pop("name")))
    )
    assert all("\n" not in str(problem) for problem in found), "lines are what the user counts"
    assert len(found) == 2, "nothing is said of ladders while there are no pools to name"


def test_what_is_optional_has_the_defaults_of_a_checkout() -> None:
    platform = read(platform_document())
    assert platform.cluster.kubeconfig == ".rehearsal/local/kubeconfig", "where `make up` writes it"
    assert platform.mirror.charts == ".tools/charts", "where `make tools` puts them"
    assert platform.cluster.system_nodes == 1, "one is enough for three operators"
