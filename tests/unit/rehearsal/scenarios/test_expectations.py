"""The expectations of each scenario."""

from dataclasses import replace

import pytest

from pulumi_holdfast.rehearsal.scenarios.expectations import (
    unmet_by_default_placement,
    unmet_by_rayjob,
    unmet_by_restart,
)
from pulumi_holdfast.rehearsal.scenarios.pod_placement import DefaultPlacement, FreeCapacity, RayJobPlacement
from pulumi_holdfast.rehearsal.scenarios.spot_restart import SpotRestart
from tests.support.builders.scenario_results import GPU, PLAIN, SPOT, default_placement, rayjob, restart


def test_valid_results_meet_the_expectations() -> None:
    assert unmet_by_restart(restart()) == []
    other = replace(SPOT, pod="r", node="spot-3")
    seen = restart(before=(SPOT, other), after=(replace(SPOT, node="spot-2"), replace(other, pod="r2")))
    assert unmet_by_restart(seen) == []
    assert unmet_by_default_placement(default_placement()) == []
    seen = default_placement(candidates=(FreeCapacity(placement=SPOT, free_cpus=15),))
    assert unmet_by_default_placement(seen, has_gpus=False) == []
    seen = replace(
        default_placement(candidates=(FreeCapacity(placement=SPOT, free_cpus=0.5),)), asked_cpus=0.1
    )
    assert unmet_by_default_placement(seen, has_gpus=False) == []
    assert unmet_by_rayjob(rayjob()) == []


def test_a_new_node_may_have_the_name_of_the_old_one() -> None:
    old, new = replace(SPOT, host="uid-1"), replace(SPOT, pod="p2", host="uid-2")
    assert unmet_by_restart(restart(before=(old,), after=(new,))) == []
    same = restart(before=(old,), after=(replace(new, host="uid-1"),))
    assert any("came back to the interrupted node" in problem for problem in unmet_by_restart(same))


@pytest.mark.parametrize(
    ("seen", "complaint"),
    [
        (restart(before=(replace(SPOT, capacity="on-demand"),)), "is on on-demand"),
        (restart(after=(replace(SPOT, node="spot-2", capacity="on-demand"),)), "is on on-demand"),
        (restart(evicted=()), "have no DisruptionTarget condition"),
        (restart(after=()), "and 0 after it"),
        (restart(after=(SPOT,)), "came back to the interrupted node"),
        (restart(restarts=2), "cost 2 restarts"),
        (
            restart(
                before=(SPOT, replace(SPOT, pod="r", node="spot-3")),
                after=(replace(SPOT, node="spot-3"),) * 2,
            ),
            "there is no new node",
        ),
    ],
)
def test_an_unexpected_restart_is_reported(seen: SpotRestart, complaint: str) -> None:
    assert any(complaint in problem for problem in unmet_by_restart(seen))


@pytest.mark.parametrize(
    ("seen", "complaint"),
    [
        (default_placement(plain=SPOT), "has no selection and is on spot"),
        (default_placement(plain=GPU), "with 8 GPUs"),
        (
            default_placement(candidates=(FreeCapacity(placement=GPU, free_cpus=95),)),
            "no spot node had free capacity",
        ),
        (
            default_placement(candidates=(FreeCapacity(placement=SPOT, free_cpus=15),)),
            "no GPU node had free capacity",
        ),
        (
            default_placement(
                candidates=(
                    FreeCapacity(placement=SPOT, free_cpus=0),
                    FreeCapacity(placement=GPU, free_cpus=9),
                )
            ),
            "no spot node had free capacity",
        ),
    ],
)
def test_an_unexpected_placement_of_a_plain_pod_is_reported(seen: DefaultPlacement, complaint: str) -> None:
    assert any(complaint in problem for problem in unmet_by_default_placement(seen))


@pytest.mark.parametrize(
    ("seen", "complaint"),
    [
        (rayjob(state=""), "without a state"),
        (rayjob(workers=()), "has no workers"),
        (rayjob(workers=(PLAIN,)), "selects spot and is on on-demand"),
        (rayjob(head=SPOT), "has no selection and is on spot"),
        (rayjob(submitters=(GPU,)), "has no selection and is on on-demand p4d.24xlarge"),
    ],
)
def test_an_unexpected_placement_of_a_rayjob_is_reported(seen: RayJobPlacement, complaint: str) -> None:
    assert any(complaint in problem for problem in unmet_by_rayjob(seen))
