"""Gangs that wait half placed in one pool know of each other, and are told when that changes."""

from dataclasses import replace

from fallback.controller.gangs import Gangs
from fallback.jobs.snapshot import JobKey
from fallback.ladder.observation import Observation, Outcome
from tests.support.fallback_objects import EARLIER, NOW

A, B, C = (JobKey("JobSet", "vision", name) for name in "abc")
HALF = Observation(uid="a", created=EARLIER, now=NOW, pool="spot", pods_expected=4, pods_placed=2)


def test_two_half_placed_gangs_of_one_pool_are_rivals() -> None:
    woken: list[JobKey] = []
    gangs = Gangs(woken.append)
    assert gangs.see(A, HALF) == (), "nobody else waits"
    (rival,) = gangs.see(B, replace(HALF, uid="b"))
    assert (rival.uid, rival.created) == ("a", EARLIER), "the other"
    assert woken == [A], "who must look again: it has a rival now"


def test_gangs_of_other_pools_and_those_that_block_nobody_are_none() -> None:
    woken: list[JobKey] = []
    gangs = Gangs(woken.append)
    gangs.see(A, replace(HALF, pool="other"))
    gangs.see(B, replace(HALF, pods_placed=4))
    gangs.see(C, replace(HALF, pods_placed=0))
    for number, harmless in enumerate(
        (
            replace(HALF, suspended=True),
            replace(HALF, follows=False),
            replace(HALF, outcome=Outcome.FAILED),
            replace(HALF, pool=None),
        )
    ):
        gangs.see(JobKey("JobSet", "vision", f"harmless-{number}"), harmless)
    assert gangs.see(JobKey("JobSet", "vision", "me"), HALF) == (), "none of them waits for my nodes"
    assert not woken, "and none is woken"


def test_a_rival_that_is_placed_or_gone_is_one_no_longer() -> None:
    woken: list[JobKey] = []
    gangs = Gangs(woken.append)
    gangs.see(A, HALF)
    gangs.see(B, replace(HALF, uid="b"))
    woken.clear()
    gangs.see(B, replace(HALF, uid="b", pods_placed=4))
    assert woken == [A], "it need not yield any more"
    assert gangs.see(A, HALF) == (), "nobody is left"
    gangs.see(B, replace(HALF, uid="b"))
    gangs.forget(B)
    assert gangs.see(A, HALF) == (), "a job that was deleted waits for nothing"
