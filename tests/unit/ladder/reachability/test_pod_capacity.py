from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.ladder.reachability.facts import Limits
from pulumi_holdfast.ladder.reachability.machine_capacity import MachineCapacity
from pulumi_holdfast.ladder.reachability.pod_capacity import PodCapacity, pod_capacity, static_capacity
from pulumi_holdfast.ladder.reachability.shape import Resources


def machine(vcpus: int, gib: int, gpus: int = 0) -> MachineCapacity:
    """A machine without reservations."""
    size = Resources(cpu_millis=vcpus * 1000, memory_mib=gib * 1024, gpus=gpus)
    return MachineCapacity(name=f"{vcpus}-{gib}-{gpus}", capacity=size, allocatable=size)


def pod(vcpus: int, gib: int = 1, gpus: int = 0) -> Resources:
    return Resources(cpu_millis=vcpus * 1000, memory_mib=gib * 1024, gpus=gpus)


SMALL, LARGE, LEAN = machine(4, 16), machine(16, 64), machine(16, 32)


@pytest.mark.parametrize(
    ("requests", "machines", "limits", "guaranteed", "at_most", "reason"),
    [
        *((pod(3), [LARGE], limits, held, held, "the narrowest limit decides for machines of one size") for limits, held in [
            (Limits(nodes=3), 15), (Limits(cpu_millis=48_000), 15), (Limits(cpu_millis=47_999), 10), (Limits(memory_mib=2 * 64 * 1024), 10),
            (Limits(nodes=3, cpu_millis=16_000), 5), (Limits(nodes=0), 0), (Limits(cpu_millis=15_999), 0),
        ]),
        (pod(3), [SMALL, LARGE], Limits(), None, None, "no limit is set"),
        (pod(3), [LARGE], Limits(gpus=0), None, None, "the machine has no GPUs to count"),
        (pod(17), [SMALL, LARGE], Limits(), 0, 0, "17 CPUs fit nowhere"),
        (pod(3), [SMALL, LARGE], Limits(cpu_millis=40_000), 12, 12, "five on each of two large ones, one on each of two small ones"),
        # Eight small ones are within the limit, but each planned one could become the large one, and only two of those are.
        (pod(1, gib=15), [SMALL, LEAN], Limits(cpu_millis=32_000), 4, 8, "the types are not known before the purchase"),
        # The components write such limits: a number of nodes, and the resources of as many of the largest machine.
        (pod(1, gib=15), [SMALL, LEAN], Limits(nodes=4, cpu_millis=4 * 16_000), 8, 8, "two on each of four"),
        (pod(1), [SMALL], Limits(nodes=UNKNOWN, cpu_millis=0), 0, 0, "a limit of 0 decides, whatever is unknown"),
    ],
)  # fmt: skip
def test_pool_holds_as_many_pods_as_its_limits_allow(
    requests: Resources, machines: list[MachineCapacity], limits: Limits, guaranteed: int | None, at_most: int | None, reason: str
) -> None:  # fmt: skip
    assert pod_capacity(requests, [machines], limits) == PodCapacity(
        guaranteed=guaranteed, at_most=at_most
    ), reason


def test_unknown_limit_is_undetermined() -> None:
    assert pod_capacity(pod(1), [[SMALL]], Limits(nodes=UNKNOWN, cpu_millis=4000)) is UNKNOWN


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
def test_guaranteed_pods_never_exceed_the_upper_bound(
    requests: Resources, machines: list[MachineCapacity], limits: Limits
) -> None:
    found = pod_capacity(requests, [machines], limits)
    assert isinstance(found, PodCapacity)
    if found.guaranteed is not None and found.at_most is not None:
        assert found.guaranteed <= found.at_most


@given(requests=pods, machines=st.lists(sizes, min_size=1, max_size=3), limits=any_limits)
def test_plan_equals_counting_machine_by_machine(
    requests: Resources, machines: list[MachineCapacity], limits: Limits
) -> None:
    bounded = replace(limits, nodes=20 if limits.nodes is None else limits.nodes)
    found = pod_capacity(requests, [machines], bounded)
    assert isinstance(found, PodCapacity)
    assert found.guaranteed == counted_one_by_one(requests, machines, bounded)


def counted_one_by_one(requests: Resources, machines: list[MachineCapacity], limits: Limits) -> int:
    held, left, nodes = 0, limits, limits.nodes
    assert isinstance(nodes, int)
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


@pytest.mark.parametrize(
    ("families", "least", "room"),
    [
        ((("small", "a"), ("large", "b")), 1, 5),
        ((("small", "a"), ("large", "b")), 2, 1),
        ((("small", "a"), ("large", "a")), 2, 0),
        ((("small", "a"), ("large", "b")), 3, 0),
    ],
)
def test_machine_is_filled_while_enough_types_fit(
    families: tuple[tuple[str, str], ...], least: int, room: int
) -> None:
    types = {"small": SMALL, "large": LARGE}
    machines = [replace(types[name], labels={"family": family}) for name, family in families]
    found = pod_capacity(pod(3), [machines], Limits(cpu_millis=16_000), min_values={"family": least})
    assert isinstance(found, PodCapacity)
    assert found.guaranteed == room, "a machine that could become only one type would break minValues"


@pytest.mark.parametrize(
    ("terms", "least", "guaranteed", "at_most", "reason"),
    [
        ((("small",), ("large",)), 1, 6, 7, "six small ones for the first term leave nothing for the second"),
        ((("large",), ("small",)), 1, 7, 7, "a large one for the first term, and two small ones with what it leaves"),
        ((("small",), ("large",)), 2, 0, 0, "a machine becomes a type of one term, which has one value"),
        ((("small",), ("large", "lean")), 2, 5, 5, "only the second term has two values"),
    ],
)  # fmt: skip
def test_terms_of_affinity_are_tried_one_after_the_other(
    terms: tuple[tuple[str, ...], ...], least: int, guaranteed: int, at_most: int, reason: str
) -> None:
    types = {"small": SMALL, "large": LARGE, "lean": LEAN}
    machines = [[replace(types[name], labels={"family": name}) for name in term] for term in terms]
    limits = Limits(cpu_millis=24_000)
    found = pod_capacity(pod(3), machines, limits, min_values={"family": least})
    assert found == PodCapacity(guaranteed=guaranteed, at_most=at_most), reason


def test_values_of_a_label_that_does_not_follow_from_the_type_are_not_counted() -> None:
    found = pod_capacity(pod(3), [[LARGE]], Limits(nodes=1), min_values={"zone": 2})
    assert found == PodCapacity(guaranteed=5, at_most=5)


def test_static_nodes_hold_what_their_smallest_type_holds() -> None:
    found = static_capacity(pod(3), [SMALL, LARGE], 2)
    assert (found.guaranteed, found.at_most) == (2, 10)


@pytest.mark.parametrize(("gpus", "guaranteed"), [(0, 0), (8, 5), (16, 10)])
def test_types_that_exceed_a_limit_do_not_count_for_min_values(gpus: int, guaranteed: int) -> None:
    types = [replace(each, labels={"type": each.name}) for each in (LARGE, machine(16, 64, gpus=8))]
    found = pod_capacity(pod(3), [types], Limits(gpus=gpus), min_values={"type": 2})
    assert isinstance(found, PodCapacity)
    assert found.guaranteed == guaranteed
