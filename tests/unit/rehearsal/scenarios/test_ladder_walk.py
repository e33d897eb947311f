"""A walk down the ladder that shows the wrong thing is found out, and the ladder for it is made of a stack's own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.rehearsal.scenarios.ladder_walk import (
    HEADS,
    NAMESPACE,
    LadderWalk,
    short_ladder,
    unmet_by_walk,
    walk_rows,
    walked,
)
from holdfast.rehearsal.scenarios.namespace_clone import namespace_clone
from holdfast.simulator.errors import RehearsalError
from tests.support.builders.scenario_results import move, walk
from tests.support.json_objects import obj, objects

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json


def test_a_walk_down_and_back_up_is_as_it_should_be() -> None:
    assert unmet_by_walk(walk()) == [], "nothing in these facts is wrong"
    assert walked(walk()) == "a-spot → b-spot → a → a-spot; 3 evictions, restarts: 2", "in one line"


@pytest.mark.parametrize(
    ("seen", "complaint"),
    [
        (walk(evictions=2), "3 evictions were counted as 2"),
        (walk(moves=()), "the way was none"),
        (walk(moves=(move("a-spot", "a", 60),)), "the way was a-spot → a and not"),
        (
            walk(
                moves=(
                    move("a-spot", "b-spot", 60, bound=None),
                    move("b-spot", "a", 70, bound=None),
                    move("a", "a-spot", 100),
                )
            ),
            "not every pod found a node in a",
        ),
        (walk(overlaps=("p beside q",)), "two gangs were alive together: p beside q"),
    ],
)
def test_a_walk_gone_wrong_is_told(seen: LadderWalk, complaint: str) -> None:
    assert any(complaint in problem for problem in unmet_by_walk(seen)), f"{unmet_by_walk(seen)}"


def test_each_move_is_a_line_with_what_it_took() -> None:
    first, second, third = walk_rows(walk())
    assert {len(row) for row in (HEADS, first, second, third)} == {len(HEADS)}, "a cell for each head"
    assert first == ("a-spot → b-spot", "3 evictions", "0.5 s", "0.5 s", "0.5 s", "–", "–"), "no nodes there"
    assert third[1:] == ("capacity held above", "–", "0.5 s", "0.5 s", "0.5 s", "1.5 s"), "and back up"


def test_the_short_ladder_is_made_of_the_first_that_is_long_enough() -> None:
    ladder = short_ladder([_policy("b", "x", "y", "z"), _policy("a", "x", "y"), _policy(NAMESPACE, *"pqr")])
    assert (ladder.model, ladder.pools) == ("b", ("x", "y", "z")), "three tiers are walked"
    spec = obj(ladder.policy()["spec"])
    assert [tier.get("maxFailures") for tier in objects(spec["tiers"])] == [3, 3, None], "down by evictions"
    assert [obj(tier["facts"])["of"] for tier in objects(spec["tiers"])] == ["x", "y", "z"], "facts are kept"


def test_a_longer_ladder_is_walked_over_its_first_two_tiers_and_its_last() -> None:
    assert short_ladder([_policy("b", "w", "x", "y", "z")]).pools == ("w", "x", "z"), "the last is on demand"


def test_a_stack_without_a_long_ladder_is_told_what_to_add() -> None:
    with pytest.raises(RehearsalError, match="a ladder of 3 tiers: add one"):
        short_ladder([_policy("a", "x", "y")])


def test_a_twin_has_the_labels_and_bindings_of_its_model() -> None:
    labels: Json = {"holdfast.dev/training": "true", "kubernetes.io/metadata.name": "vision"}
    subjects: list[Json] = [{"name": "controller"}]
    binding: Json = {
        "metadata": {"name": "jobs", "namespace": "vision"},
        "roleRef": {"name": "r"},
        "subjects": subjects,
    }
    namespace, bound = namespace_clone({"metadata": {"name": "vision", "labels": labels}}, [binding], "twin")
    assert obj(namespace["metadata"]) == {"name": "twin", "labels": {"holdfast.dev/training": "true"}}, (
        "its name is its own"
    )
    assert (obj(bound["metadata"])["namespace"], bound["roleRef"]) == ("twin", {"name": "r"}), "in the twin"


def _policy(namespace: str, *pools: str) -> Json:
    tiers: list[Json] = [{"pool": pool, "facts": {"of": pool}} for pool in pools]
    return {"metadata": {"namespace": namespace}, "spec": {"tiers": tiers}}
