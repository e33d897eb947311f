"""Pods get of a preemption's seconds what GKE leaves them, whatever they ask for."""

import pytest

from holdfast.rehearsal.scenarios.node_termination import STOPS_AFTER, ShutdownGrace, ending_of, grace_of
from holdfast.scheduling.json import Json

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
def test_users_pods_get_what_the_critical_ones_leave(kubelet: Json, users: int, critical: int) -> None:
    found = grace_of(kubelet)
    assert (found.users, found.critical) == (users, critical), f"{kubelet} leaves them something else"
    assert found.is_none is (users == critical == 0), "only with neither are pods told nothing"


def _pod(*, asks: int | None = None, stops_after: str | None = None, priority: int = 0) -> Json:
    return {
        "metadata": {"name": "p", "annotations": {STOPS_AFTER: stops_after} if stops_after else {}},
        "spec": {
            "priority": priority,
            **({"terminationGracePeriodSeconds": asks} if asks is not None else {}),
        },
    }


def test_to_ask_for_more_than_there_is_has_no_effect() -> None:
    found = ending_of(_pod(asks=90), USUAL)
    assert (found.asked, found.got) == (90, 15), "GKE's documentation says so in these words"
    assert ending_of(_pod(), USUAL).asked == 30, "Kubernetes' own default"


def test_who_asks_for_less_gets_less() -> None:
    assert ending_of(_pod(asks=5), USUAL).got == 5, "the kubelet takes the smaller of the two"


def test_a_pod_the_cluster_cannot_do_without_has_seconds_of_its_own() -> None:
    grace = ShutdownGrace(users=25, critical=5)
    assert ending_of(_pod(priority=2_000_000_000), grace).got == 5, "of the second phase"
    assert ending_of(_pod(priority=1_999_999_999), grace).got == 25, "the next lower priority is a user's"


@pytest.mark.parametrize(
    ("stops_after", "took", "exit_code"),
    [(None, 0.0, 143), ("2.5", 2.5, 143), ("15", 15.0, 143), ("16", 15.0, 137)],
)
def test_a_program_ends_by_itself_or_is_killed_when_its_seconds_are_over(
    stops_after: str | None, took: float, exit_code: int
) -> None:
    found = ending_of(_pod(asks=90, stops_after=stops_after), USUAL)
    assert (found.took, found.exit_code) == (took, exit_code), f"needing {stops_after} s"
