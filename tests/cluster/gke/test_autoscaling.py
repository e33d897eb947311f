"""Nodes come for pods that find no room, of the pool that takes them, and go when nothing runs on them."""

import pytest

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.clouds.gcp.instances import restock, sell_out
from holdfast.simulator.cluster_autoscaler.autoscaler import EMPTY_SECONDS
from holdfast.simulator.kubernetes_client.objects import mapping
from tests.support.clusters.autoscaled import GkeInUse, a_pod, labels_of, taints_of
from tests.support.clusters.cloud_program import a_pool
from tests.support.clusters.cloud_program import gke as program

pytestmark = [pytest.mark.cluster, pytest.mark.engine, pytest.mark.timeout(300)]

POOLS = [
    a_pool("cpu"),
    a_pool("cpu-spot", spot=True),
    a_pool(
        "gpu",
        machine="n1-standard-4",
        node_config={"guest_accelerators": [{"type": "nvidia-tesla-t4", "count": 1}]},
    ),
]
#: The first source's own words.
ON_SPOT: Json = {
    "nodeSelector": {
        "cloud.google.com/gke-spot": "true",
        "cloud.google.com/gke-provisioning": "spot",
    },
    "tolerations": [
        {
            "key": "cloud.google.com/gke-spot",
            "operator": "Equal",
            "value": "true",
            "effect": "NoSchedule",
        }
    ],
}


def _pool_of(gke: GkeInUse, pod: str) -> object:
    return labels_of(gke.running_on(pod))["cloud.google.com/gke-nodepool"]


def test_each_pod_gets_a_node_of_the_pool_it_asks_for(gke: GkeInUse) -> None:
    gke.stack.up(program(POOLS))
    gke.apply(a_pod("on-spot", spec=ON_SPOT), a_pod("plain"), a_pod("on-gpu", gpus=1))
    for name in ("on-spot", "plain", "on-gpu"):
        gke.left_pending(name)
    gke.step()
    spot = gke.running_on("on-spot")
    assert taints_of(spot) == ["cloud.google.com/gke-spot=true:NoSchedule"], "the pool's own taint is on it"
    assert labels_of(spot)["cloud.google.com/gke-provisioning"] == "spot", "as the source's manifest selects"
    assert _pool_of(gke, "plain") == "cpu", (
        "a pod that asks for nothing is neither on spot nor on a GPU machine"
    )
    gpu = gke.running_on("on-gpu")
    assert taints_of(gpu) == ["nvidia.com/gpu=present:NoSchedule"], "GKE taints it unasked"
    assert labels_of(gpu)["cloud.google.com/gke-accelerator"] == "nvidia-tesla-t4", "GKE labels it"
    reason, message = gke.events_about("on-spot")[0]
    assert reason == "TriggeredScaleUp", "the pod is told what was bought for it"
    assert "instanceGroups/gke-holdfast-test-cpu-spot-" in message, message
    assert message.endswith("-grp 0->1 (max: 4)}]"), message
    gke.step()
    assert len(gke.nodes("cpu-spot")) == 1, "one machine was bought twice"
    assert gke.stack.up(program(POOLS)).changed == 0, "what the autoscaler did is a difference"
    assert gke.stack.refresh(program(POOLS)).changed == 0, "what the autoscaler did has drifted"
    gke.stack.destroy()
    assert gke.nodes() == [], "a machine that was bought outlived its pool"


def test_a_pod_that_selects_a_class_gets_its_first_pool_that_is_to_be_had(gke: GkeInUse) -> None:
    taint = {"key": "cloud.google.com/compute-class", "value": "scarce", "effect": "NO_SCHEDULE"}
    of_class = {"labels": {"cloud.google.com/compute-class": "scarce"}, "taints": [taint]}
    gke.stack.up(
        program(
            [
                a_pool("dear", machine="n2-standard-8", node_config=of_class),
                a_pool("cheap", node_config=of_class),
            ]
        )
    )
    rules: list[JsonValue] = [{"nodepools": ["dear"]}, {"nodepools": ["cheap"]}]
    gke.apply(
        {
            "apiVersion": "cloud.google.com/v1",
            "kind": "ComputeClass",
            "metadata": {"name": "scarce"},
            "spec": {"priorities": rules, "whenUnsatisfiable": "DoNotScaleUp"},
        }
    )
    selects: Json = {"nodeSelector": {"cloud.google.com/compute-class": "scarce"}}
    gke.apply(a_pod("large", cpu="6", spec=selects), a_pod("small", spec=selects))
    gke.left_pending("large")
    gke.left_pending("small")
    with gke.stack.cloud().changing() as console:
        sell_out("dear", console)
    gke.step()
    gke.step()
    assert _pool_of(gke, "small") == "cheap", "GKE goes on to the next of the class at once"
    assert gke.nodes("dear") == [], "there is none of the first"
    gke.client.delete("cloud.google.com/v1", "ComputeClass", "scarce")


def test_a_full_pool_says_so_and_buys_no_more(gke: GkeInUse) -> None:
    gke.stack.up(program([a_pool("cpu", autoscaling={"total_max_node_count": 1})]))
    gke.apply(a_pod("first"), a_pod("second"))
    gke.left_pending("first")
    gke.left_pending("second")
    gke.step()
    assert len(gke.nodes("cpu")) == 1, "there is one machine too many"
    told = [gke.events_about(name) for name in ("first", "second")]
    messages = [message for events in told for reason, message in events if reason == "NotTriggerScaleUp"]
    assert messages == ["pod didn't trigger scale-up: 2 max node group size reached"], told


def test_a_pool_that_is_sold_out_leaves_its_pods_waiting_and_buys_again_later(gke: GkeInUse) -> None:
    gke.stack.up(program([a_pool("cpu-spot", spot=True, node_locations=["europe-west4-a"])]))
    with gke.stack.cloud().changing() as console:
        sell_out("cpu-spot", console)
    gke.apply(a_pod("waits", spec=ON_SPOT))
    gke.left_pending("waits")
    gke.step()
    assert gke.nodes("cpu-spot") == [], "there was none to be had"
    assert ("FailedScaleUp", _OUT_OF_STOCK) in gke.events_about("waits"), gke.events_about("waits")
    with gke.stack.cloud().changing() as console:
        restock("cpu-spot", console)
    gke.step()
    assert gke.nodes("cpu-spot") == [], "it does not ask again at once"
    gke.clock.now += 301
    gke.step()
    assert _pool_of(gke, "waits") == "cpu-spot", "after five minutes it does"


_OUT_OF_STOCK = (
    "Node scale up in zones europe-west4-a associated with this pod failed: GCE out of resources. "
    "Pod is at risk of not being scheduled."
)


def test_an_empty_node_goes_after_ten_minutes_and_a_busy_one_stays(gke: GkeInUse) -> None:
    gke.stack.up(program([a_pool("cpu", autoscaling={"total_min_node_count": 1})]))
    gke.apply(a_pod("stays"))
    busy = gke.running_on("stays")
    gke.apply(a_pod("goes"))
    gke.left_pending("goes")
    gke.step()
    gke.running_on("goes")
    gke.delete("goes")
    gke.step()
    assert len(gke.nodes("cpu")) == 2, "it has only just become empty"
    gke.clock.now += EMPTY_SECONDS
    gke.step()
    (left,) = gke.nodes("cpu")
    assert mapping(left["metadata"])["name"] == mapping(busy["metadata"])["name"], "the busy one went"
    gke.delete("stays")
    gke.step()
    gke.clock.now += EMPTY_SECONDS
    gke.step()
    assert len(gke.nodes("cpu")) == 1, "the pool has fewer than its minimum"
