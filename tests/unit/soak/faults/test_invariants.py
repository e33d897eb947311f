"""The invariants of a fault run."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from pulumi_holdfast.ladder.ladder import Policy, Tier
from tests.soak.faults.invariants import check_records, deviations
from tests.soak.faults.observations import Record
from tests.support.builders.job_timelines import TimelineBuilder, after, moved

POLICY = Policy(
    tiers=(
        Tier(pool="spot-a", max_failures=1, procurement_timeout=timedelta(seconds=20)),
        Tier(pool="spot-b", max_failures=2, procurement_timeout=timedelta(seconds=20)),
        Tier(pool="cpu"),
    ),
    outage_window=timedelta(seconds=8),
)


def record(watched: TimelineBuilder, vanished: Mapping[str, datetime] | None = None) -> Record:
    return Record(trace=watched.trace, pods=2, vanished=vanished or {}, until=after(200))


def test_only_a_move_after_the_allowed_evictions_is_correct() -> None:
    assert deviations(record(moved()), POLICY) == []
    patient = replace(POLICY, tiers=(replace(POLICY.tiers[0], max_failures=3), *POLICY.tiers[1:]))
    (problem, *_) = deviations(record(moved()), patient)
    assert "it left spot-a for spot-b, though its tier had cost 1 outages" in problem


def test_a_missing_move_is_found() -> None:
    watched = TimelineBuilder().job(0, phase="Waiting", pool="spot-a").gang(0)
    watched.job(1.5, phase="Running", pool="spot-a").evicted(100)
    watched.job(102, phase="Running", pool="spot-a", restarts=1).gang(102, attempt=1, node="n2")
    problems = deviations(record(watched), POLICY)
    assert any("should have moved to spot-b" in problem for problem in problems)


def test_a_job_that_stays_suspended_is_found() -> None:
    watched = TimelineBuilder().job(0, phase="Waiting", pool="spot-a").gang(0)
    watched.job(1.5, phase="Running", pool="spot-a").evicted(100)
    watched.job(100.2, phase="Suspending", pool="spot-b", suspended=True)
    assert deviations(record(watched), POLICY) == ["it is suspended (Suspending)"]


def test_a_resume_before_the_last_pod_has_ended_is_found() -> None:
    watched = TimelineBuilder().job(0, phase="Waiting", pool="spot-a").gang(0)
    watched.job(1.5, phase="Running", pool="spot-a")
    watched.evicted(100)
    for uid, pod in watched.trace.pods.items():
        watched.trace.pods[uid] = replace(pod, ended_at=after(150))
    watched.job(100.2, phase="Suspending", pool="spot-b", suspended=True)
    watched.job(110, phase="Waiting", pool="spot-b", moves=1).gang(110, pool="spot-b")
    watched.job(112, phase="Running", pool="spot-b", moves=1)
    problems = deviations(record(watched), POLICY)
    assert any("resumed at 12:01:50 with" in problem for problem in problems)


def test_a_move_for_lack_of_capacity_needs_the_whole_procurement_timeout() -> None:
    for waited, is_right in ((21, True), (9, False)):
        watched = TimelineBuilder().job(0, phase="Waiting", pool="spot-a")
        watched.job(waited, phase="Suspending", pool="spot-b", suspended=True)
        watched.job(waited + 1, phase="Waiting", pool="spot-b", moves=1).gang(waited + 1, pool="spot-b")
        watched.job(waited + 3, phase="Running", pool="spot-b", moves=1)
        assert (deviations(record(watched), POLICY) == []) is is_right, f"after {waited} s of 20"


@pytest.mark.parametrize(
    ("begun", "left", "is_right"),
    [(0.5, 21, True), (0.5, 12, False), (-10, 12, False), (None, 21, False)],
    ids=["the whole timeout", "too early", "backdated", "not written"],
)
@pytest.mark.parametrize("is_resumed", [False, True], ids=["first tier", "next tier"])
def test_a_wait_begins_when_the_controller_decided_on_the_write_that_is_seen_later(
    begun: float | None, left: float, *, is_resumed: bool, is_right: bool
) -> None:
    watched, start, pool, target, moves = TimelineBuilder().job(0), 0.0, "spot-a", "spot-b", 0
    if is_resumed:
        watched.job(0.1, phase="Waiting", pool="spot-a")
        watched.job(21, phase="Suspending", pool="spot-b", suspended=True)
        start, pool, target, moves = 21.0, "spot-b", "cpu", 1
    since = {} if begun is None else {"waiting_since": after(start + begun).isoformat()}
    watched.job(start + 6, phase="Waiting", pool=pool, moves=moves, **since)
    watched.job(start + left, phase="Suspending", pool=target, moves=moves, suspended=True)
    resumed = start + left + 1
    watched.job(resumed, phase="Waiting", pool=target, moves=moves + 1).gang(resumed, pool=target)
    watched.job(resumed + 2, phase="Running", pool=target, moves=moves + 1)
    found = deviations(record(watched), POLICY)
    assert (found == []) is is_right, f"seen 6 s late, it left {left} s after it could wait, of 20: {found}"


def test_a_failback_needs_a_policy_with_return_after() -> None:
    watched = moved()
    watched.job(150, phase="Suspending", pool="spot-a", moves=1, suspended=True)
    for uid, pod in watched.trace.pods.items():
        watched.trace.pods[uid] = replace(pod, ended_at=pod.ended_at or after(150))
    watched.job(155, phase="Waiting", pool="spot-a", moves=2)
    watched.gang(155, attempt=5, node="n9").job(157, phase="Running", pool="spot-a", moves=2)
    returning = replace(POLICY, return_after=timedelta(seconds=40))
    assert deviations(record(watched), returning) == []
    assert deviations(record(watched), POLICY)


def test_a_lost_node_counts_as_a_loss() -> None:
    watched = TimelineBuilder().job(0, phase="Waiting", pool="spot-a").gang(0)
    watched.job(1.5, phase="Running", pool="spot-a")
    for uid, pod in watched.trace.pods.items():
        watched.trace.pods[uid] = replace(pod, ended_at=after(103))
    watched.job(102, phase="Suspending", pool="spot-b", suspended=True)
    watched.job(104, phase="Waiting", pool="spot-b", moves=1).gang(104, pool="spot-b", node="n2")
    watched.job(106, phase="Running", pool="spot-b", moves=1)
    vanished = {"n1-0": after(100)}
    assert deviations(record(watched, vanished), POLICY) == []
    assert deviations(record(watched), POLICY)


@pytest.mark.parametrize(
    ("is_ray", "kill", "is_right"),
    [(True, 100.5, True), (True, 180, False), (True, None, False), (False, 100.5, False)],
)
def test_only_a_killed_controller_may_not_know_of_an_evicted_worker_of_a_rayjob(
    is_ray: bool, kill: float | None, is_right: bool
) -> None:
    watched = TimelineBuilder().job(0, phase="Waiting", pool="spot-a").gang(0)
    watched.job(1.5, phase="Running", pool="spot-a").evicted(100).gang(101, attempt=1, node="n2")
    pods = watched.trace.pods
    if is_ray:
        head = replace(next(iter(pods.values())), uid="head", name="head", is_head=True, lost_at=None)
        pods["head"] = replace(head, leaving_at=None, ended_at=None)
    kills = () if kill is None else (after(kill),)
    found = deviations(replace(record(watched), kills=kills), POLICY)
    assert (found == []) is is_right


def test_only_a_killed_controller_may_notice_a_lost_node_late() -> None:
    watched = TimelineBuilder().job(0, phase="Waiting", pool="spot-a").gang(0)
    watched.job(1.5, phase="Running", pool="spot-a")
    watched.evicted(100)
    watched.job(101.5, phase="Running", pool="spot-a", restarts=1, evictions=1).gang(
        102, attempt=1, node="n2"
    )
    for uid, pod in watched.trace.pods.items():
        if pod.attempt == 1:
            watched.trace.pods[uid] = replace(pod, ended_at=after(133))
    # Within the window of the eviction; counted when a controller led again, 30 s later.
    watched.job(131, phase="Suspending", pool="spot-b", suspended=True, restarts=1, evictions=2)
    watched.job(134, phase="Waiting", pool="spot-b", moves=1, restarts=1).gang(134, pool="spot-b")
    watched.job(136, phase="Running", pool="spot-b", moves=1, restarts=1)
    two = replace(POLICY, tiers=(Tier(pool="spot-a", max_failures=2), *POLICY.tiers[1:]))
    seen = record(watched, {"n2-0": after(105)})
    assert deviations(seen, two)
    assert deviations(replace(seen, kills=(after(106),)), two) == []


@pytest.mark.parametrize("second_bound_at", [None, 10.8], ids=["half placed", "placed while it was decided"])
@pytest.mark.parametrize(("away", "is_right"), [(125, True), (30, False)])
def test_a_gang_that_yields_stays_suspended_for_its_pause(
    second_bound_at: float | None, away: int, *, is_right: bool
) -> None:
    watched = TimelineBuilder().job(0, phase="Waiting", pool="spot-a").gang(0)
    first, second = watched.trace.pods
    for uid, bound_at in ((first, after(1)), (second, second_bound_at and after(second_bound_at))):
        watched.trace.pods[uid] = replace(watched.trace.pods[uid], bound_at=bound_at, ended_at=after(12))
    watched.job(11, phase="Suspending", pool="spot-a", suspended=True)
    watched.job(12.2, phase="Paused", pool="spot-a", suspended=True)
    watched.job(11 + away, phase="Waiting", pool="spot-a").gang(11 + away, attempt=1, node="n2")
    watched.job(13 + away, phase="Running", pool="spot-a")
    assert (deviations(record(watched), POLICY) == []) is is_right


def late_to_yield() -> TimelineBuilder:
    """A gang that loses a pod, waits half placed, and yields when all of it has had nodes again for 8 s."""
    watched = TimelineBuilder().job(0, phase="Waiting", pool="spot-b").gang(0, pool="spot-b")
    first, second = watched.trace.pods
    for uid, bound_at in ((first, after(1)), (second, after(12))):
        watched.trace.pods[uid] = replace(watched.trace.pods[uid], bound_at=bound_at, ended_at=after(21))
    watched.job(20, phase="Suspending", pool="spot-b", suspended=True)
    watched.job(145, phase="Waiting", pool="spot-b").gang(145, pool="spot-b", attempt=1, node="n2")
    return watched.job(147, phase="Running", pool="spot-b")


def test_the_controller_may_act_on_facts_as_old_as_its_lag_or_its_restart() -> None:
    seen = record(late_to_yield())
    assert deviations(replace(seen, lag=timedelta(seconds=9)), POLICY) == []
    assert deviations(seen, POLICY)
    seen = record(late_to_yield())
    assert deviations(replace(seen, kills=(after(11),)), POLICY) == []
    assert deviations(replace(seen, kills=(after(30),)), POLICY)


def test_a_wait_begins_when_a_restarted_controller_notices_it() -> None:
    watched = TimelineBuilder().job(0, phase="Waiting", pool="spot-b").gang(0, pool="spot-b")
    first, second = watched.trace.pods
    watched.trace.pods[first] = replace(watched.trace.pods[first], ended_at=after(31))
    watched.trace.pods[second] = replace(watched.trace.pods[second], bound_at=None, ended_at=after(31))
    # It is said to have waited for 30 s of 20; who came back after 15 s knows of 15 and yields at half of the limit.
    watched.job(30, phase="Suspending", pool="spot-b", suspended=True)
    watched.job(150, phase="Waiting", pool="spot-b").gang(150, pool="spot-b", attempt=1, node="n2")
    watched.job(152, phase="Running", pool="spot-b")
    seen = record(watched)
    assert deviations(replace(seen, kills=(after(0.5),)), POLICY) == []
    assert deviations(seen, POLICY), "a controller that ran all the time would have moved the job"


def test_the_controller_may_act_on_a_loss_before_it_is_recorded() -> None:
    watched = TimelineBuilder().job(0, phase="Waiting", pool="spot-a").gang(0)
    watched.job(1.5, phase="Running", pool="spot-a").evicted(100)
    for uid, pod in watched.trace.pods.items():
        watched.trace.pods[uid] = replace(pod, ended_at=after(103))
    watched.job(98, phase="Suspending", pool="spot-b", suspended=True)
    watched.job(104, phase="Waiting", pool="spot-b", moves=1).gang(104, pool="spot-b", node="n2")
    watched.job(106, phase="Running", pool="spot-b", moves=1)
    seen = record(watched)
    assert deviations(seen, POLICY) == []
    assert deviations(replace(seen, lag=timedelta(seconds=1)), POLICY)


def test_a_restarted_controller_may_miss_a_lost_node_without_pods() -> None:
    watched = late_to_yield()
    seen = record(watched, {"n1-1": after(12.5)})
    for uid, pod in watched.trace.pods.items():
        if pod.attempt == 0:
            watched.trace.pods[uid] = replace(pod, leaving_at=after(20.5))
    one = replace(
        POLICY, tiers=(POLICY.tiers[0], replace(POLICY.tiers[1], max_failures=1), *POLICY.tiers[2:])
    )
    assert deviations(seen, one), "a controller that noticed it would have moved the job"
    assert deviations(replace(seen, kills=(after(12.2),)), one) == []


ONE_FAILURE = Tier(pool="spot-a", max_failures=1)
OUTCOME_POLICY = Policy(tiers=(ONE_FAILURE, Tier(pool="spot-b")), outage_window=timedelta(seconds=8))
PATIENT_POLICY = replace(
    OUTCOME_POLICY, tiers=(replace(ONE_FAILURE, max_failures=3), *OUTCOME_POLICY.tiers[1:])
)
MOVED_RECORD = Record(
    trace=moved().trace, pods=2, vanished={"n1-0": after(300)}, until=after(200), kills=(after(5),)
)


def test_a_result_without_problems_counts_jobs_and_has_no_timelines() -> None:
    outcome = check_records([MOVED_RECORD], OUTCOME_POLICY, overlaps=(), deaths=1, writes=7)
    assert (outcome.places, outcome.moves, outcome.problems) == ({"spot-b": 1}, 1, ())
    assert not outcome.seen


def test_two_gangs_of_a_job_at_the_same_time_are_a_problem() -> None:
    (problem,) = check_records(
        [MOVED_RECORD], OUTCOME_POLICY, overlaps=["train"], deaths=0, writes=0
    ).problems
    assert problem == "two gangs at once: train"


def test_a_reservation_that_no_job_needs_is_a_problem() -> None:
    outcome = check_records(
        [MOVED_RECORD], OUTCOME_POLICY, overlaps=(), others=["n0 is still reserved"], deaths=0, writes=0
    )
    assert outcome.problems == ("n0 is still reserved",)


def test_the_timeline_of_a_job_with_a_problem_is_in_order() -> None:
    outcome = check_records([MOVED_RECORD], PATIENT_POLICY, overlaps=(), deaths=0, writes=0)
    assert outcome.problems[0].startswith("train: at 12:01:")
    lines = outcome.seen["train"].splitlines()
    assert lines == sorted(lines)
    timeline = outcome.seen["train"]
    for what in (
        "phase=Suspending pool=spot-b",
        "is bound to n1-0",
        "is being deleted",
        "n1-0 vanishes",
        "is killed",
    ):
        assert what in timeline, f"{what}: {timeline}"
