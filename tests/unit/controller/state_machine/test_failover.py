"""Failover: a job moves when its tier's limits are spent or its capacity is missing, and is given up if the policy says so."""

from dataclasses import replace
from functools import partial

import pytest

from pulumi_holdfast.controller.jobs.actions import ForceDelete, Suspend
from pulumi_holdfast.controller.jobs.observation import PoolStatus
from pulumi_holdfast.controller.jobs.state import Phase, Purpose
from pulumi_holdfast.controller.state_machine.decision import decide
from pulumi_holdfast.controller.state_machine.failover import (
    HEAD_TIMEOUT,
    MAX_HEAD_RESTARTS,
    MISSING_POOL_GRACE,
)
from pulumi_holdfast.controller.state_machine.tier_visit import PODS_CREATED_WITHIN
from pulumi_holdfast.ladder.ladder import UNLIMITED, Failures
from tests.support.builders.job_states import (
    HOUR,
    LAST,
    MINUTE,
    SECOND,
    T0,
    kinds,
    loss,
    observed,
    observed_suspended,
    only,
    policy,
    reasons,
    running,
    state_of,
    tier,
    waiting,
)

NOT_THERE = PoolStatus(exists=False)


on_last = partial(running, pool="on-demand", rank=2)


def test_the_last_allowed_failure_moves_the_job() -> None:
    decision = decide(running(evictions=2), observed(losses=(loss(),)), policy())
    suspend = only(decision, Suspend)
    assert suspend.pool == "b-spot"
    assert (suspend.state.phase, suspend.state.purpose) == (Phase.SUSPENDING, Purpose.FAILOVER)
    assert "MaxFailuresReached" in reasons(decision)
    decision = decide(running(evictions=1), observed(losses=(loss(),)), policy())
    assert Suspend not in kinds(decision)
    assert state_of(decision).evictions == 2


def test_with_max_failures_0_the_first_failure_moves_the_job() -> None:
    ladder = policy(tiers=(tier(max_failures=0), LAST))
    assert Suspend not in kinds(decide(running(), observed(), ladder))
    assert only(decide(running(), observed(losses=(loss(),)), ladder), Suspend).pool == "on-demand"


@pytest.mark.parametrize("max_failures", [UNLIMITED, None])
def test_with_max_failures_minus_1_failures_never_move_the_job(max_failures: int | None) -> None:
    ladder = policy(tiers=(tier(max_failures=max_failures), LAST))
    decision = decide(running(evictions=10_000), observed(losses=(loss(),)), ladder)
    assert Suspend not in kinds(decision)


def test_the_procurement_timeout_moves_a_waiting_job() -> None:
    decision = decide(waiting(), observed(pods_placed=0, now=T0 + MINUTE), policy())
    assert decision.requeue_at == T0 + 15 * MINUTE
    short = observed(pods_placed=3, now=T0 + 15 * MINUTE)
    decision = decide(waiting(), short, policy())
    assert only(decision, Suspend).pool == "b-spot"
    assert "NoCapacity" in reasons(decision)
    lost = observed(losses=(loss(),), pods_placed=0)
    first = state_of(decide(running(), lost, policy()))
    assert (first.phase, first.waiting_since) == (Phase.WAITING, T0)
    late = observed(losses=(loss(),), pods_placed=0, now=T0 + 15 * MINUTE)
    assert only(decide(first, late, policy()), Suspend).pool == "b-spot"


def test_pods_that_do_not_start_are_reported_and_do_not_move_the_job() -> None:
    stuck = observed(pods_started=0, starting_since=T0 - HOUR, now=T0 + 2 * HOUR)
    decision = decide(running(), stuck, policy())
    assert not decision.actions, "a bad image would walk the job down to on-demand"
    assert reasons(decision) == ["SlowStart"], "an event is recorded instead"
    decision = decide(
        running(), observed(pods_started=0, starting_since=T0), policy(start_timeout=9 * MINUTE)
    )
    assert (decision.requeue_at, reasons(decision)) == (T0 + 9 * MINUTE, [])


def test_missing_pods_are_distinguished_from_missing_capacity() -> None:
    refused = observed(pods_placed=0, pods_started=0, pods_remaining=1, pods_missing=3)
    first = decide(waiting(), refused, policy())
    assert (first.requeue_at, reasons(first)) == (T0 + PODS_CREATED_WITHIN, [])
    late = decide(waiting(), replace(refused, now=T0 + PODS_CREATED_WITHIN), policy())
    assert reasons(late) == ["PodsNotCreated"], "no machine would help"
    assert "3 of 4 pods" in late.events[0].message
    assert not late.actions
    pending = observed(pods_placed=0, pods_started=0, now=T0 + 10 * MINUTE)
    assert reasons(decide(waiting(), pending, policy())) == []


def test_the_event_of_a_placed_gang_has_its_wait() -> None:
    decision = decide(waiting(), observed(now=T0 + 90 * SECOND), policy())
    assert (state_of(decision).phase, state_of(decision).waiting_since) == (Phase.RUNNING, None)
    assert "1m30s" in decision.events[0].message


def test_a_tier_without_pool_is_skipped_and_without_any_the_job_stays() -> None:
    decision = decide(running(evictions=3), observed(pools={"b-spot": NOT_THERE}), policy())
    assert only(decision, Suspend).pool == "on-demand", "nothing would ever come of waiting there"
    missing = {"b-spot": NOT_THERE, "on-demand": NOT_THERE}
    decision = decide(running(evictions=3), observed(pools=missing), policy())
    assert Suspend not in kinds(decision)
    assert "add one to the FallbackPolicy" in decision.events[0].message


def test_a_job_does_not_wait_for_a_missing_pool() -> None:
    missing = {"a-spot": NOT_THERE}
    early = decide(waiting(), observed(pods_placed=0, pools=missing), policy())
    assert Suspend not in kinds(early)
    assert early.requeue_at == T0 + MISSING_POOL_GRACE
    late = decide(waiting(), observed(pods_placed=0, pools=missing, now=T0 + MISSING_POOL_GRACE), policy())
    assert only(late, Suspend).pool == "b-spot"


def test_a_pool_that_is_replaced_moves_no_job_and_is_skipped_by_none() -> None:
    gone = PoolStatus(exists=False, missing_since=T0 + 10 * MINUTE)
    moment = replace(observed(pods_placed=0), now=T0 + 10 * MINUTE + SECOND)
    decision = decide(waiting(), replace(moment, pools={"a-spot": gone}), policy())
    assert not decision.actions
    assert decision.requeue_at == T0 + 11 * MINUTE
    missing = replace(moment, pools={"a-spot": gone}, now=T0 + 11 * MINUTE)
    assert only(decide(waiting(), missing, policy()), Suspend).pool == "b-spot"
    spent = replace(moment, pools={"b-spot": gone})
    assert only(decide(waiting(evictions=3), spent, policy()), Suspend).pool == "b-spot"


def test_a_pool_that_was_never_seen_keeps_its_own_job_for_a_moment_and_gets_no_other() -> None:
    gone = PoolStatus(exists=False, missing_since=T0 + 10 * MINUTE, was_seen=False)
    moment = replace(observed(pods_placed=0), now=T0 + 10 * MINUTE + SECOND)
    decision = decide(waiting(), replace(moment, pools={"a-spot": gone}), policy())
    assert not decision.actions
    skipped = decide(waiting(evictions=3), replace(moment, pools={"b-spot": gone}), policy())
    assert only(skipped, Suspend).pool == "on-demand"


def test_a_job_is_not_given_up_while_lower_tiers_exist_on_the_ladder() -> None:
    gone = {"b-spot": NOT_THERE, "on-demand": NOT_THERE}
    ladder = policy(give_up_after=HOUR, application_failures=1)
    for state in (waiting(), waiting(application_failures=1)):
        decision = decide(state, observed(pods_placed=0, pools=gone, now=T0 + 2 * HOUR), ladder)
        assert "GivenUp" not in reasons(decision)
    last = waiting(pool="on-demand", rank=2)
    assert "GivenUp" in reasons(
        decide(last, observed(pool="on-demand", pods_placed=0, now=T0 + 2 * HOUR), ladder)
    )


def test_time_in_which_the_api_server_was_away_is_no_lack_of_capacity() -> None:
    late = T0 + 25 * MINUTE
    wait = observed(pods_placed=2, now=late, unseen=20 * MINUTE)
    decision = decide(waiting(), wait, policy())
    assert not decision.actions
    assert decision.requeue_at == late + 10 * MINUTE
    assert only(
        decide(waiting(), replace(wait, now=late + 10 * MINUTE), policy()), Suspend
    ).only_without_nodes
    spent = decide(waiting(evictions=3), observed(pods_placed=2), policy())
    assert not only(spent, Suspend).only_without_nodes


def test_a_move_waits_until_the_job_honors_a_suspension() -> None:
    decision = decide(running(evictions=3), observed(can_be_suspended=False), policy())
    assert Suspend not in kinds(decision)
    assert reasons(decision) == ["MoveBlocked"]
    assert Suspend in kinds(decide(running(evictions=3), observed(), policy()))


def test_application_failures_give_the_job_up_on_the_last_tier_unless_unlimited() -> None:
    decision = decide(on_last(application_failures=5), observed(pool="on-demand"), policy())
    suspend = only(decision, Suspend)
    assert suspend.state.phase is Phase.GIVEN_UP, "a broken script would use on-demand GPUs forever"
    assert "suspend: false" in decision.events[0].message
    decision = decide(on_last(evictions=99), observed(pool="on-demand"), policy())
    assert not decision.actions
    ladder = policy(tiers=(tier(max_failures=UNLIMITED), LAST))
    decision = decide(running(application_failures=50), observed(), ladder)
    assert not decision.actions
    ladder = policy(application_failures=UNLIMITED)
    assert not decide(on_last(application_failures=99), observed(pool="on-demand"), ladder).actions
    none = policy(application_failures=0)
    assert not decide(on_last(), observed(pool="on-demand"), none).actions
    assert Suspend in kinds(decide(on_last(application_failures=1), observed(pool="on-demand"), none))
    ladder = policy(failures=Failures.EVICTIONS)
    assert not decide(on_last(application_failures=99), observed(pool="on-demand"), ladder).actions


def test_a_job_without_capacity_is_given_up_only_after_give_up_after() -> None:
    ladder = policy(give_up_after=HOUR)
    state = waiting(pool="on-demand", rank=2)
    early = decide(state, observed(pool="on-demand", pods_placed=0), ladder)
    assert early.requeue_at == T0 + HOUR
    late = decide(state, observed(pool="on-demand", pods_placed=0, now=T0 + HOUR), ladder)
    assert only(late, Suspend).state.phase is Phase.GIVEN_UP
    decision = decide(
        waiting(pool="on-demand", rank=2),
        observed(pool="on-demand", pods_placed=0, now=T0 + 900 * HOUR),
        policy(),
    )
    assert not decision.actions


def test_only_the_user_resumes_a_job_that_was_given_up() -> None:
    given_up = on_last(phase=Phase.GIVEN_UP, application_failures=5)
    suspended = observed_suspended(pool="on-demand", now=T0 + 99 * HOUR)
    assert not decide(given_up, suspended, policy()).actions
    resumed = decide(given_up, observed(pool="on-demand"), policy())
    assert state_of(resumed).application_failures == 0
    assert state_of(resumed).phase is Phase.WAITING


def test_past_the_deadline_a_job_that_must_move_goes_to_the_last_tier() -> None:
    decision = decide(running(evictions=3), observed(created=T0 - 8 * HOUR), policy(deadline=8 * HOUR))
    assert only(decision, Suspend).pool == "on-demand"
    decision = decide(running(), observed(created=T0 - 9 * HOUR), policy(deadline=8 * HOUR))
    assert not decision.actions


def test_pods_of_lost_machines_are_force_deleted() -> None:
    decision = decide(running(), observed(dead_pods=("train-0",)), policy())
    assert only(decision, ForceDelete).pods == ("train-0",)


def test_a_lost_head_restarts_the_job_on_its_tier() -> None:
    silent = observed(head_unready_since=T0)
    assert decide(running(), silent, policy()).requeue_at == T0 + HEAD_TIMEOUT
    decision = decide(running(), observed(head_unready_since=T0, now=T0 + HEAD_TIMEOUT), policy())
    suspend = only(decision, Suspend)
    assert (suspend.pool, suspend.state.purpose) == ("a-spot", Purpose.RESTART)
    assert suspend.state.head_restarts == 1
    restarted = running(resumed_at=T0 + HOUR, head_restarts=1)
    decision = decide(restarted, observed(head_unready_since=T0, now=T0 + HOUR + MINUTE), policy())
    assert Suspend not in kinds(decision)


def test_a_repeatedly_lost_head_moves_the_job() -> None:
    hopeless = running(head_restarts=MAX_HEAD_RESTARTS)
    lost = observed(head_unready_since=T0, now=T0 + HOUR)
    assert only(decide(hopeless, lost, policy()), Suspend).pool == "b-spot", "every path must end"
    assert not decide(hopeless, observed(), policy()).actions
    last = on_last(head_restarts=MAX_HEAD_RESTARTS)
    silent = observed(head_unready_since=T0, now=T0 + HOUR, pool="on-demand")
    assert only(decide(last, silent, policy()), Suspend).state.phase is Phase.GIVEN_UP
