"""Several ladders over several starts, and what is printed of them."""

import json
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from pulumi_holdfast.analysis.replay.comparison import Comparison, averages, compare
from pulumi_holdfast.analysis.replay.ladders import MOST_LADDERS, Numbers, ladders, read_ladder
from pulumi_holdfast.analysis.replay.reports import comparison_document, comparison_report
from pulumi_holdfast.analysis.replay.trace import SyntheticMarket, synthetic_trace
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.ladder import UNLIMITED
from tests.support.json_objects import obj, objects
from tests.support.markets import ALWAYS, HOUR, JOB, MINUTE, market, trace

NUMBERS = Numbers(
    max_failures=[5],
    procurement_timeout=[15 * MINUTE],
    return_after=[None, 4 * HOUR],
    hold_timeout=15 * MINUTE,
)
WEATHER = SyntheticMarket(length=20 * 24 * HOUR)
MADE = market(synthetic_trace(WEATHER, 1), synthetic_trace(WEATHER, 2))
# Enough for the job in one piece, and not in two.
SHORT = market(trace((48 + 1 / 3, 1), (51 + 2 / 3, 0)))


@pytest.fixture(scope="module")
def made() -> Comparison:
    return compare(JOB, MADE, ladders(MADE, NUMBERS), starts=5, within=60 * HOUR)


def test_there_is_a_row_for_on_demand_for_staying_on_each_pool_and_for_each_ladder(made: Comparison) -> None:
    assert [row.name for row in made.rows] == [
        "on-demand",
        "stay on a-spot",
        "stay on b-spot",
        "5 failures, 15m, one way",
        "5 failures, 15m, back after 4h",
    ]
    assert all(len(row.replayed) == len(row.at_best) == 5 for row in made.rows)


def test_starts_are_spread_over_the_traces(made: Comparison) -> None:
    assert [start / HOUR for start in made.starts] == [0, 96, 192, 288, 384]
    everywhere = compare(JOB, market(), ladders(market(), NUMBERS), starts=5)
    assert len(everywhere.starts) == 1


def test_no_row_costs_less_than_hindsight_and_none_that_is_in_time_less_than_hindsight_in_time(
    made: Comparison,
) -> None:
    for row in made.rows:
        for replayed, at_best, best in zip(row.replayed, row.at_best, made.hindsight, strict=True):
            assert at_best is not None
            assert at_best <= replayed.cost + 1e-9, f"{row.name} beside the best that is as fast"
            is_late = replayed.hours > 60
            assert is_late or (best or 0) <= replayed.cost + 1e-9, f"{row.name} beside the best in 60 h"


def test_averages_are_of_those_that_finished() -> None:
    rows = compare(JOB, SHORT, ladders(SHORT, NUMBERS), starts=4).rows
    stay = averages(rows[1], 1000)
    finished = [each for each in rows[1].replayed if each.is_finished]
    assert (stay.starts, stay.finished) == (4, len(finished))
    assert 0 < stay.finished < 4
    assert stay.hours == pytest.approx(sum(each.hours for each in finished) / len(finished))
    gone = market(trace((100, 0)))
    comparison = compare(JOB, gone, ladders(gone, NUMBERS), starts=2)
    found = averages(comparison.rows[1], 1000)
    assert (found.finished, found.cost, found.worst_hours) == (0, None, None)
    printed = comparison_report(comparison)
    assert "stay on a-spot: from 2 of 2 starts the job had not finished" in printed


def test_the_table_says_what_it_is_of_and_what_hindsight_is(made: Comparison) -> None:
    printed = comparison_report(made).splitlines()
    assert printed[0] == (
        "48 h of training on 1 instance; 5 starts in 20 days. On-demand alone costs 1 and takes 48.2 h."
    )
    assert [line.split("  ")[0] for line in printed[3:9]] == [*(row.name for row in made.rows), "hindsight"]
    assert printed[2].split()[-1] == "late"
    assert "finishes within 60 h costs less" in printed[-1]


def test_lateness_is_no_column_where_no_time_was_given() -> None:
    printed = comparison_report(compare(JOB, SHORT, ladders(SHORT, NUMBERS), starts=2))
    assert "late" not in printed.splitlines()[2]
    assert comparison_report(compare(JOB, market(), ladders(market(), NUMBERS), starts=2))


def test_a_trace_that_never_has_the_gang_is_pointed_out() -> None:
    printed = comparison_report(compare(replace(JOB, nodes=4), SHORT, ladders(SHORT, NUMBERS), starts=1))
    assert "a-spot: its trace never has 4 instances, 1 at most." in printed


def test_the_document_has_every_replay(made: Comparison) -> None:
    document = cast("Json", json.loads(comparison_document(made)))
    rows = objects(document["rows"])
    assert [row["name"] for row in rows] == [row.name for row in made.rows]
    assert obj(rows[3]["averages"])["cost"] == averages(made.rows[3], 60).cost
    assert [each["hours"] for each in objects(rows[3]["replays"])] == [
        each.hours for each in made.rows[3].replayed
    ]


def test_traces_shorter_than_the_job_and_times_in_which_it_cannot_be_done_are_refused() -> None:
    short = market(trace((40, 1)))
    with pytest.raises(ValueError, match=r"the traces: 40 h; allowed: .* 48.2 h"):
        compare(JOB, short, ladders(short, NUMBERS), starts=1)
    with pytest.raises(ValueError, match=r"within: 48 h; allowed: .* 48.2 h"):
        compare(JOB, MADE, ladders(MADE, NUMBERS), starts=1, within=48 * HOUR)


@pytest.mark.parametrize("starts", [0, -1, 10**9])
def test_a_number_of_starts_that_is_none_is_refused(starts: int) -> None:
    with pytest.raises(ValueError, match="starts: got"):
        compare(JOB, market(ALWAYS), (), starts=starts)


def test_there_is_a_ladder_for_each_combination_of_numbers() -> None:
    many = replace(NUMBERS, max_failures=[1, UNLIMITED], procurement_timeout=[HOUR, 2 * HOUR])
    assert [each.name for each in ladders(market(ALWAYS), many)][:3] == [
        "1 failure, 1h, one way",
        "1 failure, 1h, back after 4h",
        "1 failure, 2h, one way",
    ]
    assert len(ladders(market(ALWAYS), many)) == 8


def test_too_many_ladders_and_one_that_is_never_left_are_refused() -> None:
    with pytest.raises(ValueError, match=f"65 ladders to compare; allowed: {MOST_LADDERS}"):
        ladders(market(ALWAYS), replace(NUMBERS, max_failures=range(65), return_after=[None]))
    with pytest.raises(ValueError, match="never left"):
        ladders(market(ALWAYS), replace(NUMBERS, max_failures=[UNLIMITED], procurement_timeout=[None]))


POLICY = """
apiVersion: holdfast.dev/v1alpha1
kind: FallbackPolicy
metadata: {name: ladder}
spec:
  returnAfter: 4h
  tiers:
    - {pool: a-spot, maxFailures: 2, procurementTimeout: 15m}
    - {pool: on-demand}
"""


def test_a_policy_that_is_used_already_is_replayed_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "ladder.yaml"
    path.write_text(POLICY)
    found = read_ladder(path, market(ALWAYS))
    assert found.name == "ladder.yaml"
    assert (found.policy.tiers[0].max_failures, found.policy.return_after) == (2, 4 * HOUR)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not valid YAML"),
        ("- a list", "no FallbackPolicy"),
        ("", "no FallbackPolicy"),
        ("spec: {tiers: []}", "spec.tiers"),
        (POLICY.replace("4h", "4"), "returnAfter"),
        (
            POLICY.replace("a-spot", "b-spot"),
            "b-spot, on-demand, the pools that were given a-spot, on-demand",
        ),
    ],
)
def test_what_is_no_policy_for_these_pools_is_a_sentence(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "ladder.yaml"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"ladder\.yaml: ") as refused:
        read_ladder(path, market(ALWAYS))
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)
