"""The ladder scenario: its expectations, its table, its ladder and its namespace."""

import pytest

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.scenarios.ladder_walk import (
    HEADS,
    NAMESPACE,
    LadderWalk,
    short_ladder,
    unmet_by_walk,
    walk_rows,
    walked,
)
from pulumi_holdfast.rehearsal.scenarios.namespace_clone import namespace_clone
from tests.support.builders.scenario_results import move, walk
from tests.support.json_objects import obj, objects


def test_failovers_and_a_failback_meet_the_expectations() -> None:
    assert unmet_by_walk(walk()) == []
    assert walked(walk()) == "a-spot → b-spot → a → a-spot; 3 evictions, restarts: 2"


@pytest.mark.parametrize(
    ("seen", "complaint"),
    [
        (walk(evictions=2), "3 evictions were counted as 2"),
        (walk(moves=()), "the path was none"),
        (walk(moves=(move("a-spot", "a", 60),)), "the path was a-spot → a and not"),
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
        (walk(overlaps=("p together with q",)), "two gangs ran together: p together with q"),
    ],
)
def test_an_unexpected_walk_is_reported(seen: LadderWalk, complaint: str) -> None:
    assert any(complaint in problem for problem in unmet_by_walk(seen))


def test_the_table_has_a_row_with_seconds_for_each_move() -> None:
    first, second, third = walk_rows(walk())
    assert {len(row) for row in (HEADS, first, second, third)} == {len(HEADS)}
    assert first == ("a-spot → b-spot", "3 evictions", "0.5 s", "0.5 s", "0.5 s", "–", "–")
    assert third[1:] == ("capacity reserved above", "–", "0.5 s", "0.5 s", "0.5 s", "1.5 s")


def test_the_short_ladder_comes_from_the_first_policy_with_three_tiers() -> None:
    ladder = short_ladder([_policy("b", "x", "y", "z"), _policy("a", "x", "y"), _policy(NAMESPACE, *"pqr")])
    assert (ladder.model, ladder.pools) == ("b", ("x", "y", "z"))
    spec = obj(ladder.policy()["spec"])
    assert [tier.get("maxFailures") for tier in objects(spec["tiers"])] == [3, 3, None]
    assert [obj(tier["facts"])["of"] for tier in objects(spec["tiers"])] == ["x", "y", "z"]
    assert short_ladder([_policy("b", "w", "x", "y", "z")]).pools == ("w", "x", "z")
    with pytest.raises(RehearsalError, match="a ladder of 3 tiers: add one"):
        short_ladder([_policy("a", "x", "y")])


def test_a_namespace_clone_has_the_labels_and_role_bindings_of_its_model() -> None:
    labels: Json = {"holdfast.dev/training": "true", "kubernetes.io/metadata.name": "vision"}
    subjects: list[Json] = [{"name": "controller"}]
    binding: Json = {
        "metadata": {"name": "jobs", "namespace": "vision"},
        "roleRef": {"name": "r"},
        "subjects": subjects,
    }
    namespace, bound = namespace_clone({"metadata": {"name": "vision", "labels": labels}}, [binding], "clone")
    assert obj(namespace["metadata"]) == {"name": "clone", "labels": {"holdfast.dev/training": "true"}}
    assert (obj(bound["metadata"])["namespace"], bound["roleRef"]) == ("clone", {"name": "r"})


def _policy(namespace: str, *pools: str) -> Json:
    tiers: list[Json] = [{"pool": pool, "facts": {"of": pool}} for pool in pools]
    return {"metadata": {"namespace": namespace}, "spec": {"tiers": tiers}}
