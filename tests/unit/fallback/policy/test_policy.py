"""What a tier may cost."""

from __future__ import annotations

import pytest

from holdfast.fallback.policy.policy import PolicyTier
from holdfast.scheduling.ladder import UNLIMITED
from tests.support.ladder import policy


@pytest.mark.parametrize(
    ("max_failures", "failures", "is_spent"),
    [(3, 2, False), (3, 3, True), (3, 4, True), (1, 0, False), (1, 1, True), (0, 0, False), (0, 1, True)],
)
def test_a_tier_is_spent_once_it_has_cost_what_it_may(
    max_failures: int, failures: int, *, is_spent: bool
) -> None:
    tier = PolicyTier(pool="a", max_failures=max_failures)
    assert tier.is_spent(failures) is is_spent, "0 means the same as 1: a tier that is never tried is none"


@pytest.mark.parametrize("max_failures", [None, UNLIMITED])
def test_a_tier_without_a_limit_is_never_spent(max_failures: int | None) -> None:
    assert not PolicyTier(pool="a", max_failures=max_failures).is_spent(10**9), "-1: stay"


def test_a_tier_is_found_by_its_pool() -> None:
    assert [policy().rank_of(pool) for pool in ("a-spot", "on-demand", "elsewhere")] == [0, 2, None], (
        "0 is the best"
    )
