"""Reserved capacity begins and ends: jobs leave it before its end, pass it while it is not there, and return when it begins."""

from dataclasses import replace
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.controller.jobs.actions import CreatePlaceholders, RequestCheckpoint, Suspend
from pulumi_holdfast.controller.state_machine.decision import decide
from pulumi_holdfast.controller.state_machine.failover import CHECKPOINT_TIMEOUT
from pulumi_holdfast.controller.state_machine.tier_visit import tier_below, tiers_above
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.ladder import DeclaredFacts, Policy, Tier
from pulumi_holdfast.ladder.windows import CapacityWindow
from tests.support.builders.job_states import (
    HOUR,
    LAST,
    MINUTE,
    SECOND,
    T0,
    kinds,
    observed,
    only,
    policy,
    reasons,
    running,
    state_of,
    tier,
    waiting,
)


def block(begins: datetime | None = None, ends: datetime | None = None) -> Tier:
    window = CapacityWindow(begins=begins, ends=ends)
    return tier("block", facts=DeclaredFacts(capacity=CapacityType.RESERVED, window=window))


def ladder(begins: datetime | None = None, ends: datetime | None = None) -> Policy:
    return policy(tiers=(block(begins, ends), tier("b-spot"), LAST), return_after=HOUR)


ON_BLOCK = running(pool="block", rank=0)
ON_SPOT = running(pool="b-spot", rank=1)
END = T0 + 3 * HOUR


def test_a_job_leaves_its_block_when_the_block_ends() -> None:
    before = decide(ON_BLOCK, observed(pool="block", now=END - SECOND), ladder(ends=END))
    assert not before.actions, "until then the capacity is paid for"
    assert before.requeue_at == END
    decision = decide(ON_BLOCK, observed(pool="block", now=END), ladder(ends=END))
    assert only(decision, Suspend).pool == "b-spot"
    assert "CapacityEnds" in reasons(decision)


def test_a_job_that_answers_checkpoint_requests_leaves_its_block_with_a_checkpoint() -> None:
    policy_of_block = ladder(ends=END)
    asking = decide(ON_BLOCK, observed(pool="block", now=END, checkpoints_on_request=True), policy_of_block)
    assert only(asking, RequestCheckpoint).at == END
    assert Suspend not in kinds(asking)
    waits = observed(pool="block", now=END + SECOND, checkpoints_on_request=True, checkpoint_requested_at=END)
    step = decide(ON_BLOCK, waits, policy_of_block)
    assert not step.actions
    assert step.requeue_at == END + CHECKPOINT_TIMEOUT
    answered = replace(waits, checkpointed_at=END + SECOND)
    assert only(decide(ON_BLOCK, answered, policy_of_block), Suspend).pool == "b-spot"
    late = replace(waits, now=END + CHECKPOINT_TIMEOUT)
    assert only(decide(ON_BLOCK, late, policy_of_block), Suspend).pool == "b-spot"


def test_an_old_checkpoint_request_does_not_count_for_the_end_of_a_block() -> None:
    old = observed(
        pool="block",
        now=END,
        checkpoints_on_request=True,
        checkpoint_requested_at=END - HOUR,
        checkpointed_at=END - HOUR,
    )
    assert only(decide(ON_BLOCK, old, ladder(ends=END)), RequestCheckpoint).at == END


def test_a_job_does_not_wait_for_a_block_that_has_not_begun() -> None:
    early = observed(pool="block", pods_placed=0)
    decision = decide(waiting(pool="block", rank=0), early, ladder(begins=T0 + HOUR))
    assert only(decision, Suspend).pool == "b-spot"
    assert "TierUnavailable" in reasons(decision)


def test_a_job_returns_as_soon_as_its_block_begins() -> None:
    begins, arrived = T0 + 10 * MINUTE, replace(ON_SPOT, since=T0)
    waits = decide(arrived, observed(pool="b-spot", now=T0 + MINUTE), ladder(begins=begins))
    assert waits.requeue_at == begins, "returnAfter would leave paid machines idle for an hour"
    decision = decide(arrived, observed(pool="b-spot", now=begins), ladder(begins=begins))
    assert only(decision, CreatePlaceholders).pool == "block"


def test_a_job_does_not_return_to_a_block_that_ends_soon() -> None:
    now = T0 + 2 * HOUR
    near = ladder(ends=now + HOUR)
    assert not decide(ON_SPOT, observed(pool="b-spot", now=now), near).actions
    far = ladder(ends=now + 3 * HOUR)
    assert only(decide(ON_SPOT, observed(pool="b-spot", now=now), far), CreatePlaceholders).pool == "block"


def test_the_end_of_a_block_is_no_failback_that_did_not_last() -> None:
    returned = running(pool="block", rank=0, entered_by_failback=True, since=END - MINUTE)
    left = state_of(decide(returned, observed(pool="block", now=END), ladder(ends=END)))
    assert left.short_failbacks == 0


def test_a_block_that_ends_on_the_last_tier_is_reported() -> None:
    only_block = policy(tiers=(block(ends=END),))
    decision = decide(ON_BLOCK, observed(pool="block", now=END), only_block)
    assert not [kind for kind in kinds(decision) if kind is Suspend]
    assert "CapacityEnds" in reasons(decision)


TIMES = st.none() | st.integers(min_value=-10, max_value=10).map(lambda hours: T0 + hours * HOUR)


@pytest.mark.parametrize("rank", [0, 1, 2])
@given(windows=st.lists(st.tuples(TIMES, TIMES), min_size=3, max_size=3))
def test_a_job_is_sent_only_where_there_is_capacity(
    rank: int, windows: list[tuple[datetime | None, datetime | None]]
) -> None:
    tiers = tuple(
        tier(f"block-{place}", facts=DeclaredFacts(window=CapacityWindow(begins=begins, ends=ends)))
        for place, (begins, ends) in enumerate(windows)
    )
    blocks = policy(tiers=(*tiers, LAST), return_after=HOUR)
    state, now = running(pool=f"block-{rank}", rank=rank), observed(pool=f"block-{rank}")
    below = tier_below(state, now, blocks)
    assert below is not None
    sent = [below, *tiers_above(state, now, blocks)]
    assert all(each.facts.window.is_open(T0) for each in sent), "no other machine would come"
