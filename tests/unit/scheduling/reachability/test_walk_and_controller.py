"""The walk ends where the controller's own decisions lead a job, whatever of its ladder's tiers can take it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.scheduling.ladder import UNLIMITED
from holdfast.scheduling.reachability.facts import Limits
from holdfast.scheduling.reachability.walk import Outcome, walk
from tests.support.ladder_ends import Rung, end_of
from tests.support.reachability import on_demand, shape, spot, tier

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.scheduling.reachability.facts import TierFacts

TAKES_ON_DEMAND = Rung(takes_the_job=True, is_on_demand=True)
TAKES_ON_SPOT = Rung(takes_the_job=True, is_on_demand=False, max_failures=2, has_timeout=True)


def can_be_left_or_says_so(rung: Rung) -> bool:
    """Any other tier above the last is refused by the API server, and by the stack's configuration before it."""
    return rung.max_failures is not None or rung.has_timeout


upper = st.builds(
    Rung,
    takes_the_job=st.booleans(),
    is_on_demand=st.booleans(),
    max_failures=st.sampled_from([None, UNLIMITED, 0, 1, 5]),
    has_timeout=st.booleans(),
).filter(can_be_left_or_says_so)
last = st.builds(
    Rung,
    takes_the_job=st.booleans(),
    is_on_demand=st.booleans(),
    max_failures=st.sampled_from([None, UNLIMITED]),
)
ladders = st.tuples(st.lists(upper, max_size=4), last).map(lambda drawn: [*drawn[0], drawn[1]])


def facts(number: int, rung: Rung) -> TierFacts:
    make = on_demand if rung.is_on_demand else spot
    pool = make(f"pool-{number}", limits=Limits(nodes=8 if rung.takes_the_job else 0))
    return tier(number, pool, max_failures=rung.max_failures, has_timeout=rung.has_timeout)


def walked(rungs: Sequence[Rung]) -> Outcome:
    return walk(shape(), [facts(number, rung) for number, rung in enumerate(rungs, start=1)]).outcome


@given(ladders)
def test_the_walk_ends_where_the_controller_leads_the_job(rungs: list[Rung]) -> None:
    assert walked(rungs) is end_of(rungs), "the proof says of a ladder what becomes of a job on it"


@pytest.mark.parametrize(
    ("above", "end"),
    [
        (TAKES_ON_SPOT, Outcome.ARRIVES),
        (replace(TAKES_ON_SPOT, takes_the_job=False), Outcome.ARRIVES),
        (replace(TAKES_ON_SPOT, takes_the_job=False, has_timeout=False), Outcome.STUCK),
        (replace(TAKES_ON_SPOT, max_failures=UNLIMITED), Outcome.ARRIVES),
        (replace(TAKES_ON_SPOT, max_failures=UNLIMITED, has_timeout=False), Outcome.STAYS),
        (replace(TAKES_ON_SPOT, has_timeout=False), Outcome.ARRIVES),
    ],
    ids=["spot", "no-room", "no-room-no-timeout", "for-ever-in-time", "for-ever", "by-failures"],
)
def test_the_controller_leads_a_job_past_a_tier_as_far_as_the_tier_lets_it(above: Rung, end: Outcome) -> None:
    assert end_of([above, TAKES_ON_DEMAND]) is end, "which is what the walk is compared with"
