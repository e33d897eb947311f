"""A gang's loss counts once, a wave of reclaims once, and unobserved restarts count."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.controller.jobs.observation import Cause, Loss
from pulumi_holdfast.controller.jobs.state import OutageKind, TimedFailure
from pulumi_holdfast.controller.state_machine.outages import (
    UNREACHABLE_AFTER,
    count_losses,
    counted_failures,
    unreachable_deadline,
)
from pulumi_holdfast.ladder.frozen import replace
from pulumi_holdfast.ladder.ladder import MOST_TIMED_FAILURES, Failures, Policy
from tests.support.builders.job_states import (
    HOUR,
    MINUTE,
    SECOND,
    T0,
    WINDOW,
    loss,
    observed,
    policy,
    running,
)

EVICTIONS = policy(failures=Failures.EVICTIONS)


def test_failures_older_than_the_failure_window_no_longer_count() -> None:
    day = policy(failure_window=24 * HOUR)
    state = running()
    for number, hours in enumerate((0, 10, 20)):
        at = T0 + hours * HOUR
        state = count_losses(state, observed(losses=(loss(at, pod=f"p{number}"),), now=at), day)
    assert (state.evictions, len(state.failures)) == (3, 3)
    later = count_losses(state, observed(now=T0 + 25 * HOUR), day)
    assert (later.evictions, [each.at for each in later.failures]) == (2, [T0 + 10 * HOUR, T0 + 20 * HOUR])
    assert count_losses(state, observed(now=T0 + 25 * HOUR), policy()).evictions == 3
    untimed = running(evictions=2)
    assert count_losses(untimed, observed(now=T0 + 99 * HOUR), day).evictions == 2
    assert count_losses(state, observed(now=T0 + 99 * HOUR), day).evictions == 0


def test_a_failure_that_turns_out_to_be_an_eviction_is_timed_as_one() -> None:
    day = policy(failure_window=24 * HOUR)
    failed = count_losses(running(), observed(losses=(loss(T0, Cause.APPLICATION),)), day)
    explained = count_losses(
        failed, observed(losses=(loss(T0, Cause.APPLICATION), loss(T0 - SECOND, pod="p1"))), day
    )
    assert [each.kind for each in explained.failures] == [OutageKind.EVICTION]
    later = count_losses(explained, observed(now=T0 + 25 * HOUR), day)
    assert counted_failures(later, Failures.ANY) == 0


def test_losses_within_the_window_are_one_outage() -> None:
    lost = tuple(loss(T0 + number * SECOND, pod=f"p{number}") for number in range(4))
    assert count_losses(running(), observed(losses=lost), policy()).evictions == 1
    wave = (loss(T0, pod="p0"), loss(T0 + WINDOW, pod="p1"))
    assert count_losses(running(), observed(losses=wave, now=T0 + WINDOW), policy()).evictions == 1
    lost = (loss(T0, pod="p0"), loss(T0 + WINDOW + SECOND, pod="p1"))
    later = observed(losses=lost, now=T0 + 2 * WINDOW)
    assert count_losses(running(), later, policy()).evictions == 2


def test_losses_that_are_seen_again_or_late_are_not_counted_again() -> None:
    lost = observed(losses=(loss(), loss(T0 + MINUTE, pod="p1")), restarts=1)
    once = count_losses(running(), lost, policy())
    assert count_losses(once, lost, policy()) == once
    first = count_losses(running(), observed(losses=(loss(T0 + MINUTE),)), policy())
    late = count_losses(first, observed(losses=(loss(T0, pod="p9"), loss(T0 + MINUTE))), policy())
    assert late.evictions == 1


def test_losses_before_this_tier_visit_do_not_count() -> None:
    lost = observed(losses=(loss(pool="b-spot"),))
    assert count_losses(running(), lost, policy()).evictions == 0
    visit = running(losses_counted_until=T0)
    assert count_losses(visit, observed(losses=(loss(T0),)), policy()).evictions == 0


@pytest.mark.parametrize("cause", [Cause.EVICTION, Cause.NODE_GONE])
def test_a_reclaim_and_a_removed_node_are_both_evictions(cause: Cause) -> None:
    assert count_losses(running(), observed(losses=(loss(cause=cause),)), policy()).evictions == 1


def test_an_unreachable_node_is_an_eviction_after_a_while() -> None:
    silent = (loss(cause=Cause.UNREACHABLE),)
    early = observed(losses=silent, now=T0 + UNREACHABLE_AFTER - SECOND)
    assert count_losses(running(), early, policy()).evictions == 0
    assert unreachable_deadline(running(), early) == T0 + UNREACHABLE_AFTER
    late = observed(losses=silent, now=T0 + UNREACHABLE_AFTER)
    assert count_losses(running(), late, policy()).evictions == 1


def test_a_failure_of_the_program_counts_only_under_any() -> None:
    state = count_losses(running(), observed(losses=(loss(cause=Cause.APPLICATION),)), policy())
    assert counted_failures(state, Failures.ANY) == 1
    assert state.application_failures == 1
    state = count_losses(running(), observed(losses=(loss(cause=Cause.APPLICATION),)), EVICTIONS)
    assert counted_failures(state, Failures.EVICTIONS) == 0


def test_a_peers_earlier_failure_does_not_hide_the_eviction() -> None:
    peer = observed(losses=(loss(cause=Cause.APPLICATION),))
    state = count_losses(running(), peer, EVICTIONS)
    both = observed(losses=(*peer.losses, loss(T0 + 10 * SECOND, pod="p1")), now=T0 + 10 * SECOND)
    state = count_losses(state, both, EVICTIONS)
    assert (state.evictions, state.application_failures) == (1, 0)


def test_a_program_that_fails_again_in_its_next_gang_has_failed_twice() -> None:
    first = loss(T0, Cause.APPLICATION, pod_created_at=T0 - HOUR)
    peers = loss(T0 + 5 * SECOND, Cause.APPLICATION, pod="p1", pod_created_at=T0 - HOUR)
    again = loss(T0 + MINUTE, Cause.APPLICATION, pod="p2", pod_created_at=T0 + 30 * SECOND)
    state = running()
    for lost in ((first,), (first, peers), (first, peers, again)):
        state = count_losses(state, observed(losses=lost, now=T0 + MINUTE), policy())
    assert state.application_failures == 2


def test_a_wave_that_reclaims_the_next_gang_too_is_one_wave() -> None:
    wave = (
        loss(T0, pod_created_at=T0 - HOUR),
        loss(T0 + MINUTE, Cause.APPLICATION, pod="p1", pod_created_at=T0 + 30 * SECOND),
        loss(T0 + MINUTE + SECOND, pod="p2", pod_created_at=T0 + 30 * SECOND),
    )
    state = running()
    for shown in (1, 2, 3, 3):
        state = count_losses(state, observed(losses=wave[:shown], now=T0 + 2 * MINUTE), policy())
    assert (state.evictions, state.application_failures) == (1, 0)


def test_an_eviction_of_the_gang_before_does_not_explain_a_failure_of_this_one() -> None:
    evicted = loss(T0, pod_created_at=T0 - HOUR), loss(T0 + 20 * SECOND, pod="p1", pod_created_at=T0 - HOUR)
    failed = loss(T0 + 90 * SECOND, Cause.APPLICATION, pod="p2", pod_created_at=T0 + MINUTE)
    state = running()
    for lost in (evicted, (*evicted, failed), (*evicted, failed)):
        state = count_losses(state, observed(losses=lost, now=T0 + 90 * SECOND), policy())
    assert (state.evictions, state.application_failures) == (1, 1)


def test_a_failure_amid_an_eviction_is_part_of_it_and_a_later_one_is_not() -> None:
    lost = (loss(T0), loss(T0 + SECOND, Cause.APPLICATION, pod="p1"))
    state = count_losses(running(), observed(losses=lost, now=T0 + SECOND), policy())
    assert (state.evictions, state.application_failures) == (1, 0)
    evicted = loss(T0, pod="p0"), loss(T0 + 20 * SECOND, pod="p1")
    state = count_losses(running(), observed(losses=evicted), EVICTIONS)
    failed = (*evicted, loss(T0 + WINDOW + 10 * SECOND, Cause.APPLICATION, pod="p2"))
    for now in (T0 + WINDOW + 10 * SECOND, T0 + 2 * WINDOW):
        state = count_losses(state, observed(losses=failed, now=now), EVICTIONS)
    assert (state.evictions, state.application_failures) == (1, 1)
    failed = loss(T0, Cause.APPLICATION, pod_created_at=T0 - HOUR)
    evicted = loss(T0 + 2 * MINUTE, pod="p1", pod_created_at=T0 + MINUTE)
    state = count_losses(running(), observed(losses=(failed, evicted), now=T0 + 2 * MINUTE), EVICTIONS)
    assert (state.evictions, state.application_failures) == (1, 1)


def test_a_loss_explains_only_the_restart_that_follows_it() -> None:
    old = observed(losses=(loss(),), restarts=1)
    state = count_losses(running(), old, policy())
    away = observed(losses=(loss(),), restarts=2, now=T0 + HOUR)
    for _ in range(2):
        state = count_losses(state, away, policy())
    assert (state.evictions, state.unexplained) == (1, 1)
    state = count_losses(running(), observed(losses=(loss(),)), policy())
    later = observed(losses=(loss(),), restarts=1, now=T0 + 2 * WINDOW)
    assert counted_failures(count_losses(state, later, policy()), Failures.ANY) == 1


def test_unobserved_restarts_are_counted_once_per_window() -> None:
    away = observed(restarts=2, now=T0 + 10 * WINDOW)
    state = count_losses(running(since=T0), away, policy())
    assert (state.unexplained, counted_failures(state, Failures.ANY)) == (2, 2)
    state = count_losses(running(since=T0), observed(restarts=5, now=T0 + MINUTE), policy())
    assert state.unexplained == 1
    counted = running(
        evictions=1, restart_expected=True, outage_at=T0 - MINUTE, outage_counted_at=T0 - MINUTE
    )
    state = count_losses(counted, observed(restarts=3), policy())
    assert (state.evictions, state.unexplained) == (1, 0)
    away = observed(restarts=3, disrupted_restarts=2, now=T0 + 10 * WINDOW)
    state = count_losses(running(since=T0), away, EVICTIONS)
    assert counted_failures(state, Failures.EVICTIONS) == 2
    state = count_losses(running(restarts=7), observed(restarts=1), policy())
    assert (counted_failures(state, Failures.ANY), state.restarts) == (0, 1)


def test_an_unexplained_restart_is_no_failure_of_the_program_and_is_replaced_by_its_loss() -> None:
    state = count_losses(running(), observed(restarts=1), policy())
    assert state.application_failures == 0
    assert state.outage_kind is OutageKind.UNEXPLAINED
    state = count_losses(running(), observed(restarts=1), policy())
    explained = count_losses(
        state, observed(restarts=1, losses=(loss(T0 + SECOND),), now=T0 + 2 * SECOND), policy()
    )
    assert (explained.evictions, explained.unexplained) == (1, 0)


@given(st.lists(st.integers(0, 3600), min_size=1, max_size=12), st.lists(st.integers(0, 3600), max_size=6))
def test_each_wave_is_counted_once_whenever_it_is_observed(lost: list[int], observed_at: list[int]) -> None:
    losses = [loss(T0 + timedelta(seconds=at), pod=str(number)) for number, at in enumerate(sorted(lost))]
    waves, first = 0, None
    for each in losses:
        if first is None or each.at > first + WINDOW:
            waves, first = waves + 1, each.at
    state = running(since=T0)
    for at in [*sorted(observed_at), 3600]:
        now = T0 + timedelta(seconds=at)
        shown = tuple(each for each in losses if each.at <= now)
        state = count_losses(state, observed(losses=shown, now=now), policy())
    assert state.evictions == waves, "the count must not depend on when the job is reconciled"


def test_two_outages_have_a_restart_each_though_the_first_is_seen_with_the_second() -> None:
    # The leader died in between: the first outage's restart is observed together with the second outage.
    first = running(
        evictions=1, restart_expected=True, restarts=2, outage_at=T0 - HOUR, outage_counted_at=T0 - HOUR
    )
    second = count_losses(first, observed(losses=(loss(),), restarts=3), policy())
    assert (second.evictions, second.unexplained) == (2, 0)
    later = observed(losses=(loss(),), restarts=4, disrupted_restarts=2, now=T0 + 2 * WINDOW)
    third = count_losses(second, later, policy())
    assert counted_failures(third, Failures.ANY) == 2
    again = observed(losses=(loss(),), restarts=5, disrupted_restarts=3, now=T0 + 4 * WINDOW)
    assert counted_failures(count_losses(third, again, policy()), Failures.ANY) == 3


def test_more_failures_than_any_limit_counts_are_forgotten_like_the_others() -> None:
    ladder = policy(failure_window=24 * HOUR, outage_window=SECOND)
    before = TimedFailure(kind=OutageKind.APPLICATION, at=T0)
    state = running(application_failures=1, failures=(before,))
    for number in range(1, MOST_TIMED_FAILURES + 5):
        at = T0 + number * MINUTE
        state = count_losses(state, observed(now=at, losses=(loss(at, pod=f"p{number}"),)), ladder)
    assert state.evictions == MOST_TIMED_FAILURES
    assert before in state.failures
    later = count_losses(state, observed(now=T0 + 100 * HOUR), ladder)
    assert (later.evictions, later.application_failures, later.failures) == (0, 0, ())


def test_a_peer_that_fails_at_the_end_of_an_evicted_pods_grace_period_is_no_second_failure() -> None:
    short = policy(outage_window=SECOND)
    evicted = loss(T0, pod="p0", pod_created_at=T0 - MINUTE)
    failed = loss(T0 + 31 * SECOND, Cause.APPLICATION, pod="p1", pod_created_at=T0 - MINUTE)
    peer = replace(failed, grace=30 * SECOND)

    def counted(*losses: Loss, ladder: Policy = short) -> tuple[int, int]:
        state = count_losses(running(), observed(losses=(evicted,)), ladder)
        later = observed(losses=(evicted, *losses), now=T0 + 2 * MINUTE, restarts=1)
        after = count_losses(count_losses(state, later, ladder), later, ladder)
        return after.evictions, after.application_failures

    assert counted(peer) == (1, 0)
    assert counted(replace(peer, grace=SECOND)) == (1, 1), "long after the evicted pod has ended"
    assert counted(replace(peer, pod_created_at=T0 + SECOND)) == (1, 1), "of the next gang"
