"""A scene that shows the wrong thing is found out, and one that shows the right thing is not."""

from dataclasses import replace

import pytest

from holdfast.rehearsal.scenarios.expectations import (
    unmet_by_default_placement,
    unmet_by_rayjob,
    unmet_by_restart,
)
from holdfast.rehearsal.scenarios.pod_placement import DefaultPlacement, FreeCapacity, RayJobPlacement
from holdfast.rehearsal.scenarios.spot_restart import SpotRestart
from tests.support.builders.scenario_results import GPU, PLAIN, SPOT, default_placement, rayjob, restart


def test_a_restart_on_a_new_spot_node_is_as_it_should_be() -> None:
    assert unmet_by_restart(restart()) == [], "nothing in these facts is wrong"


def test_a_pod_of_another_node_may_go_without_an_eviction() -> None:
    other = replace(SPOT, pod="r", node="spot-3")
    seen = restart(before=(SPOT, other), after=(replace(SPOT, node="spot-2"), replace(other, pod="r2")))
    assert unmet_by_restart(seen) == [], (
        "only the interrupted node is drained; JobSet restarts the others itself"
    )


def test_a_machine_that_is_made_again_under_its_name_is_a_new_one() -> None:
    old, new = replace(SPOT, host="uid-1"), replace(SPOT, pod="p2", host="uid-2")
    assert unmet_by_restart(restart(before=(old,), after=(new,))) == [], (
        "GKE's nodes come back under their names"
    )
    same = restart(before=(old,), after=(replace(new, host="uid-1"),))
    assert any("came back to the interrupted node" in problem for problem in unmet_by_restart(same)), (
        "it was never taken"
    )


@pytest.mark.parametrize(
    ("seen", "complaint"),
    [
        (restart(before=(replace(SPOT, capacity="on-demand"),)), "is on on-demand"),
        (restart(after=(replace(SPOT, node="spot-2", capacity="on-demand"),)), "is on on-demand"),
        (restart(evicted=()), "without a word of it"),
        (restart(after=()), "and 0 after it"),
        (restart(after=(SPOT,)), "came back to the interrupted node"),
        (restart(restarts=2), "cost 2 restarts"),
        (
            restart(
                before=(SPOT, replace(SPOT, pod="r", node="spot-3")),
                after=(replace(SPOT, node="spot-3"),) * 2,
            ),
            "no new node was bought",
        ),
    ],
)
def test_a_restart_gone_wrong_is_told(seen: SpotRestart, complaint: str) -> None:
    assert any(complaint in problem for problem in unmet_by_restart(seen)), (
        f"{unmet_by_restart(seen)} should say {complaint!r}"
    )


def test_a_plain_pod_on_the_default_pool_is_as_it_should_be() -> None:
    assert unmet_by_default_placement(default_placement()) == [], "nothing in these facts is wrong"


def test_where_there_are_no_gpus_to_buy_a_spot_machine_with_room_is_enough() -> None:
    seen = default_placement(candidates=(FreeCapacity(placement=SPOT, free_cpus=15),))
    assert unmet_by_default_placement(seen, has_gpus=False) == [], "there is nothing else to be seen"


def test_room_is_what_the_plain_pod_needs() -> None:
    seen = replace(
        default_placement(candidates=(FreeCapacity(placement=SPOT, free_cpus=0.5),)), asked_cpus=0.1
    )
    assert unmet_by_default_placement(seen, has_gpus=False) == [], "it would have fitted there"


@pytest.mark.parametrize(
    ("seen", "complaint"),
    [
        (default_placement(plain=SPOT), "asks for nothing and is on spot"),
        (default_placement(plain=GPU), "with 8 GPUs"),
        (
            default_placement(candidates=(FreeCapacity(placement=GPU, free_cpus=95),)),
            "no spot machine had room",
        ),
        (
            default_placement(candidates=(FreeCapacity(placement=SPOT, free_cpus=15),)),
            "no GPU machine had room",
        ),
        (
            default_placement(
                candidates=(
                    FreeCapacity(placement=SPOT, free_cpus=0),
                    FreeCapacity(placement=GPU, free_cpus=9),
                )
            ),
            "no spot machine had room",
        ),
    ],
)
def test_a_plain_pod_in_the_wrong_place_is_told(seen: DefaultPlacement, complaint: str) -> None:
    assert any(complaint in problem for problem in unmet_by_default_placement(seen)), (
        f"{unmet_by_default_placement(seen)} should say {complaint!r}"
    )


def test_a_rayjob_with_workers_on_spot_is_as_it_should_be() -> None:
    assert unmet_by_rayjob(rayjob()) == [], "nothing in these facts is wrong"


@pytest.mark.parametrize(
    ("seen", "complaint"),
    [
        (rayjob(state=""), "without a state"),
        (rayjob(workers=()), "has no workers"),
        (rayjob(workers=(PLAIN,)), "selects spot and is on on-demand"),
        (rayjob(head=SPOT), "asks for nothing and is on spot"),
        (rayjob(submitters=(GPU,)), "asks for nothing and is on on-demand p4d.24xlarge"),
    ],
)
def test_a_rayjob_in_the_wrong_place_is_told(seen: RayJobPlacement, complaint: str) -> None:
    assert any(complaint in problem for problem in unmet_by_rayjob(seen)), (
        f"{unmet_by_rayjob(seen)} should say {complaint!r}"
    )
