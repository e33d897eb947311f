"""The simulated program of a job with a deadline, and whose fault it is when the job is late."""

from datetime import datetime, timedelta
from typing import Final

from tests.soak.faults.deadlines import RESTART_COST, WORK, late_by_fault, work_of
from tests.support.builders.job_timelines import TimelineBuilder, after

STARTED: Final = 1.0
ALL: Final = WORK.total_seconds() + 15 + STARTED


def waiting_for(seconds: float, *, suspended: bool) -> TimelineBuilder:
    """A job that runs on `spot-a` at once, and on `cpu` after so many seconds of a wait or a move."""
    watched = TimelineBuilder().job(0, phase="Waiting", pool="spot-a")
    phase = "Suspending" if suspended else "Waiting"
    watched.job(10, phase=phase, pool="spot-a", suspended=suspended)
    watched.job(10 + seconds, phase="Running", pool="cpu", moves=1)
    return watched.gang(10 + seconds, pool="cpu")


def late(
    watched: TimelineBuilder, until: float, finish_by: float, kills: tuple[datetime, ...] = ()
) -> str | None:
    return late_by_fault(
        watched.trace, 2, finish_by=after(finish_by), until=after(until), last_pool="cpu", kills=kills
    )


def test_a_program_works_while_its_whole_gang_runs_and_pays_for_each_start() -> None:
    watched = TimelineBuilder()
    assert work_of(watched.trace, 2, after(76)).done == timedelta(0)
    watched.gang(0)
    assert work_of(watched.trace, 2, after(76)).done == timedelta(seconds=60)
    assert work_of(watched.trace, 3, after(76)).done == timedelta(0)
    assert work_of(watched.trace, 2, after(900)).finished_at == after(ALL)
    watched.evicted(101).gang(120, attempt=1, node="n2")
    assert work_of(watched.trace, 2, after(156)).done == timedelta(seconds=85 + 20)


def test_a_job_that_keeps_its_deadline_or_has_time_left_is_not_late() -> None:
    watched = TimelineBuilder().job(0, phase="Running", pool="spot-a").gang(0)
    assert late(watched, 900, ALL + 1) is None
    assert late(watched, 50, 60) is None


def test_a_wait_on_spot_that_costs_the_deadline_is_a_fault_and_a_slow_move_is_not() -> None:
    most = ALL + RESTART_COST.total_seconds()
    said = late(waiting_for(200, suspended=False), 900, most)
    assert said is not None
    assert "its deadline was" in said
    assert late(waiting_for(200, suspended=True), 900, most) is None
    assert late(waiting_for(90, suspended=False), 900, most, kills=(after(12),)) is None
