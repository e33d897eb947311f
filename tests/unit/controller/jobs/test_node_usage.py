"""The node time of a job: its own nodes, each for as long as the job has it, and none of it twice."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from fractions import Fraction
from typing import Final, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pulumi_holdfast.controller.jobs.caches import POD_LABELS, Caches
from pulumi_holdfast.controller.jobs.node_usage import (
    NodeSharing,
    NodeUsage,
    SharedNode,
    UsedNode,
    capacity_of_node,
    used_nodes,
)
from pulumi_holdfast.controller.jobs.observation import NodeKind
from pulumi_holdfast.controller.jobs.pods_and_nodes import JobKey
from pulumi_holdfast.ladder import quantities
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import (
    AKS_SCALE_SET_PRIORITY,
    CAPACITY_TYPE,
    GKE_PROVISIONING,
    GKE_SPOT,
    POOL,
    RESERVATION_NAMESPACE,
    RESERVED_FOR,
    CapacityType,
)
from pulumi_holdfast.ladder.ladder import NoPolicy
from pulumi_holdfast.ladder.quantities import effective_requests
from tests.support.builders.caches import training_caches
from tests.support.builders.fallback_objects import NAMESPACE, jobset, node, renamed, worker
from tests.support.builders.job_states import HOUR, MINUTE, T0
from tests.support.json_objects import obj
from tests.support.soak import sized

K = TypeVar("K")

SPOT = NodeKind(pool="a-spot", capacity=CapacityType.SPOT)
LAST = NodeKind(pool="on-demand", capacity=CapacityType.ON_DEMAND)


def nodes(kind: NodeKind, count: int = 2) -> tuple[UsedNode, ...]:
    return (UsedNode(kind=kind, since=T0),) * count


def pod(node: str, phase: str = "Running", *, at: str = "2030-05-01T12:00:00Z") -> Json:
    bound: Json = {"type": "PodScheduled", "status": "True", "lastTransitionTime": at}
    return {"spec": {"nodeName": node}, "status": {"phase": phase, "conditions": [bound]}}


def labelled_node(labels: dict[str, str]) -> Json:
    return {"metadata": {"name": "n", "labels": labels}}


def test_the_time_of_each_node_counts_until_the_job_has_it_no_more() -> None:
    usage = NodeUsage[str]()
    assert usage.update("job", T0, T0, nodes(SPOT)) == {SPOT: timedelta(0)}
    assert usage.update("job", T0, T0 + HOUR, nodes(LAST, 1)) == {SPOT: 2 * HOUR}
    assert usage.update("job", T0, T0 + 2 * HOUR, ()) == {SPOT: 2 * HOUR, LAST: HOUR}
    assert usage.update("job", T0, T0 + 3 * HOUR, ()) == {SPOT: 2 * HOUR, LAST: HOUR}


def test_what_the_ledger_has_counts_no_second_time() -> None:
    usage = NodeUsage[str]()
    usage.update("job", T0, T0, nodes(SPOT))
    usage.update("job", T0, T0 + HOUR, nodes(SPOT))
    assert usage.update("job", T0 + HOUR, T0 + 2 * HOUR, nodes(SPOT)) == {SPOT: 2 * HOUR}


def test_a_process_that_starts_counts_from_when_its_pods_got_their_nodes() -> None:
    usage = NodeUsage[str]()
    two = (UsedNode(kind=SPOT, since=T0 + 30 * MINUTE), UsedNode(kind=SPOT, since=T0 - HOUR))
    assert usage.update("job", T0, T0 + HOUR, two) == {SPOT: 90 * MINUTE}


def asking(cpu: float, gpus: int = 0) -> Json:
    """A pod with requests."""
    requests: Json = {"cpu": f"{round(cpu * 1000)}m", **({"nvidia.com/gpu": str(gpus)} if gpus else {})}
    return {"spec": {"containers": [{"resources": {"requests": requests}}]}, "status": {"phase": "Running"}}


def node_shares(pods: Mapping[K, Sequence[Json]], node: Json) -> dict[K, float]:
    """The part of a node that is each job's."""
    shared = SharedNode[K](node)
    for job, each in pods.items():
        shared.put(job, each)
    return {job: shared.part(job) for job in pods}


MACHINE: Final[Json] = {"status": {"allocatable": {"cpu": "32", "memory": "64Gi", "nvidia.com/gpu": "8"}}}


@pytest.mark.parametrize(
    ("pods", "shares"),
    [
        ({"a": [asking(24, 6)], "b": [asking(4, 1), asking(4, 1)]}, {"a": 0.75, "b": 0.25}),
        ({"a": [asking(2, 6)], "b": [asking(24, 2)]}, {"a": 0.5, "b": 0.5}),
        ({"a": [asking(20, 8)], "b": [asking(8)]}, {"a": 0.8, "b": 0.2}),
        ({"a": [asking(0)], "b": [asking(0), asking(0)]}, {"a": 0.5, "b": 0.5}),
        ({"a": [asking(1)], "b": []}, {"a": 1.0, "b": 0.0}),
    ],
    ids=[
        "in proportion",
        "largest parts",
        "a job without GPUs",
        "no requests",
        "a job that has not come yet",
    ],
)
def test_jobs_on_one_node_divide_it_by_the_largest_part_of_it_that_they_request(
    pods: dict[str, list[Json]], shares: dict[str, float]
) -> None:
    assert node_shares(pods, MACHINE) == pytest.approx(shares)


def test_equal_requests_on_a_node_are_added_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[Json] = []

    def count(spec: Json) -> Mapping[str, Fraction]:
        counted.append(spec)
        return effective_requests(spec)

    monkeypatch.setattr(quantities, "effective_requests", count)
    there = {job: [asking(0.317), asking(0.317)] for job in range(50)}
    for _ in range(2):
        assert node_shares(there, MACHINE) == dict.fromkeys(there, pytest.approx(0.02))
    assert len(counted) <= 1


@given(
    visits=st.lists(
        st.tuples(
            st.sampled_from("abc"), st.floats(0, 8), st.integers(0, 2), st.integers(0, 20), st.integers(1, 20)
        ),
        min_size=1,
        max_size=8,
    )
)
def test_the_ledgers_of_the_jobs_on_one_node_add_up_to_the_node(
    visits: list[tuple[str, float, int, int, int]],
) -> None:
    usage, found = NodeUsage[str](), dict[str, timedelta]()
    for minute in range(41):
        pods: dict[str, list[Json]] = {}
        for job, cpu, gpus, begin, length in visits:
            if begin <= minute < begin + length:
                pods.setdefault(job, []).append(asking(cpu, gpus))
        shares = node_shares(pods, MACHINE)
        for job in "abc":
            used = (UsedNode(kind=SPOT, since=T0, share=shares[job]),) if job in shares else ()
            found[job] = usage.update(job, T0, T0 + minute * MINUTE, used).get(SPOT, timedelta(0))
    occupied = {minute for _, _, _, begin, length in visits for minute in range(begin, begin + length)}
    total = sum(found.values(), timedelta(0))
    assert abs(total - len(occupied) * MINUTE) < timedelta(seconds=1), f"each minute counts once: {found}"


def test_a_node_counts_once_and_only_while_a_pod_of_the_job_runs_there() -> None:
    known = {name: labelled_node({POOL: "a-spot", CAPACITY_TYPE: "spot"}) for name in ("n1", "n2", "n3")}
    pods = [pod("n1"), pod("n1", at="2030-05-01T11:00:00Z"), pod("n2", "Succeeded"), pod("gone")]
    found = used_nodes(pods, ["n3"], known, NoPolicy())
    assert [each.kind for each in found] == [SPOT, SPOT]
    assert found[0].since == T0 - HOUR
    system = used_nodes([pod("n1")], (), {"n1": labelled_node({})}, NoPolicy())
    assert system == ()


@pytest.mark.parametrize(
    ("labels", "capacity"),
    [
        ({CAPACITY_TYPE: "spot"}, CapacityType.SPOT),
        ({CAPACITY_TYPE: "on-demand"}, CapacityType.ON_DEMAND),
        ({GKE_SPOT: "true"}, CapacityType.SPOT),
        ({GKE_PROVISIONING: "spot"}, CapacityType.SPOT),
        ({AKS_SCALE_SET_PRIORITY: "spot"}, CapacityType.SPOT),
        ({}, CapacityType.ON_DEMAND),
    ],
)
def test_the_labels_of_a_node_say_how_its_machine_is_bought(
    labels: dict[str, str], capacity: CapacityType
) -> None:
    assert capacity_of_node(labelled_node(labels)) is capacity


JOBS: Final = ("a", "b", "c")
NODES: Final = ("n", "m")
KEYS: Final = [JobKey("JobSet", NAMESPACE, name) for name in JOBS]


def requesting(pod: Json, cpu: int) -> Json:
    """The pod with a request."""
    container: Json = {"resources": {"requests": {"cpu": str(cpu), "memory": str(4 - cpu)}}}
    return {**pod, "spec": {**obj(pod["spec"]), "containers": [container]}}


def put_pod(caches: Caches, job: str, on: str, number: int) -> None:
    phase = "Succeeded" if number == 0 else "Running"
    caches.pods[POD_LABELS[0]].put(requesting(renamed(worker(job, node=on, phase=phase), job), number))


def put_placeholder(caches: Caches, job: str, on: str, number: int) -> None:
    labels: Json = {RESERVED_FOR: f"uid-of-{job}"}
    metadata: Json = {"name": f"hold-{job}", "namespace": RESERVATION_NAMESPACE, "labels": labels}
    caches.placeholders.put(requesting({"metadata": metadata, "spec": {"nodeName": on}}, number))


def put_job(caches: Caches, job: str, _on: str, _number: int) -> None:
    caches.jobs["JobSet"].put(renamed(jobset(), job))


def put_node(caches: Caches, _job: str, on: str, number: int) -> None:
    caches.nodes.put({**node(on), "status": {"allocatable": {"cpu": str(number), "memory": "4"}}})


def remove_one(caches: Caches, job: str, on: str, number: int) -> None:
    cache = (caches.pods[POD_LABELS[0]], caches.placeholders, caches.jobs["JobSet"], caches.nodes)[number]
    cache.retain({name for name in cache.known() if name[1] not in {job, on, f"hold-{job}"}})


Change = Callable[[Caches, str, str, int], None]
CHANGES: Final[Sequence[Change]] = (put_pod, put_pod, put_pod, put_placeholder, put_job, put_node, remove_one)


@settings(max_examples=sized(40, soak=2000))
@given(
    st.lists(
        st.tuples(st.sampled_from(CHANGES), st.sampled_from(JOBS), st.sampled_from(NODES), st.integers(0, 3)),
        min_size=10,
        max_size=60,
    )
)
def test_remembered_parts_are_those_that_the_pods_on_a_node_have_now(
    changes: Sequence[tuple[Change, str, str, int]],
) -> None:
    caches, changed_nodes = training_caches(), list[str]()
    sharing = NodeSharing(caches, lambda on, _: changed_nodes.append(on))
    parts = {on: [sharing.part(on, key) for key in KEYS] for on in NODES}
    for change, job, node_name, number in changes:
        changed_nodes.clear()
        change(caches, job, node_name, number)
        for on, before in parts.items():
            current = NodeSharing(caches, lambda _on, _jobs: None)
            now = [sharing.part(on, key) for key in KEYS]
            assert now == [current.part(on, key) for key in KEYS], (
                f"{on} after {change.__name__} {number} of {job}"
            )
            assert now == before or on in changed_nodes
            parts[on] = now
    assert len(sharing) <= len(NODES)


def test_the_parts_of_a_lost_node_are_forgotten_with_its_last_pod() -> None:
    caches = training_caches()

    def changed(on: str, keys: Iterable[JobKey]) -> None:
        for key in keys:
            sharing.part(on, key)

    sharing = NodeSharing(caches, changed)
    for number in range(3):
        name = f"n-{number}"
        put_node(caches, "", name, 4)
        put_pod(caches, "a", name, 1)
        assert sharing.part(name, KEYS[0]) == 1.0
        caches.nodes.retain(set())
        caches.pods[POD_LABELS[0]].retain(set())
    assert len(sharing) == 0
