"""The benchmarks: measurements, tables, the generated program and the seconds of moves."""

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pulumi_holdfast.rehearsal.errors import RehearsalError
from tests.soak.bench.measurement import Measurement, measure, median_of, render
from tests.soak.bench.moves import Cost, Measured, Steps, Wave, between, move_of, restart_of, spread
from tests.soak.bench.moves_report import AIMS, COSTS, TIMES, aim_rows, cost_rows, time_rows
from tests.soak.command_line import against_aims
from tests.support.builders.job_timelines import TimelineBuilder, after, moved

_MIB = 1024 * 1024


def _cost(seconds: float, mib: int = 100) -> Measurement:
    return Measurement(seconds=seconds, peak_bytes=mib * _MIB)


def test_tables_are_aligned_and_compare_medians() -> None:
    lines = render([("command", "empty"), ("up", "12.0 s")])
    assert lines == ["command   empty", "up       12.0 s"]
    middle = median_of([_cost(1.0, 300), _cost(2.0, 100), _cost(9.0, 200)])
    assert middle == _cost(2.0, 200)


def test_the_processes_that_a_command_starts_are_measured(tmp_path: Path) -> None:
    held = 64 * _MIB
    child = f"import time; x = bytearray({held}); time.sleep(0.5); sum(range(3_000_000))"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    cost = measure([sys.executable, "-c", parent], cwd=tmp_path)
    assert cost.peak_bytes > held
    idle = measure([sys.executable, "-c", "pass"], cwd=tmp_path)
    assert cost.cpu_seconds > idle.cpu_seconds > 0


def test_a_failed_command_raises(tmp_path: Path) -> None:
    with pytest.raises(RehearsalError, match="no such luck"):
        measure([sys.executable, "-c", "import sys; sys.exit('no such luck')"], cwd=tmp_path)


def test_previews_are_compared_with_their_aims() -> None:
    def cost(cpu: float, seconds: float) -> Measurement:
        return Measurement(seconds=seconds, peak_bytes=0, cpu_seconds=cpu)

    stack, pack = against_aims(cost(4.0, 2.0), cost(5.0, 2.6), cost(5.5, 2.8))
    assert stack == (
        "The local stack, to as many ConfigMaps: 1.30 of the time, 1.25 of the CPU. Aim: at most 1.25 (not met)."
    )
    assert pack == (
        "The local stack with the pack, to without: 1.08 of the time, 1.10 of the CPU. Aim: at most 1.10 (met)."
    )


ONE = Cost(cpu_seconds=1.0, bytes=2**20)
MOVES = Measured(
    jobs=2,
    move=Wave(steps=(Steps(gone=0.4, bound=1.0, decided=0.1, resumed=0.6),) * 2, fallback=ONE, jobset=ONE),
    restart=Wave(
        steps=(Steps(gone=0.5, bound=2.0),) * 2, fallback=ONE, jobset=Cost(cpu_seconds=2, bytes=2**22)
    ),
)


def test_a_move_is_measured_once_it_is_finished() -> None:
    steps = move_of(moved().trace, after(100), 2, "spot-b")
    assert steps == Steps(gone=1.0, bound=3.5, decided=0.2, resumed=2.0), "each step since the eviction"
    watched = TimelineBuilder().job(0, phase="Running", pool="spot-a").gang(0).evicted(100)
    watched.job(100, phase="Suspending", pool="spot-b", suspended=True)
    assert move_of(watched.trace, after(99), 2, "spot-b") is None


def test_a_restart_is_measured_on_the_same_tier() -> None:
    watched = TimelineBuilder().job(0, phase="Running", pool="spot-a").gang(0).evicted(100)
    assert restart_of(watched.trace, after(99.5), 2) is None
    watched.gang(103, attempt=1)
    assert restart_of(watched.trace, after(99.5), 2) == Steps(gone=1.5, bound=4.5)


def test_a_spread_has_two_percentiles_and_cpu_is_a_difference() -> None:
    found = spread(range(101))
    assert found.median == 50
    assert 94 <= found.most <= 96
    assert spread([3.0]).most == 3.0
    spent = between(ONE, Cost(cpu_seconds=4.0, bytes=2**21))
    assert (spent.cpu_seconds, spent.bytes) == (3.0, 2**21)


def test_the_tables_compare_moves_with_restarts() -> None:
    move, restart = time_rows(MOVES)
    assert len(move) == len(restart) == len(TIMES)
    assert move == ("2", "move", "0.10 s", "0.40 s", "0.60 s", "1.00 s", "1.00 s", "0.50")
    assert restart[2:5] == ("–", "0.50 s", "–")
    costs = cost_rows(MOVES)
    assert {len(row) for row in costs} == {len(COSTS)}
    assert costs[1][2:] == ("1.00 s", "2.00 s", "0.50", "1 MiB", "4 MiB", "0.25")


def test_the_last_table_says_of_each_aim_whether_it_is_reached() -> None:
    rows = aim_rows(MOVES)
    assert {len(row) for row in rows} == {len(AIMS)}
    assert [row[2:] for row in rows] == [
        ("0.50", "1.05", "yes"),
        ("0.50", "1.05", "yes"),
        ("1.00", "1.50", "yes"),
    ]
    slow = replace(
        MOVES, move=replace(MOVES.restart, fallback=Cost(cpu_seconds=4, bytes=1)), restart=MOVES.move
    )
    assert [(row[2], row[4]) for row in aim_rows(slow)] == [("2.00", "no"), ("2.00", "no"), ("2.00", "no")]
    idle = replace(MOVES, move=replace(MOVES.move, jobset=Cost(cpu_seconds=0, bytes=1)))
    assert aim_rows(idle)[-1][2:] == ("–", "1.50", "–")
