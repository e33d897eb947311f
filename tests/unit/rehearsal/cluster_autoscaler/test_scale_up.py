"""What is bought for waiting pods: the cheapest that takes them, as few as will do, none beyond a limit."""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.ladder.reachability.affinity import Requirement
from pulumi_holdfast.ladder.taints import GKE_SPOT_TAINT, Toleration
from pulumi_holdfast.rehearsal.cluster_autoscaler.scale_up import FULL, IN_BACKOFF, plan, unschedulable_reason
from tests.support.builders.autoscaling_objects import NOW, needs, offer, room

SPOT = offer("spot", room=room(taints=(GKE_SPOT_TAINT,), since=None), hourly_price=0.1)
TOLERATES = (Toleration(key=GKE_SPOT_TAINT.key),)


def test_a_fitting_node_prevents_a_purchase_unless_the_pod_stays_pending() -> None:
    found = plan([needs()], [room()], [offer()], NOW)
    assert (found.purchases, found.unschedulable) == ((), ())
    waiting = needs(unschedulable_since=NOW - timedelta(minutes=1))
    old, new = room(since=NOW - timedelta(minutes=5)), room(since=NOW - timedelta(seconds=5))
    assert len(plan([waiting], [old], [offer()], NOW).purchases) == 1
    assert plan([waiting], [new], [offer()], NOW).purchases == ()


def test_the_first_priority_then_the_cheapest_fitting_machine_is_bought() -> None:
    dear = offer("dear", hourly_price=2.0)
    (bought,) = plan([needs()], [], [dear, SPOT, offer("cpu")], NOW).purchases
    assert bought.pool == "cpu"
    (bought,) = plan([needs(tolerations=TOLERATES)], [], [dear, SPOT, offer("cpu")], NOW).purchases
    assert bought.pool == "spot"
    first, second = offer("dear", hourly_price=2.0, priority=0), offer("cheap", priority=1)
    (bought,) = plan([needs()], [], [second, first], NOW).purchases
    assert bought.pool == "dear"


def test_pods_share_machines_and_a_full_pool_leaves_them_to_the_next() -> None:
    found = plan([needs("p", cpu=2), needs("q", cpu=2), needs("r", cpu=2)], [], [offer()], NOW)
    names = [[pod.name for pod in bought.pods] for bought in found.purchases]
    assert names == [["p", "q"], ["r"]]
    found = plan(
        [needs("p", cpu=4), needs("q", cpu=4)], [], [offer(spare=1), offer("dear", hourly_price=9)], NOW
    )
    assert [bought.pool for bought in found.purchases] == ["cpu", "dear"]


def test_a_full_pool_and_one_in_backoff_have_different_reasons() -> None:
    offers = [offer("full", spare=0), offer("gone", is_in_backoff=True), SPOT]
    ((_, reasons),) = plan([needs()], [], offers, NOW).unschedulable
    assert reasons == (
        f"1 {IN_BACKOFF}, 1 {FULL}, 1 node(s) had untolerated taint {{cloud.google.com/gke-spot: true}}"
    )


def test_only_a_balanced_pool_spreads_over_zones() -> None:
    offers = [offer(zone=zone, nodes=nodes, spreads=True) for zone, nodes in (("a", 2), ("b", 0), ("c", 1))]
    found = plan([needs(str(at), cpu=4) for at in range(3)], [], offers, NOW)
    assert Counter(bought.zone for bought in found.purchases) == {"b": 2, "c": 1}
    found = plan([needs(str(at), cpu=4) for at in range(3)], [], [offer(zone=zone) for zone in "ba"], NOW)
    assert {bought.zone for bought in found.purchases} == {"a"}


@given(cpus=st.lists(st.integers(min_value=1, max_value=6), max_size=20), spare=st.integers(0, 6))
def test_limits_and_capacities_hold_and_each_pod_is_planned(cpus: list[int], spare: int) -> None:
    pods = [needs(f"p{at}", cpu=cpu) for at, cpu in enumerate(cpus)]
    found = plan(pods, [], [offer(zone=zone, spare=spare) for zone in "ab"], NOW)
    assert len(found.purchases) <= spare
    for bought in found.purchases:
        assert sum(pod.requests["cpu"] for pod in bought.pods) <= 4
    served = [pod.name for bought in found.purchases for pod in bought.pods]
    assert sorted([*served, *(pod.name for pod, _ in found.unschedulable)]) == sorted(
        pod.name for pod in pods
    )


UNSELECTED = "node(s) didn't match Pod's node affinity/selector"


def test_only_pods_that_tolerate_and_select_a_node_fit_it() -> None:
    assert unschedulable_reason(needs(), room()) is None
    told = unschedulable_reason(needs(), room(taints=(GKE_SPOT_TAINT,)))
    assert told == "node(s) had untolerated taint {cloud.google.com/gke-spot: true}"
    assert unschedulable_reason(needs(tolerations=TOLERATES), room(taints=(GKE_SPOT_TAINT,))) is None
    pod = needs(selector={"a": "1", "b": "2"})
    assert unschedulable_reason(pod, room(labels={"a": "1", "b": "2", "c": "3"})) is None
    assert unschedulable_reason(pod, room(labels={"a": "1"})) == UNSELECTED


@pytest.mark.parametrize(
    ("terms", "holds"),
    [
        ([[("a", "Exists")]], True),
        ([[("x", "Exists")]], False),
        ([[("x", "NotIn", "2")]], True),
        ([[("topology.kubernetes.io/zone", "In", "a")]], False),
        ([[("x", "Exists")], [("a", "Gt", "0")]], True),
        ([[("a", "Exists"), ("x", "Exists")]], False),
        ([[("a", "Resembles", "1")]], False),
        ([()], False),
    ],
)
def test_an_affinity_holds_for_the_labels_that_a_node_has_and_no_others(
    terms: Sequence[Sequence[tuple[str, ...]]], holds: bool
) -> None:
    given = tuple(
        tuple(
            Requirement(key=key, operator=operator, values=tuple(values)) for key, operator, *values in term
        )
        for term in terms
    )
    found = unschedulable_reason(needs(terms=given), room(labels={"a": "1"}))
    assert (found is None) is holds, f"{terms}: {found}"


def test_missing_resources_are_named() -> None:
    pod = needs(cpu=5, requests={**needs(cpu=5).requests, "nvidia.com/gpu": needs().requests["cpu"]})
    assert unschedulable_reason(pod, room()) == "Insufficient cpu, Insufficient nvidia.com/gpu"
    left = room(cpu=4).without(needs(cpu=3).requests)
    assert unschedulable_reason(needs(cpu=1), left) is None
    assert unschedulable_reason(needs(cpu=2), left) == "Insufficient cpu"
