"""How many pods a pool can grow to hold: in one plan of Karpenter's, and whatever it buys."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.scheduling.json import UNKNOWN
from holdfast.scheduling.reachability.facts import Limits, PodCapacity, pod_capacity
from holdfast.scheduling.reachability.machine_capacity import MachineCapacity
from holdfast.scheduling.reachability.shape import Resources


def machine(vcpus: int, gib: int, gpus: int = 0) -> MachineCapacity:
    """A machine of which pods get everything."""
    there = Resources(cpu_millis=vcpus * 1000, memory_mib=gib * 1024, gpus=gpus)
    return MachineCapacity(name=f"{vcpus}-{gib}-{gpus}", total=there, room=there)


def pod(vcpus: int, gib: int = 1, gpus: int = 0) -> Resources:
    return Resources(cpu_millis=vcpus * 1000, memory_mib=gib * 1024, gpus=gpus)


SMALL, LARGE, LEAN = machine(4, 16), machine(16, 64), machine(16, 32)


@pytest.mark.parametrize(
    ("limits", "held"),
    [
        (Limits(nodes=3), 15),
        (Limits(cpu_millis=48_000), 15),
        (Limits(cpu_millis=47_999), 10),
        (Limits(memory_mib=2 * 64 * 1024), 10),
        (Limits(nodes=3, cpu_millis=16_000), 5),
        (Limits(nodes=0), 0),
        (Limits(cpu_millis=15_999), 0),
    ],
)
def test_of_machines_of_one_size_so_many_are_bought_as_the_narrowest_limit_lets(
    limits: Limits, held: int
) -> None:
    assert pod_capacity(pod(3), [LARGE], limits) == PodCapacity(guaranteed=held, at_most=held), (
        "and nothing is left open"
    )


def test_a_pool_without_limits_holds_any_number() -> None:
    assert pod_capacity(pod(3), [SMALL, LARGE], Limits()) == PodCapacity(guaranteed=None, at_most=None), (
        "nothing bounds it"
    )
    gpus_alone = Limits(gpus=0)
    assert pod_capacity(pod(3), [LARGE], gpus_alone) == PodCapacity(guaranteed=None, at_most=None), (
        "it has none to count"
    )


def test_pods_that_fit_nowhere_have_no_place() -> None:
    assert pod_capacity(pod(17), [SMALL, LARGE], Limits()) == PodCapacity(guaranteed=0, at_most=0), (
        "no machine is so large"
    )


def test_what_the_largest_leave_over_is_room_for_smaller_ones() -> None:
    limits = Limits(cpu_millis=40_000)
    found = pod_capacity(pod(3), [SMALL, LARGE], limits)
    assert found == PodCapacity(guaranteed=12, at_most=12), (
        "five on each of two large ones, one on each of two small ones"
    )


def test_a_machine_is_counted_as_the_largest_that_it_could_become() -> None:
    """Eight small ones would be within the limit. Each that is planned could become the large one, of which two are."""
    found = pod_capacity(pod(1, gib=15), [SMALL, LEAN], Limits(cpu_millis=32_000))
    assert found == PodCapacity(guaranteed=4, at_most=8), "what is bought is not sure before it is bought"


def test_limits_made_for_the_largest_machine_leave_nothing_open() -> None:
    """As the components write them: so many nodes, and as much of each as so many of the largest have."""
    limits = Limits(nodes=4, cpu_millis=4 * 16_000)
    assert pod_capacity(pod(1, gib=15), [SMALL, LEAN], limits) == PodCapacity(guaranteed=8, at_most=8), (
        "two on each of four"
    )


def test_a_limit_that_is_not_known_leaves_everything_open_unless_another_is_none() -> None:
    assert pod_capacity(pod(1), [SMALL], Limits(nodes=UNKNOWN, cpu_millis=4000)) is UNKNOWN, "it may be 0"
    assert pod_capacity(pod(1), [SMALL], Limits(nodes=UNKNOWN, cpu_millis=0)) == PodCapacity(
        guaranteed=0, at_most=0
    ), "whatever it is"


sizes = st.builds(machine, st.integers(1, 64), st.integers(1, 256), st.sampled_from([0, 0, 1, 8]))
amounts = st.none() | st.integers(0, 400)
any_limits = st.builds(
    Limits,
    nodes=st.none() | st.integers(0, 20),
    cpu_millis=amounts.map(lambda cpus: None if cpus is None else cpus * 1000),
    memory_mib=amounts.map(lambda gib: None if gib is None else gib * 1024),
    gpus=st.none() | st.integers(0, 40),
)
pods = st.builds(pod, st.integers(1, 16), st.integers(1, 64), st.sampled_from([0, 0, 1]))


@given(requests=pods, machines=st.lists(sizes, min_size=1, max_size=4), limits=any_limits)
def test_what_is_sure_is_never_more_than_what_is_possible(
    requests: Resources, machines: list[MachineCapacity], limits: Limits
) -> None:
    found = pod_capacity(requests, machines, limits)
    assert isinstance(found, PodCapacity), "every limit is known"
    if found.guaranteed is not None and found.at_most is not None:
        assert found.guaranteed <= found.at_most, "a plan is one way to buy machines"


@given(requests=pods, machines=st.lists(sizes, min_size=1, max_size=3), limits=any_limits)
def test_one_plan_is_what_counting_machine_after_machine_comes_to(
    requests: Resources, machines: list[MachineCapacity], limits: Limits
) -> None:
    bounded = replace(limits, nodes=20 if limits.nodes is None else limits.nodes)
    found = pod_capacity(requests, machines, bounded)
    assert isinstance(found, PodCapacity), "every limit is known"
    assert found.guaranteed == counted_one_by_one(requests, machines, bounded), "no machine is skipped"


def counted_one_by_one(requests: Resources, machines: list[MachineCapacity], limits: Limits) -> int:
    held, left, nodes = 0, limits, limits.nodes
    assert isinstance(nodes, int), "so many at most"
    for _ in range(nodes):
        candidates = [
            each
            for each in machines
            if each.pods_of(requests) and replace(left, nodes=None).nodes_of(each) != 0
        ]
        if not candidates:
            break
        held += max(each.pods_of(requests) for each in candidates)
        left = Limits(
            cpu_millis=_less(left.cpu_millis, max(each.capacity.cpu_millis for each in candidates)),
            memory_mib=_less(left.memory_mib, max(each.capacity.memory_mib for each in candidates)),
            gpus=_less(left.gpus, max(each.capacity.gpus for each in candidates)),
        )
    return held


def _less(limit: object, by: int) -> int | None:
    return limit - by if isinstance(limit, int) else None
