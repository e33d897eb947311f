"""Grace periods of a GKE node shutdown."""

import pytest

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.scenarios.node_termination import (
    STOPS_AFTER,
    ShutdownGrace,
    ending_of,
    grace_of,
)

USUAL = ShutdownGrace(users=15, critical=15)


@pytest.mark.parametrize(
    ("kubelet", "users", "critical"),
    [
        ({}, 15, 15),
        ({"shutdownGracePeriodSeconds": 30, "shutdownGracePeriodCriticalPodsSeconds": 5}, 25, 5),
        ({"shutdownGracePeriodSeconds": 120, "shutdownGracePeriodCriticalPodsSeconds": 15}, 105, 15),
        ({"shutdownGracePeriodSeconds": 120}, 105, 15),
        ({"shutdownGracePeriodSeconds": 0, "shutdownGracePeriodCriticalPodsSeconds": 0}, 0, 0),
        ({"shutdownGracePeriodSeconds": 0}, 0, 0),
    ],
)
def test_users_pods_get_the_total_without_the_critical_seconds(
    kubelet: Json, users: int, critical: int
) -> None:
    found = grace_of(kubelet)
    assert (found.users, found.critical) == (users, critical), f"with {kubelet}"
    assert found.is_none is (users == critical == 0)


def _pod(*, asks: int | None = None, stops_after: str | None = None, priority: int = 0) -> Json:
    return {
        "metadata": {"name": "p", "annotations": {STOPS_AFTER: stops_after} if stops_after else {}},
        "spec": {
            "priority": priority,
            **({"terminationGracePeriodSeconds": asks} if asks is not None else {}),
        },
    }


def test_a_pod_gets_at_most_the_grace_period_of_its_phase() -> None:
    found = ending_of(_pod(asks=90), USUAL)
    assert (found.asked, found.got) == (90, 15)
    assert ending_of(_pod(), USUAL).asked == 30
    assert ending_of(_pod(asks=5), USUAL).got == 5
    grace = ShutdownGrace(users=25, critical=5)
    assert ending_of(_pod(priority=2_000_000_000), grace).got == 5
    assert ending_of(_pod(priority=1_999_999_999), grace).got == 25


@pytest.mark.parametrize(
    ("stops_after", "took", "exit_code"),
    [(None, 0.0, 143), ("2.5", 2.5, 143), ("15", 15.0, 143), ("16", 15.0, 137)],
)
def test_a_program_stops_or_is_killed_at_the_end_of_its_grace_period(
    stops_after: str | None, took: float, exit_code: int
) -> None:
    found = ending_of(_pod(asks=90, stops_after=stops_after), USUAL)
    assert (found.took, found.exit_code) == (took, exit_code), f"needing {stops_after} s"
