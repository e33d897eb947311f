"""What a job's user sees of its position, and its history in sentences."""

from dataclasses import replace
from datetime import timedelta

import pytest

from pulumi_holdfast.cli.kubectl.history import NO_EVENTS, history_lines
from pulumi_holdfast.cli.kubectl.job_view import ROW_HEADS, cost_text, duration_text, job_row, job_view, table
from pulumi_holdfast.controller.jobs.patches import write_state
from pulumi_holdfast.controller.jobs.state import (
    FailbackAttempt,
    FailbackStage,
    JobState,
    Ledger,
    OutageKind,
    Phase,
    PoolUse,
    Purpose,
)
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import FINISH_BY, MAX_COST, STATE, STOP, CapacityType
from pulumi_holdfast.ladder.ladder import NoPolicy
from tests.support.builders.fallback_objects import UID, jobset
from tests.support.builders.job_states import HOUR, MINUTE, SECOND, T0, policy, running, suspending, waiting


def job_in(state: JobState | None, **annotations: str) -> Json:
    recorded = {} if state is None else {STATE: write_state(state)}
    return jobset(annotations={**recorded, **annotations})


def event(reason: str, minutes_ago: float, message: str = "It happened.", **fields: int | str) -> Json:
    at = (T0 - timedelta(minutes=minutes_ago)).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "reason": reason,
        "message": message,
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
        "type": "Normal",
        "involvedObject": {"uid": UID},
        **fields,
    }


def cells(state: JobState | None, *events: Json) -> dict[str, str]:
    return dict(zip(ROW_HEADS, job_row(job_view(job_in(state), policy(), events), T0), strict=True))


def test_running_job_has_tier_failures_cost_and_its_latest_event() -> None:
    used = PoolUse(pool="a-spot", node_time=31 * HOUR, ran=31 * HOUR, cost=12.4)
    ledger = Ledger(counted_from=T0 - HOUR, counted_until=T0, uses=(used,))
    state = running(uid=UID, evictions=1, unexplained=1, ledger=ledger)
    row = cells(state, event("Placed", 50), event("OutageCounted", 5), event("Moved", 55))
    assert (row["TIER"], row["POOL"], row["PHASE"]) == ("1 of 3", "a-spot", "Running")
    assert row["FAILURES"] == "2 of 3"
    assert row["COST"] == "12.40 (31.0 node-hours)"
    assert row["LAST REASON"] == "OutageCounted (5m ago)"


def test_refused_job_has_the_reason_after_its_events_are_gone() -> None:
    row = cells(running(uid=UID, phase=Phase.REFUSED, refusal="No pod of it can be created."))
    assert (row["PHASE"], row["LAST REASON"]) == ("Refused", "Refused: No pod of it can be created.")


def test_waiting_job_has_the_time_at_which_it_moves_on() -> None:
    row = cells(waiting(uid=UID, waiting_since=T0 - 4 * MINUTE, waited=MINUTE))
    assert row["WAITING"] == "4m", "since its last pause"
    assert row["NEXT LIMIT"] == "moves to b-spot without nodes in 10m"


def test_deadline_that_comes_before_every_other_limit_is_the_next_limit() -> None:
    soon = (T0 + 2 * MINUTE).isoformat()
    job = job_in(waiting(uid=UID), **{FINISH_BY: soon})
    assert job_view(job, policy(), ()).next_limit == "must have finished"


@pytest.mark.parametrize("written", ["2030-05-01", "2030-05-01T12:02:00", "soon"])
def test_deadline_that_the_controller_does_not_use_is_no_limit(written: str) -> None:
    job = job_in(waiting(uid=UID), **{FINISH_BY: written})
    assert job_view(job, policy(), ()).next_limit != "must have finished"


def test_job_with_a_limit_of_cost_shows_what_it_has_spent_of_it() -> None:
    used = PoolUse(pool="on-demand", capacity=CapacityType.ON_DEMAND, node_time=2 * HOUR, ran=HOUR, cost=8.0)
    ledger = Ledger(counted_from=T0, counted_until=T0, uses=(used,))
    view = job_view(job_in(running(uid=UID, ledger=ledger), **{MAX_COST: "250"}), policy(), ())
    assert cost_text(view) == "8.00 (2.0 node-hours, 8.00 of max-cost 250)"
    held = running(uid=UID, phase=Phase.PAUSED, purpose=Purpose.RESTART, resume_at=T0 + MINUTE)
    assert job_view(job_in(held), policy(), ()).next_limit == "compares prices again"


def test_job_on_spot_shows_what_it_saves_against_its_work_on_demand() -> None:
    used = PoolUse(pool="a-spot", capacity=CapacityType.SPOT, node_time=20 * HOUR, ran=5 * HOUR, cost=12.0)
    ledger = Ledger(
        counted_from=T0, counted_until=T0, uses=(used,), worked=4 * HOUR, lost=HOUR, gang_time=20 * HOUR
    )
    ladder = policy()
    priced = replace(ladder, tiers=(*ladder.tiers[:-1], replace(ladder.tiers[-1], price=3.0)))
    job = job_in(running(uid=UID, ledger=ledger))
    view = job_view(job, priced, ())
    assert cost_text(view) == "12.00 (20.0 node-hours, saved 36.00)", "4 h of work on 4 nodes of 3.00"
    assert job_view(job, ladder, ()).saved is None, "no price of an on-demand node is known"
    paid = PoolUse(pool="c", capacity=CapacityType.ON_DEMAND, node_time=HOUR, cost=2.0)
    moved = replace(ledger, uses=(used, paid))
    found = job_view(job_in(running(uid=UID, ledger=moved)), priced, ()).saved
    assert found == pytest.approx(18.0), "what it paid there counts before what is declared"


def test_job_on_a_lower_tier_may_return_at_the_time_that_the_ladder_says() -> None:
    state = running(uid=UID, pool="b-spot", rank=1, short_failbacks=1)
    view = job_view(job_in(state), policy(return_after=HOUR), ())
    assert view.next_limit == "may return to a-spot"
    assert view.next_limit_at == T0 + HOUR


@pytest.mark.parametrize(
    ("job", "ladder", "words"),
    [
        (job_in(None), NoPolicy(), "no FallbackPolicy"),
        (job_in(None), policy(), "has not recorded it"),
        (job_in(running(uid=UID), **{STOP: "true"}), policy(), "stopped by its annotation"),
        ({**job_in(None), "metadata": {"name": "train", "uid": UID}}, policy(), "does not follow"),
    ],
)
def test_job_for_which_the_ladder_does_nothing_has_the_reason(
    job: Json, ladder: NoPolicy, words: str
) -> None:
    note = job_view(job, ladder, ()).note
    assert note is not None, "a user must not wait for what does not come"
    assert words in note


def test_record_of_another_job_is_not_shown() -> None:
    assert job_view(job_in(running(uid="another")), policy(), ()).pool is None


def test_history_is_shown_oldest_first_and_then_where_the_job_stands() -> None:
    state = running(
        uid=UID,
        evictions=1,
        outage_kind=OutageKind.EVICTION,
        outage_counted_at=T0 - 5 * MINUTE,
        moves=2,
        failback=FailbackAttempt(pool="a-spot", stage=FailbackStage.RESERVING, since=T0),
    )
    told = [event("Moved", 5, "Second."), event("Placed", 50, "First.", count=3)]
    lines = history_lines(job_in(state), policy(), told, T0)
    assert lines[0].startswith("2030-05-01 11:10:00  Placed: First. (3 times")
    assert lines[1] == "2030-05-01 11:55:00  Moved: Second."
    assert "tier 1 of 3, since 2030-05-01 11:00:00 (1h); it has moved 2 times." in lines[3]
    assert "at 3 the job moves on; the last was an eviction, counted at 2030-05-01 11:55:00." in lines[4]
    assert lines[5].startswith("Capacity in a-spot is being reserved")


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (suspending(uid=UID), "to move to b-spot"),
        (suspending(uid=UID, purpose=Purpose.RESTART), "It is suspended to restart on b-spot."),
        (
            running(uid=UID, phase=Phase.PAUSED, resume_at=T0 + MINUTE),
            "it is resumed at 2030-05-01 12:01:00 (in 1m)",
        ),
        (running(uid=UID, phase=Phase.STOPPED), "`kubectl holdfast resume` does"),
        (running(uid=UID, phase=Phase.GIVEN_UP), "It was given up"),
        (running(uid=UID, phase=Phase.REFUSED, refusal="Its image is x."), "to its end: Its image is x."),
    ],
)
def test_each_phase_is_shown_with_what_ends_it(state: JobState, words: str) -> None:
    lines = history_lines(job_in(state), policy(), (), T0)
    assert lines[0] == NO_EVENTS
    assert any(words in line for line in lines)


@pytest.mark.parametrize(
    ("told", "words"),
    [
        ([event("HeadLost", 0)], "because its head was lost."),
        ([event("HeadLost", 50), event("PriceAboveMax", 0)], "costs more than the tier's maxPrice"),
        (
            [event("StateUnreadable", 0), event("SlowSuspension", 0)],
            "another version of the fallback controller",
        ),
        ([event("HeadLost", 50)], "restart on b-spot."),
        ([], "restart on b-spot."),
    ],
)
def test_restart_has_the_cause_that_its_event_names(told: list[Json], words: str) -> None:
    state = suspending(uid=UID, purpose=Purpose.RESTART, suspended_at=T0 - 10 * SECOND)
    (line,) = (each for each in history_lines(job_in(state), policy(), told, T0) if "to restart on" in each)
    assert words in line


def paused(purpose: Purpose | None) -> JobState:
    return running(uid=UID, phase=Phase.PAUSED, purpose=purpose, resume_at=T0 + MINUTE)


@pytest.mark.parametrize(
    ("purpose", "said", "not_said"),
    [
        (Purpose.YIELD, "two jobs each had a part", "maxPrice"),
        (Purpose.RESTART, "a node of a-spot costs more than its tier's maxPrice", "two jobs"),
        (Purpose.FAILOVER, "a node of a-spot costs more than its tier's maxPrice", "two jobs"),
        (None, "It is suspended for a while.", "two jobs"),
    ],
)
def test_pause_has_its_own_cause(purpose: Purpose | None, said: str, not_said: str) -> None:
    text = " ".join(history_lines(job_in(paused(purpose)), policy(), (), T0))
    assert said in text
    assert not_said not in text


def test_pause_of_a_job_that_yielded_may_go_on_for_the_price() -> None:
    first = replace(policy().tiers[0], max_price=2.0)
    ladder = replace(policy(), tiers=(first, *policy().tiers[1:]))
    text = " ".join(history_lines(job_in(paused(Purpose.YIELD)), ladder, (), T0))
    assert "two jobs each had a part" in text
    assert "while a node of a-spot costs more" in text


@pytest.mark.parametrize(
    ("duration", "words"),
    [
        (-SECOND, "0s"),
        (45 * SECOND, "45s"),
        (61 * MINUTE, "1h1m"),
        (76 * HOUR, "3d4h"),
        (HOUR + SECOND, "1h"),
    ],
)
def test_durations_have_two_units_at_most(duration: timedelta, words: str) -> None:
    assert duration_text(duration) == words


def test_table_is_aligned_as_kubectls() -> None:
    assert table(("A", "LONG"), [("x" * 4, "y")]) == "A      LONG\nxxxx   y"
