"""Settings of a ladder that would mean nothing."""

from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast.scheduling.ladder import Ladder, Tier, timing_problems

AT = "holdfast:platform.namespaces[0].fallback"
HOUR = timedelta(hours=1)
TWO_TIERS = (Tier(pool="a100-spot", max_failures=5), Tier(pool="a100"))


@pytest.mark.parametrize(
    "ladder",
    [
        Ladder(tiers=TWO_TIERS),
        Ladder(tiers=TWO_TIERS, return_after=HOUR),
        Ladder(tiers=TWO_TIERS, return_after=HOUR, hold_timeout=HOUR),
        Ladder(tiers=TWO_TIERS[1:], give_up_after=HOUR),
    ],
)
def test_settings_that_mean_something_are_taken(ladder: Ladder) -> None:
    assert list(timing_problems(ladder, AT)) == [], "nothing is wrong with it"


def test_a_way_back_up_from_the_only_tier_is_refused() -> None:
    (problem,) = timing_problems(Ladder(tiers=TWO_TIERS[1:], return_after=4 * HOUR), AT)
    assert problem.field == f"{AT}.returnAfter", "the field is named"
    assert "4h on a ladder of one tier" in problem.value, "and what stands there"


def test_holding_capacity_for_nobody_is_refused() -> None:
    (problem,) = timing_problems(Ladder(tiers=TWO_TIERS, hold_timeout=HOUR), AT)
    assert problem.field == f"{AT}.holdTimeout", "the field is named"
    assert "Add returnAfter" in problem.fix, "and the fix"
