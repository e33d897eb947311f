"""The parts of a node are those of the pods on it, whatever has changed in which order."""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from hypothesis import given, settings
from hypothesis import strategies as st

from pulumi_holdfast.controller.jobs.snapshot import JobKey
from pulumi_holdfast.controller.reconciler.caches import POD_LABELS, Caches
from pulumi_holdfast.controller.reconciler.node_sharing import NodeSharing
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import RESERVATION_NAMESPACE, RESERVED_FOR
from tests.support.builders.caches import training_caches
from tests.support.builders.fallback_objects import NAMESPACE, jobset, node, renamed, worker
from tests.support.json_objects import obj
from tests.support.soak import sized

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
            assert now == before or on in changed_nodes, "the time until now counts by the parts of before"
            parts[on] = now
    assert len(sharing) <= len(NODES), "no other node was asked for"


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
        assert sharing.part(name, KEYS[0]) == 1.0, "the job is alone there"
        caches.nodes.retain(set())
        caches.pods[POD_LABELS[0]].retain(set())
    assert len(sharing) == 0, "a controller that runs for months sees many spot nodes come and go"
