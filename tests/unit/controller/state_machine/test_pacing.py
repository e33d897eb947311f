"""Jobs with a deadline: never late where on-demand is available, left alone while their slack suffices, warned in time."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pulumi_holdfast.analysis.simulation.job import JobPlan
from pulumi_holdfast.analysis.simulation.run import Steps, simulate
from pulumi_holdfast.controller.jobs.actions import EventReason, JobEvent
from pulumi_holdfast.controller.jobs.observation import Deadline, JobOutcome, Observation
from pulumi_holdfast.controller.jobs.patches import read_state, write_state
from pulumi_holdfast.controller.jobs.state import JobState, Pace, Phase
from pulumi_holdfast.controller.state_machine.decision import decide
from pulumi_holdfast.controller.state_machine.pacing import Pacing, pacing_of, track_pace
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.ladder import DeclaredFacts, Policy
from tests.support.builders.job_states import (
    HOUR,
    LAST,
    LOWER,
    MINUTE,
    SPOT,
    T0,
    kinds,
    loss,
    observed,
    pace_of,
    policy,
    reasons,
    running,
    state_of,
    waiting,
)
from tests.support.soak import sized

COST = 12 * MINUTE
PACED = policy(tiers=(SPOT, LAST), return_after=HOUR, restart_cost=COST, hold_timeout=MINUTE)
TWO_SPOT = policy(tiers=(SPOT, LOWER, LAST), return_after=HOUR, restart_cost=COST, hold_timeout=MINUTE)
NOTHING = timedelta(0)


def within(slack: timedelta, work: timedelta = 10 * HOUR, progress: float | None = None) -> Deadline:
    """A deadline that leaves so much slack at T0 to a job without progress."""
    return Deadline(finish_by=T0 + work + slack, work=work, progress=progress)


def on_spot(**pace: float | int | datetime | timedelta | None) -> JobState:
    """A job that trains on spot; its run counts from T0."""
    return running(pace=replace(Pace(counts_from=T0), **pace))  # type: ignore[arg-type]  # fields of Pace


def pacing_at(state: JobState, seen: Observation, ladder: Policy) -> Pacing:
    pacing = pacing_of(state, seen, ladder)
    assert pacing is not None
    return pacing


capacities = st.lists(
    st.tuples(st.integers(0, 36 * 60).map(lambda minutes: minutes * MINUTE), st.integers(0, 2)), max_size=40
)
costs = st.tuples(*[st.integers(0, 10).map(lambda minutes: minutes * MINUTE)] * 4)


def _steps(changes: Sequence[tuple[timedelta, int]]) -> list[tuple[datetime, int]]:
    at_first = {NOTHING: 1, **dict(sorted(changes))}
    return [(T0 + at, number) for at, number in sorted(at_first.items())]


@settings(max_examples=sized(15, soak=2000))
@given(
    first=capacities,
    second=capacities,
    cost=costs,
    slack_minutes=st.integers(0, 20 * 60),
    reports=st.booleans(),
    pods=st.sampled_from([1, 2]),
)
@example(
    first=[(9 * HOUR, 0)],
    second=[],
    cost=(NOTHING, COST, NOTHING, NOTHING),
    slack_minutes=0,
    reports=False,
    pods=1,
)
def test_a_job_is_never_late_where_on_demand_is_available_and_the_declared_restart_holds(
    first: list[tuple[timedelta, int]],
    second: list[tuple[timedelta, int]],
    cost: tuple[timedelta, timedelta, timedelta, timedelta],
    slack_minutes: int,
    *,
    reports: bool,
    pods: int,
) -> None:
    boot, restart, grace, repeated = cost
    declared = max(MINUTE, boot + restart + grace + repeated)
    ladder = replace(TWO_SPOT, restart_cost=declared)
    finish_by = T0 + 12 * HOUR + declared + slack_minutes * MINUTE
    plan = JobPlan(
        uid="job",
        created=T0,
        pool="a-spot",
        pods=pods,
        work=12 * HOUR,
        boot=boot,
        restart=restart,
        grace=grace,
        checkpoint_every=repeated or None,
        finish_by=finish_by,
        reports=reports,
    )
    pools = Steps(pools={"a-spot": _steps(first), "b-spot": _steps(second)})
    run = simulate([plan], ladder, pools, start=T0, until=finish_by + 24 * HOUR)
    (job,) = run.jobs
    assert job.outcome is JobOutcome.COMPLETED
    assert job.finished_at is not None
    assert job.finished_at <= finish_by
    late = [event.at for event in run.events if event.report.reason == "DeadlineMissed"]
    assert not late


def test_a_job_on_spot_whose_slack_suffices_is_left_alone() -> None:
    lost = tuple(loss(T0 - number * 10 * MINUTE, pod=f"p{number}") for number in range(5))
    spent = replace(on_spot(), evictions=9)
    seen = observed(losses=lost, deadline=within(6 * HOUR))
    assert "Suspend" not in [kind.__name__ for kind in kinds(decide(spent, seen, PACED))]
    assert "MaxFailuresReached" in reasons(
        decide(replace(spent, pace=None), replace(seen, deadline=None), PACED)
    )


@pytest.mark.parametrize(
    ("slack", "reason"), [(13 * MINUTE, None), (11 * MINUTE, "SlackSpent"), (2 * MINUTE, None)]
)
def test_a_job_on_spot_moves_to_the_last_tier_while_a_move_keeps_the_deadline(
    slack: timedelta, reason: str | None
) -> None:
    decision = decide(on_spot(), observed(deadline=within(slack)), TWO_SPOT)
    assert [each for each in reasons(decision) if each == "SlackSpent"] == ([reason] if reason else [])
    if reason:
        assert state_of(decision).pool == "on-demand"


def test_a_job_waits_for_spot_as_long_as_its_slack_allows() -> None:
    limits: list[timedelta] = []
    for slack in (30 * MINUTE, 4 * HOUR, 20 * HOUR):
        state = waiting(pace=Pace())
        pacing = pacing_at(state, observed(pods_placed=0, deadline=within(slack)), PACED)
        limits.append(pacing.wait_limit)
    assert limits[0] == MINUTE
    assert limits[0] < limits[1] < limits[2]
    assert limits[2] < 10 * HOUR
    later = observed(now=T0 + limits[1], pods_placed=0, pods_started=0, deadline=within(4 * HOUR))
    decision = decide(waiting(pace=Pace()), later, PACED)
    assert "SlackSpent" in reasons(decision)
    assert state_of(decision).pool == "on-demand"
    before = replace(later, now=later.now - MINUTE)
    waits = decide(waiting(pace=Pace()), before, PACED)
    assert (waits.requeue_at, reasons(waits)) == (later.now, [])


def test_a_job_without_slack_for_a_return_stays_on_the_last_tier() -> None:
    lower = running(pool="on-demand", rank=1, since=T0 - 9 * HOUR, pace=Pace(counts_from=T0))
    seen = observed(pool="on-demand", deadline=within(25 * MINUTE))
    assert "FailbackStarted" in reasons(decide(lower, seen, PACED))
    tight = replace(seen, deadline=within(23 * MINUTE))
    assert "FailbackStarted" not in reasons(decide(lower, tight, PACED))
    never = replace(PACED, return_after=None)
    assert "FailbackStarted" not in reasons(decide(lower, seen, never))


def test_a_return_under_way_ends_when_the_slack_is_spent() -> None:
    lower = running(pool="on-demand", rank=1, since=T0 - 9 * HOUR, pace=Pace(counts_from=T0))
    begun = decide(lower, observed(pool="on-demand", deadline=within(HOUR)), PACED)
    ended = decide(begun.state, observed(pool="on-demand", deadline=within(20 * MINUTE)), PACED)
    assert "FailbackEnded" in reasons(ended), "an interruption after it would make the job late"


def test_reported_progress_is_believed_before_the_clock() -> None:
    state = on_spot()
    slow = observed(now=T0 + 2 * HOUR, deadline=within(HOUR, progress=0.1))
    pacing = pacing_at(track_pace(state, slow, PACED), slow, PACED)
    assert pacing.left == 9 * HOUR
    assert pacing.slack == NOTHING
    silent = replace(slow, deadline=within(HOUR))
    pacing = pacing_at(track_pace(state, silent, PACED), silent, PACED)
    assert pacing.left == 8 * HOUR


def test_a_report_from_before_a_restart_does_not_say_that_the_restart_is_over() -> None:
    interrupted = on_spot(counts_from=None, work_done=5 * HOUR, progress=0.4)
    last_report = observed(deadline=within(HOUR, progress=0.48))
    restarting = track_pace(interrupted, last_report, PACED)
    assert restarting.pace == Pace(work_done=4.8 * HOUR, counts_from=T0 + COST, progress=0.48)
    runs = replace(last_report, now=T0 + 3 * MINUTE, deadline=within(HOUR, progress=0.485))
    pace = pace_of(track_pace(restarting, runs, PACED))
    assert pace.counts_from == runs.now


def test_a_job_that_waited_on_spot_restarts_when_it_is_placed_also_after_a_return() -> None:
    evicted = waiting(pace=Pace(work_done=5 * HOUR, progress=0.5), entered_by_failback=True, waiting_since=T0)
    placed = replace(observed(deadline=within(HOUR, progress=0.5)), now=T0 + HOUR)
    pace = pace_of(track_pace(evicted, placed, PACED))
    assert pace.counts_from == placed.now + COST


def test_a_program_that_stops_reporting_spends_slack() -> None:
    state = on_spot(progress=0.5, work_done=5 * HOUR)
    stuck = observed(now=T0 + HOUR, deadline=within(HOUR, progress=0.5))
    pacing = pacing_at(state, stuck, PACED)
    assert pacing.left == 5 * HOUR - COST


def test_a_report_that_says_nothing_new_is_not_recorded() -> None:
    state = on_spot()
    for minutes, share in ((3, 0.005), (5, 0.0083)):
        seen = observed(now=T0 + minutes * MINUTE, deadline=within(HOUR, progress=share))
        assert kinds(decide(state, seen, PACED)) == []
    slower = observed(now=T0 + 5 * MINUTE, deadline=within(HOUR, progress=0.001))
    assert kinds(decide(state, slower, PACED))


def test_lateness_is_announced_when_it_cannot_be_avoided_with_the_time_of_the_end() -> None:
    last = running(pool="on-demand", rank=1, pace=Pace(counts_from=T0))
    seen = observed(pool="on-demand", deadline=within(-95 * MINUTE))
    decision = decide(last, seen, PACED)
    (event,) = [each for each in decision.events if each.reason == "DeadlineMissed"]
    assert "about 2030-05-01 22:00 UTC" in event.message
    assert event.is_standing
    pace = pace_of(state_of(decision))
    assert pace.is_late
    in_time = decide(last, replace(seen, deadline=within(NOTHING)), PACED)
    assert "DeadlineMissed" not in reasons(in_time)


def test_a_suspension_ends_the_run_at_its_time() -> None:
    state = replace(on_spot(), phase=Phase.SUSPENDING, suspended_at=T0 + HOUR)
    seen = observed(now=T0 + 2 * HOUR, suspended=True, deadline=within(HOUR))
    pace = track_pace(state, seen, PACED).pace
    assert pace == Pace(work_done=HOUR)


def test_a_job_that_loses_its_deadline_follows_its_ladder_again() -> None:
    decision = decide(on_spot(), observed(), PACED)
    assert state_of(decision).pace is None


def test_a_ladder_of_spot_alone_paces_no_job() -> None:
    only_spot = replace(PACED, tiers=(SPOT, replace(LOWER, max_failures=-1)))
    last = replace(only_spot.tiers[1], facts=DeclaredFacts(capacity=CapacityType.SPOT))
    ladder = replace(only_spot, tiers=(SPOT, last))
    assert pacing_of(on_spot(), observed(deadline=within(HOUR)), ladder) is None


@given(
    st.builds(
        Pace,
        work_done=st.timedeltas(NOTHING, 700 * HOUR),
        counts_from=st.none() | st.just(T0),
        progress=st.none() | st.floats(0, 1),
        interruptions=st.integers(0, 1000),
        is_late=st.booleans(),
    )
)
def test_a_pace_is_read_as_it_was_written(pace: Pace) -> None:
    state = running(pace=pace)
    assert read_state(write_state(state)) == state


def test_a_late_job_that_waits_is_announced_again_only_when_it_is_twice_as_late() -> None:
    state = waiting(pool="on-demand", rank=1, pace=Pace())
    deadline = Deadline(finish_by=T0 + HOUR, work=10 * HOUR)
    late: list[JobEvent] = []
    for minutes in range(0, 120, 10):
        seen = observed(
            pool="on-demand", pods_placed=0, pods_started=0, now=T0 + minutes * MINUTE, deadline=deadline
        )
        decision = decide(state, seen, PACED)
        state = state_of(decision)
        late += [each for each in decision.events if each.reason is EventReason.DEADLINE_MISSED]
    assert len(late) == 12
    assert len({each.message for each in late}) > 5
    assert len({each.compared for each in late}) <= 2


def test_a_copy_continues_with_the_work_that_its_job_has_done() -> None:
    before = Deadline(finish_by=T0 + 14 * HOUR, work=48 * HOUR, done_before=40 * HOUR)
    first = decide(None, observed(deadline=before, pods_placed=0, pods_started=0), PACED)
    late = {EventReason.SLACK_SPENT, EventReason.DEADLINE_MISSED}
    assert not late & set(reasons(first))
    pace = pace_of(state_of(first))
    assert pace.work_done == 40 * HOUR
    reported = replace(before, progress=0.5)
    later = state_of(decide(first.state, observed(deadline=reported, now=T0 + HOUR), PACED))
    assert pace_of(later).work_done == 24 * HOUR


@pytest.mark.parametrize(
    "seen",
    [
        pytest.param(observed(restarts=1, follows=False), id="without its label"),
        pytest.param(observed(restarts=1, pool="elsewhere"), id="not on its ladder"),
        pytest.param(observed(restarts=1, not_suspendable_reason="its spec"), id="not suspendable"),
    ],
)
def test_a_restart_of_a_job_that_is_left_alone_is_not_written_again_and_again(seen: Observation) -> None:
    limited = replace(seen, deadline=within(5 * HOUR))
    first = decide(on_spot(), limited, PACED)
    second = decide(first.state, replace(limited, now=T0 + MINUTE), PACED)
    assert not second.actions
