"""What is bought for waiting pods: the cheapest that takes them, as few as will do, none beyond a limit."""

from collections import Counter
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from holdfast.simulator.cluster_autoscaler.scale_up import FULL, IN_BACKOFF, plan
from tests.support.autoscaling_objects import NOW, SPOT_TAINT, needs, offer, room

SPOT = offer("spot", room=room(taints=(SPOT_TAINT,), since=None), hourly_price=0.1)
TOLERATES = ({"key": SPOT_TAINT["key"], "operator": "Exists"},)


def test_nothing_is_bought_where_a_node_has_room() -> None:
    found = plan([needs()], [room()], [offer()], NOW)
    assert (found.purchases, found.hopeless) == ((), ()), "the scheduler puts it there in a moment"


def test_the_cheapest_machine_that_takes_the_pod_is_bought() -> None:
    dear = offer("dear", hourly_price=2.0)
    (bought,) = plan([needs()], [], [dear, SPOT, offer("cpu")], NOW).purchases
    assert bought.pool == "cpu", "spot is cheaper and does not take it, the other one is dearer"
    (bought,) = plan([needs(tolerations=TOLERATES)], [], [dear, SPOT, offer("cpu")], NOW).purchases
    assert bought.pool == "spot", "this one tolerates it"


def test_a_list_of_priorities_goes_before_the_price() -> None:
    first, second = offer("dear", hourly_price=2.0, priority=0), offer("cheap", priority=1)
    (bought,) = plan([needs()], [], [second, first], NOW).purchases
    assert bought.pool == "dear", "a class lists it first"


def test_pods_share_a_machine_as_far_as_they_fit() -> None:
    found = plan([needs("p", cpu=2), needs("q", cpu=2), needs("r", cpu=2)], [], [offer()], NOW)
    names = [[pod.name for pod in bought.pods] for bought in found.purchases]
    assert names == [["p", "q"], ["r"]], "four CPUs take two of them"


def test_a_full_pool_and_one_without_stock_are_told_apart() -> None:
    offers = [offer("full", spare=0), offer("gone", is_in_backoff=True), SPOT]
    ((_, reasons),) = plan([needs()], [], offers, NOW).hopeless
    assert reasons == (
        f"1 {IN_BACKOFF}, 1 {FULL}, 1 node(s) had untolerated taint {{cloud.google.com/gke-spot: true}}"
    ), "each pool has a reason of its own"


def test_a_pool_that_is_full_leaves_its_pods_to_the_next_cheapest() -> None:
    found = plan(
        [needs("p", cpu=4), needs("q", cpu=4)], [], [offer(spare=1), offer("dear", hourly_price=9)], NOW
    )
    assert [bought.pool for bought in found.purchases] == ["cpu", "dear"], "the first has one machine left"


def test_a_balanced_pool_buys_where_it_has_fewest() -> None:
    offers = [offer(zone=zone, nodes=nodes, spreads=True) for zone, nodes in (("a", 2), ("b", 0), ("c", 1))]
    found = plan([needs(str(at), cpu=4) for at in range(3)], [], offers, NOW)
    assert Counter(bought.zone for bought in found.purchases) == {"b": 2, "c": 1}, "the zones come level"


def test_a_pool_that_takes_any_zone_fills_the_first() -> None:
    found = plan([needs(str(at), cpu=4) for at in range(3)], [], [offer(zone=zone) for zone in "ba"], NOW)
    assert {bought.zone for bought in found.purchases} == {"a"}, "it does not spread"


def test_a_pod_that_waits_in_spite_of_room_gets_a_node_in_the_end() -> None:
    waiting = needs(unschedulable_since=NOW - timedelta(minutes=1))
    old, new = room(since=NOW - timedelta(minutes=5)), room(since=NOW - timedelta(seconds=5))
    assert len(plan([waiting], [old], [offer()], NOW).purchases) == 1, (
        "a rule that is not played keeps it from the node that is there"
    )
    assert plan([waiting], [new], [offer()], NOW).purchases == (), "a node that has just come is for it"


@given(cpus=st.lists(st.integers(min_value=1, max_value=6), max_size=20), spare=st.integers(0, 6))
def test_no_limit_is_passed_no_machine_is_overfull_and_nobody_is_forgotten(
    cpus: list[int], spare: int
) -> None:
    pods = [needs(f"p{at}", cpu=cpu) for at, cpu in enumerate(cpus)]
    found = plan(pods, [], [offer(zone=zone, spare=spare) for zone in "ab"], NOW)
    assert len(found.purchases) <= spare, "the limit is the whole pool's"
    for bought in found.purchases:
        assert sum(pod.requests["cpu"] for pod in bought.pods) <= 4, "a machine has four CPUs"
    served = [pod.name for bought in found.purchases for pod in bought.pods]
    assert sorted([*served, *(pod.name for pod, _ in found.hopeless)]) == sorted(pod.name for pod in pods), (
        "each pod is served or told why not, once"
    )
