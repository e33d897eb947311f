"""Pacing to a deadline beside fixed ladders, Uniform Progress, the greedy rule and hindsight."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from pulumi_holdfast.analysis.replay.baselines import Baseline, replay_baseline, restart_cost
from pulumi_holdfast.analysis.replay.deadlines import DeadlineComparison, compare_deadlines, separately
from pulumi_holdfast.analysis.replay.ladders import NamedPolicy
from pulumi_holdfast.analysis.replay.market import Market, Workload
from pulumi_holdfast.analysis.replay.trace import SyntheticMarket, synthetic_trace, write_trace
from pulumi_holdfast.cli.__main__ import main
from tests.support.markets import ALWAYS, AT_ONCE, HOUR, JOB, MINUTE, SPOT_PRICE, ladder, market, trace

WITHIN = (52 * HOUR, 70 * HOUR)
NEVER = trace((240, 0))
SHORT = replace(JOB, work=8 * HOUR)
# Spot for two hours, then none for ten, and so on.
SCARCE = trace(*[(2, 1), (10, 0)] * 10)


def compared(job: Workload, pools: Market) -> DeadlineComparison:
    named = (NamedPolicy(name="ladder", policy=ladder(pools, return_after=HOUR)),)
    return compare_deadlines(job, [(pools, named)], starts=4, within=WITHIN, hold_timeout=None)


@pytest.mark.parametrize(
    "job", [JOB, replace(JOB, boot=3 * MINUTE, grace=MINUTE, checkpoint_every=15 * MINUTE)]
)
def test_a_paced_job_is_in_time_and_costs_no_more_than_the_greedy_rule(job: Workload) -> None:
    found = compared(job, market(synthetic_trace(SyntheticMarket(there=4 * HOUR, gone=4 * HOUR), 3)))
    rows = {row.name: row for row in found.rows}
    paced = rows["paced, ladder"]
    for place, hindsight in enumerate(found.hindsight):
        assert paced.kept[place].late == 0
        cost = paced.kept[place].cost or 0.0
        assert hindsight is not None
        assert hindsight - 1e-9 <= cost
        assert cost < (rows[Baseline.GREEDY].kept[place].cost or 0.0)
        assert not any(rows[rule].kept[place].late for rule in Baseline)


def test_baselines_cost_the_price_of_spot_where_it_is_always_available() -> None:
    for rule in Baseline:
        found = replay_baseline(JOB, market(ALWAYS), rule, AT_ONCE, finish_within=52 * HOUR)
        assert found.cost == pytest.approx(SPOT_PRICE)
        assert found.hours == pytest.approx(48.2)


def test_the_greedy_rule_waits_until_on_demand_just_finishes_in_time() -> None:
    found = replay_baseline(JOB, market(NEVER), Baseline.GREEDY, AT_ONCE, finish_within=52 * HOUR)
    assert found.cost == pytest.approx(1)
    assert found.waited_hours == pytest.approx(52 - 48 - 0.4 - 1 / 60, abs=1 / 60)
    assert found.hours <= 52


def test_uniform_progress_never_falls_far_behind_an_even_pace() -> None:
    found = replay_baseline(JOB, market(NEVER), Baseline.UNIFORM_PROGRESS, AT_ONCE, finish_within=70 * HOUR)
    greedy = replay_baseline(JOB, market(NEVER), Baseline.GREEDY, AT_ONCE, finish_within=70 * HOUR)
    assert found.moves > 5
    assert found.cost > greedy.cost
    assert found.hours <= 70


def test_an_eviction_costs_a_baseline_the_work_since_its_checkpoint() -> None:
    job = replace(SHORT, checkpoint_every=30 * MINUTE)
    found = replay_baseline(job, market(SCARCE), Baseline.GREEDY, AT_ONCE, finish_within=30 * HOUR)
    assert found.evictions >= 1
    # 1.8 h of work, of which 1.5 are in a checkpoint; and a restart for each start.
    assert found.lost_hours == pytest.approx(0.3 * found.evictions + 0.2 * (found.moves + 1), abs=0.01)


def test_a_restart_costs_everything_from_the_loss_until_the_earlier_progress() -> None:
    job = replace(JOB, boot=3 * MINUTE, grace=MINUTE, checkpoint_every=15 * MINUTE)
    assert restart_cost(job) == 31 * MINUTE


def test_a_fixed_ladder_is_recommended_where_it_is_in_time_and_costs_less() -> None:
    found = compared(JOB, market(ALWAYS))
    paced = found.rows[2]
    assert paced.is_paced
    worse = replace(
        found,
        rows=(
            *found.rows[:2],
            replace(
                paced,
                kept=tuple(
                    replace(kept, replayed=(replace(kept.replayed[0], cost=2.0),)) for kept in paced.kept
                ),
            ),
        ),
    )
    best = worse.best(0)
    assert best is not None
    assert best.name == "ladder"


def test_each_pool_is_a_market_of_its_own() -> None:
    markets = separately(market(ALWAYS, NEVER))
    assert [[pool.pool for pool in each.pools] for each in markets] == [
        ["a-spot", "on-demand"],
        ["b-spot", "on-demand"],
    ]


def test_the_command_prints_deadlines_side_by_side_and_draws_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, picture = tmp_path / "a.json", tmp_path / "costs.png"
    write_trace(synthetic_trace(SyntheticMarket(length=480 * HOUR), 4), file)
    asked = f"replay run a:0.32:{file} c:1 --work 24h --restart 12m --starts 2 --finish-within 26h 36h"
    assert main([*asked.split(), "--each-pool", "--png", str(picture)]) == 0
    printed = capsys.readouterr().out
    assert "26 h: cost" in printed
    assert "36 h: cost" in printed
    assert "Uniform Progress" in printed
    assert "Within 26 h: " in printed
    bars = {line.split("  ")[0]: line.count("█") for line in printed.splitlines() if "█" in line}
    assert bars["on-demand"] == 40
    assert 0 < bars["hindsight"] <= min(bars.values())
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert main([*asked.split(), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [len(row["deadlines"]) for row in document["rows"]] == [2] * 5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--finish-within 20h", "finish-within: got 20 h; allowed: 24 h"),
        ("--finish-within 700h", "finish-within: got 700 h"),
        ("--finish-within 30h --within 30h", "--within: not allowed beside --finish-within"),
        ("--each-pool", "--each-pool, --png: allowed with --finish-within only"),
        ("--finish-within 30h --starts 0", "starts: got 0"),
    ],
)
def test_what_does_not_go_together_is_refused(
    options: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "a.json"
    write_trace(synthetic_trace(SyntheticMarket(length=480 * HOUR), 4), file)
    assert main(["replay", "run", f"a:0.32:{file}", "c:1", "--work", "24h", *options.split()]) == 1
    assert message in capsys.readouterr().err
