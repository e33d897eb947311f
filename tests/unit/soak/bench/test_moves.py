"""What was seen of jobs becomes seconds, and those a table."""

from __future__ import annotations

from tests.soak.bench.moves import Cost, Measured, Steps, Wave, between, move_of, restart_of, spread
from tests.soak.bench.moves_report import COSTS, TIMES, cost_rows, time_rows
from tests.support.witnessed import Watched, after, moved

ONE = Cost(cpu_seconds=1.0, bytes=2**20)
MEASURED = Measured(
    jobs=2,
    move=Wave(steps=(Steps(gone=0.4, bound=1.0, decided=0.1, resumed=0.6),) * 2, fallback=ONE, jobset=ONE),
    restart=Wave(
        steps=(Steps(gone=0.5, bound=2.0),) * 2, fallback=ONE, jobset=Cost(cpu_seconds=2, bytes=2**22)
    ),
)


def test_a_move_is_measured_from_the_eviction_to_the_last_node() -> None:
    steps = move_of(moved().trace, after(100), 2, "spot-b")
    assert steps == Steps(gone=1.0, bound=3.5, decided=0.2, resumed=2.0), "each step since the eviction"


def test_a_move_that_is_not_over_is_not_measured() -> None:
    watched = Watched().job(0, phase="Running", pool="spot-a").gang(0).evicted(100)
    watched.job(100, phase="Suspending", pool="spot-b", suspended=True)
    assert move_of(watched.trace, after(99), 2, "spot-b") is None, "nothing runs yet"


def test_a_restart_is_measured_on_the_same_tier() -> None:
    watched = Watched().job(0, phase="Running", pool="spot-a").gang(0).evicted(100)
    assert restart_of(watched.trace, after(99.5), 2) is None, "its pods are not back"
    watched.gang(103, attempt=1)
    assert restart_of(watched.trace, after(99.5), 2) == Steps(gone=1.5, bound=4.5), "and now they are"


def test_figures_are_told_by_their_middle_and_their_slow_end() -> None:
    found = spread(range(101))
    assert found.median == 50, "half of them are below"
    assert 94 <= found.most <= 96, "and 19 of 20 below this"
    assert spread([3.0]).most == 3.0, "one figure is both"


def test_what_was_spent_is_a_difference_and_what_is_held_is_not() -> None:
    spent = between(ONE, Cost(cpu_seconds=4.0, bytes=2**21))
    assert (spent.cpu_seconds, spent.bytes) == (3.0, 2**21), "memory is what is held at the end"


def test_moves_stand_beside_restarts() -> None:
    move, restart = time_rows(MEASURED)
    assert len(move) == len(restart) == len(TIMES), "a cell for each head"
    assert move == ("2", "move", "0.10 s", "0.40 s", "0.60 s", "1.00 s", "1.00 s", "0.50"), (
        "half of a restart"
    )
    assert restart[2:5] == ("–", "0.50 s", "–"), "a restart suspends nothing"
    costs = cost_rows(MEASURED)
    assert {len(row) for row in costs} == {len(COSTS)}, "a cell for each head"
    assert costs[1][2:] == ("1.00 s", "2.00 s", "0.50", "1 MiB", "4 MiB", "0.25"), "beside JobSet's own"
