"""Placements of pods, and the pods that a watch shows after an interruption."""

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.scenarios.placement import PodPlacement, free_cpus, placements
from pulumi_holdfast.rehearsal.scenarios.spot_restart import ObservedPods

EVICTED = "EvictionByEvictionAPI"
NODE: Json = {
    "metadata": {
        "name": "n",
        "labels": {
            "holdfast.dev/pool": "a100-spot",
            "karpenter.sh/capacity-type": "spot",
            "node.kubernetes.io/instance-type": "p4d.24xlarge",
        },
    },
    "status": {"allocatable": {"cpu": "95500m", "nvidia.com/gpu": "8"}},
}


def trainer(
    name: str, *, node: str = "n", phase: str = "Running", deleted: bool = False, evicted: bool = False
) -> Json:
    """A pod that requests one and a half CPUs."""
    condition = {"type": "DisruptionTarget", "status": "True", "reason": EVICTED}
    return {
        "metadata": {"name": name, "uid": name, **({"deletionTimestamp": "now"} if deleted else {})},
        "spec": {
            "nodeName": node,
            "containers": [
                {"resources": {"requests": {"cpu": "1"}}},
                {"resources": {"requests": {"cpu": "500m"}}},
            ],
        },
        "status": {"phase": phase, "conditions": [condition] if evicted else []},
    }


def test_a_placement_names_pool_capacity_machine_and_gpus() -> None:
    expected = PodPlacement(
        pod="p", node="n", pool="a100-spot", capacity="spot", machine="p4d.24xlarge", gpus=8
    )
    assert placements([trainer("p")], [NODE]) == (expected,)


def test_the_capacity_type_is_read_from_gkes_own_label() -> None:
    for provisioning, capacity in (("spot", "spot"), ("standard", "on-demand")):
        on_gke: Json = {
            "metadata": {"name": "n", "labels": {"cloud.google.com/gke-provisioning": provisioning}}
        }
        (found,) = placements([trainer("p")], [on_gke])
        assert found.capacity == capacity, f"GKE calls it {provisioning}"


def test_placements_are_sorted_and_only_of_pods_with_a_node() -> None:
    assert placements([trainer("p", node="")], [NODE]) == ()
    found = placements([trainer("b"), trainer("a")], [NODE])
    assert [each.pod for each in found] == ["a", "b"]


def test_the_requests_of_all_containers_count_against_a_nodes_cpus() -> None:
    assert free_cpus(NODE, [trainer("p"), trainer("q", node="other")]) == 94


def test_observed_pods_tell_evicted_pods_from_their_successors() -> None:
    history = ObservedPods(known=frozenset({"old"}), disruption=EVICTED)
    history.record("ADDED", trainer("old"))
    history.record("MODIFIED", trainer("old", deleted=True, evicted=True))
    history.record("DELETED", trainer("old", phase="Failed", deleted=True, evicted=True))
    history.record("ADDED", trainer("new", phase="Pending"))
    assert history.successors() == []
    history.record("MODIFIED", trainer("new"))
    assert history.evicted == {"old"}
    assert [pod["metadata"] for pod in history.successors()] == [trainer("new")["metadata"]]


def test_a_successor_that_is_lost_again_does_not_count() -> None:
    history = ObservedPods(known=frozenset(), disruption=EVICTED)
    history.record("ADDED", trainer("new"))
    history.record("MODIFIED", trainer("new", deleted=True))
    assert history.successors() == []
