"""Gangs that wait half placed in one pool: the share of their namespace decides who yields, then age."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.controller.jobs.observation import (
    ContendingGang,
    JobOutcome,
    NodeKind,
    Observation,
    PoolStatus,
)
from pulumi_holdfast.controller.jobs.pods_and_nodes import JobKey
from pulumi_holdfast.controller.loop.contention import GangContention, PoolShares, last_in_turn

NOW = datetime(2030, 5, 1, 12, tzinfo=UTC)
EARLIER = NOW - timedelta(hours=1)

A, B, C = (JobKey("JobSet", "vision", name) for name in "abc")
ON_LADDER = {"spot": PoolStatus(), "other": PoolStatus()}
HALF = Observation(
    uid="a", created=EARLIER, now=NOW, pool="spot", pools=ON_LADDER, pods_expected=4, pods_placed=2
)
YOUNGER = replace(HALF, uid="b", created=NOW)


def test_gangs_of_one_pool_contend_until_they_are_placed_or_deleted() -> None:
    enqueued: list[JobKey] = []
    gangs = GangContention(enqueued.append)
    assert gangs.update(B, YOUNGER) is None
    assert gangs.update(A, HALF) == ContendingGang(uid="b", created=NOW)
    assert enqueued == [B]
    gangs = GangContention(lambda _: None)
    gangs.update(A, HALF)
    gangs.update(B, YOUNGER)
    gangs.update(B, replace(YOUNGER, pods_placed=4))
    assert gangs.update(A, HALF) is None
    gangs.update(B, YOUNGER)
    gangs.forget(B)
    assert gangs.update(A, HALF) is None


def test_only_the_youngest_gang_is_enqueued() -> None:
    enqueued: list[JobKey] = []
    gangs = GangContention(enqueued.append)
    gangs.update(B, YOUNGER)
    gangs.update(A, HALF)
    enqueued.clear()
    for number in range(1000):
        gangs.update(JobKey("JobSet", "vision", f"job-{number}"), replace(HALF, uid=f"{number}"))
    assert not enqueued
    gangs.update(B, replace(YOUNGER, pods_placed=4))
    assert enqueued == [A]


def test_the_last_yield_is_recorded_per_pool() -> None:
    gangs = GangContention(lambda _: None)
    gangs.update(A, HALF)
    assert gangs.last_yield_at("spot") is None
    gangs.update(A, replace(HALF, pods_placed=4))
    gangs.update(A, replace(HALF, suspended=True))
    assert gangs.last_yield_at("spot") is None
    gangs.update(A, HALF)
    gangs.update(A, replace(HALF, suspended=True))
    assert gangs.last_yield_at("spot") == NOW
    assert gangs.last_yield_at("other") is None


def test_gangs_of_other_pools_or_without_nodes_do_not_contend() -> None:
    enqueued: list[JobKey] = []
    gangs = GangContention(enqueued.append)
    gangs.update(A, replace(HALF, pool="other"))
    gangs.update(B, replace(HALF, pods_placed=4))
    gangs.update(C, replace(HALF, pods_placed=0))
    for number, harmless in enumerate(
        (
            replace(HALF, suspended=True),
            replace(HALF, follows=False),
            replace(HALF, outcome=JobOutcome.FAILED),
            replace(HALF, pool=None),
            replace(HALF, pools={}),
        )
    ):
        gangs.update(JobKey("JobSet", "vision", f"harmless-{number}"), harmless)
    assert gangs.update(JobKey("JobSet", "vision", "me"), HALF) is None
    assert not enqueued


def whole(namespace: str, name: str, nodes: float, pool: str = "spot") -> tuple[JobKey, Observation]:
    """A job whose gang has all of its nodes, so many."""
    seen = Observation(uid=name, created=EARLIER, now=NOW, pool=pool, pods_expected=1, pods_placed=1)
    return JobKey("JobSet", namespace, name), replace(seen, nodes={NodeKind(pool, None): nodes})


def test_the_gang_of_the_namespace_with_the_larger_share_yields() -> None:
    gangs = GangContention(lambda _: None)
    ours, theirs = JobKey("JobSet", "vision", "young"), JobKey("JobSet", "speech", "old")
    gangs.update(ours, YOUNGER)
    assert gangs.update(theirs, HALF) == YOUNGER.by_age
    gangs.shares.update(*whole("speech", "running", 3))
    assert gangs.update(ours, YOUNGER) == replace(HALF.by_age, share=3)
    gangs.shares.update(*whole("vision", "running", 4))
    assert gangs.update(theirs, HALF) == replace(YOUNGER.by_age, share=4)
    gangs.forget(JobKey("JobSet", "vision", "running"))
    assert gangs.update(theirs, HALF) == YOUNGER.by_age


_GANGS = st.dictionaries(
    st.sampled_from(["a", "b", "c", "d"]), st.tuples(st.integers(0, 5), st.integers(0, 3)), min_size=1
)


@given(_GANGS)
def test_one_gang_is_last_and_none_of_a_smaller_share_is(drawn: Mapping[str, tuple[int, int]]) -> None:
    shares = {namespace: share for namespace, (share, _) in drawn.items()}
    gangs = {
        namespace: ContendingGang(uid=namespace, created=NOW + timedelta(hours=hours))
        for namespace, (_, hours) in drawn.items()
    }
    last = last_in_turn(gangs, shares.__getitem__)
    assert last is not None
    assert last.share == max(shares.values())
    assert last.created == max(gangs[each].created for each, share in shares.items() if share == last.share)
    # Each gang compares itself with the last of the others: exactly one finds that it is the last itself.
    yields = [
        namespace
        for namespace, gang in gangs.items()
        if (
            others := last_in_turn(
                {each: gangs[each] for each in gangs if each != namespace}, shares.__getitem__
            )
        )
        is None
        or replace(gang, share=shares[namespace]) > others
    ]
    assert yields == [last.uid]


_JOBS = st.lists(
    st.tuples(
        st.sampled_from(["vision", "speech"]),
        st.sampled_from("xyz"),
        st.sampled_from(["spot", "cpu"]),
        st.integers(0, 9),
    )
)


@given(_JOBS)
def test_a_share_is_the_sum_of_what_the_jobs_of_a_namespace_have_now(
    updates: list[tuple[str, str, str, int]],
) -> None:
    shares, now = PoolShares(), dict[tuple[str, str], tuple[str, int]]()
    for namespace, name, pool, nodes in updates:
        shares.update(*whole(namespace, name, nodes, pool))
        now[namespace, name] = (pool, nodes)
    for pool in ("spot", "cpu"):
        for namespace in ("vision", "speech"):
            expected = sum(nodes for (of, _), (at, nodes) in now.items() if (of, at) == (namespace, pool))
            assert shares.of(pool, namespace) == expected


def test_waiting_and_suspended_gangs_and_reserved_nodes_count_in_no_share() -> None:
    shares = PoolShares()
    key, seen = whole("vision", "job", 3)
    for uncounted in (
        replace(seen, pods_expected=4),
        replace(seen, suspended=True),
        replace(seen, nodes={NodeKind("reserved", None): 3.0}),
    ):
        shares.update(key, seen)
        shares.update(key, uncounted)
        assert (shares.of("spot", "vision"), shares.of("reserved", "vision")) == (0, 0)
