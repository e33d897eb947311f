"""Gangs that wait half placed in one pool know of each other, and are told when that changes."""

from dataclasses import replace

from holdfast.fallback.jobs.snapshot import JobKey
from holdfast.fallback.reconciler.observer import GangContention
from holdfast.fallback.state_machine.observation import ContendingGang, Observation, Outcome
from tests.support.fallback_objects import EARLIER, NOW

A, B, C = (JobKey("JobSet", "vision", name) for name in "abc")
HALF = Observation(uid="a", created=EARLIER, now=NOW, pool="spot", pods_expected=4, pods_placed=2)
YOUNGER = replace(HALF, uid="b", created=NOW)


def test_two_half_placed_gangs_of_one_pool_are_rivals() -> None:
    woken: list[JobKey] = []
    gangs = GangContention(woken.append)
    assert gangs.update(B, YOUNGER) is None, "nobody else waits"
    assert gangs.update(A, HALF) == ContendingGang(uid="b", created=NOW), "the other"
    assert woken == [B], "which must look again: it has a rival now"


def test_the_youngest_alone_is_woken() -> None:
    woken: list[JobKey] = []
    gangs = GangContention(woken.append)
    gangs.update(B, YOUNGER)
    gangs.update(A, HALF)
    woken.clear()
    for number in range(1000):
        gangs.update(JobKey("JobSet", "vision", f"job-{number}"), replace(HALF, uid=f"{number}"))
    assert not woken, (
        "the others' turn comes when the youngest is gone, and a million looks would be made for nothing"
    )
    gangs.update(B, replace(YOUNGER, pods_placed=4))
    assert woken == [A], "the youngest of those that are left"


def test_when_a_gang_let_go_is_known_of_its_pool() -> None:
    gangs = GangContention(lambda _: None)
    gangs.update(A, HALF)
    assert gangs.last_yield_at("spot") is None, "it waits"
    gangs.update(A, replace(HALF, pods_placed=4))
    gangs.update(A, replace(HALF, suspended=True))
    assert gangs.last_yield_at("spot") is None, "what had all of its nodes did not let go for others"
    gangs.update(A, HALF)
    gangs.update(A, replace(HALF, suspended=True))
    assert gangs.last_yield_at("spot") == NOW, "it is suspended, and its nodes are free for others"
    assert gangs.last_yield_at("other") is None, "of that pool alone"


def test_gangs_of_other_pools_and_those_that_block_nobody_are_none() -> None:
    woken: list[JobKey] = []
    gangs = GangContention(woken.append)
    gangs.update(A, replace(HALF, pool="other"))
    gangs.update(B, replace(HALF, pods_placed=4))
    gangs.update(C, replace(HALF, pods_placed=0))
    for number, harmless in enumerate(
        (
            replace(HALF, suspended=True),
            replace(HALF, follows=False),
            replace(HALF, outcome=Outcome.FAILED),
            replace(HALF, pool=None),
        )
    ):
        gangs.update(JobKey("JobSet", "vision", f"harmless-{number}"), harmless)
    assert gangs.update(JobKey("JobSet", "vision", "me"), HALF) is None, "none of them waits for my nodes"
    assert not woken, "and none is woken"


def test_a_rival_that_is_placed_or_gone_is_one_no_longer() -> None:
    gangs = GangContention(lambda _: None)
    gangs.update(A, HALF)
    gangs.update(B, YOUNGER)
    gangs.update(B, replace(YOUNGER, pods_placed=4))
    assert gangs.update(A, HALF) is None, "nobody is left"
    gangs.update(B, YOUNGER)
    gangs.forget(B)
    assert gangs.update(A, HALF) is None, "a job that was deleted waits for nothing"
