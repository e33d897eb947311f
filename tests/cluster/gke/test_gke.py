"""Node pools of a simulated GKE cluster: autoscaling, upgrades and preemption."""

import pytest

from pulumi_holdfast.controller.kube.objects import labels_of, name_of
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence
from pulumi_holdfast.rehearsal.clouds.gcp.instances import REGISTER
from pulumi_holdfast.rehearsal.cluster_autoscaler.autoscaler import EMPTY_SECONDS
from pulumi_holdfast.rehearsal.engine import EngineFailure
from pulumi_holdfast.rehearsal.scenarios.node_termination import STOPS_AFTER
from tests.support.clusters.autoscaled import GkeInUse, a_pod, phase, taints_of
from tests.support.clusters.cloud_program import GKE_CLUSTER, a_pool
from tests.support.clusters.cloud_program import gke as program

pytestmark = [pytest.mark.cluster, pytest.mark.engine, pytest.mark.timeout(300)]


def test_a_pool_creates_and_deletes_its_nodes(gke: GkeInUse) -> None:
    gke.stack.preview(program())
    assert gke.nodes() == []
    gke.stack.up(program())
    nodes = gke.nodes()
    assert len(nodes) == 2
    zones = sorted(str(labels_of(node)["topology.kubernetes.io/zone"]) for node in nodes)
    assert zones == ["europe-west4-a", "europe-west4-b"]
    for node in nodes:
        labels, status = labels_of(node), mapping(node["status"])
        assert labels["cloud.google.com/gke-nodepool"] == "system"
        assert labels["cloud.google.com/gke-provisioning"] == "standard"
        assert labels["holdfast.dev/system"] == "true"
        assert taints_of(node) == []
        assert mapping(status["capacity"])["cpu"] == "2"
        assert mapping(status["allocatable"])["cpu"] == "1930m"
    assert gke.stack.up(program()).changed == 0
    gke.stack.destroy()
    assert gke.nodes() == []


def test_an_autoscaled_pool_starts_at_its_minimum(gke: GkeInUse) -> None:
    pools = [a_pool("cpu", autoscaling={"total_min_node_count": 1}), a_pool("cpu-spot", spot=True)]
    gke.stack.up(program(pools, system=0))
    (node,) = gke.nodes()
    assert labels_of(node)["holdfast.dev/pool"] == "cpu"
    gke.stack.destroy()


def test_inside_a_cluster_is_made_when_there_is_one_and_not_after_it_is_gone(gke: GkeInUse) -> None:
    name = gke.stack.name
    gke.stack.up(program(name=name))
    assert gke.client.get("v1", "ConfigMap", f"conf-{name}") is not None
    with gke.stack.cloud().changing() as console:
        for one in console.of_type(GKE_CLUSTER):
            console.remove(one.type, one.id)
    with pytest.raises(EngineFailure) as failure:
        gke.stack.destroy()
    told = str(failure.value)
    assert "configured Kubernetes cluster is unreachable" in told
    gke.client.delete("v1", "ConfigMap", f"conf-{name}")


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
    "nodeSelector": {"cloud.google.com/gke-spot": "true", "cloud.google.com/gke-provisioning": "spot"},
    "tolerations": [
        {"key": "cloud.google.com/gke-spot", "operator": "Equal", "value": "true", "effect": "NoSchedule"}
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
    assert taints_of(spot) == ["cloud.google.com/gke-spot=true:NoSchedule"]
    assert labels_of(spot)["cloud.google.com/gke-provisioning"] == "spot"
    assert _pool_of(gke, "plain") == "cpu"
    gpu = gke.running_on("on-gpu")
    assert taints_of(gpu) == ["nvidia.com/gpu=present:NoSchedule"]
    assert labels_of(gpu)["cloud.google.com/gke-accelerator"] == "nvidia-tesla-t4"
    reason, message = gke.events_about("on-spot")[0]
    assert reason == "TriggeredScaleUp"
    assert "instanceGroups/gke-holdfast-test-cpu-spot-" in message
    assert message.endswith("-grp 0->1 (max: 4)}]")
    gke.step()
    assert len(gke.nodes("cpu-spot")) == 1
    assert gke.stack.up(program(POOLS)).changed == 0
    assert gke.stack.refresh(program(POOLS)).changed == 0
    gke.stack.destroy()
    assert gke.nodes() == []


def test_a_pod_that_selects_a_class_gets_its_first_available_pool(gke: GkeInUse) -> None:
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
        REGISTER.sell_out("dear", console)
    gke.step()
    gke.step()
    assert _pool_of(gke, "small") == "cheap"
    assert gke.nodes("dear") == []
    gke.client.delete("cloud.google.com/v1", "ComputeClass", "scarce")


def test_a_full_pool_does_not_scale_up(gke: GkeInUse) -> None:
    gke.stack.up(program([a_pool("cpu", autoscaling={"total_max_node_count": 1})]))
    gke.apply(a_pod("first"), a_pod("second"))
    gke.left_pending("first")
    gke.left_pending("second")
    gke.step()
    assert len(gke.nodes("cpu")) == 1
    told = [gke.events_about(name) for name in ("first", "second")]
    messages = [message for events in told for reason, message in events if reason == "NotTriggerScaleUp"]
    assert messages == ["pod didn't trigger scale-up: 2 max node group size reached"], told


def test_a_sold_out_pool_scales_up_when_capacity_returns(gke: GkeInUse) -> None:
    gke.stack.up(program([a_pool("cpu-spot", spot=True, node_locations=["europe-west4-a"])]))
    with gke.stack.cloud().changing() as console:
        REGISTER.sell_out("cpu-spot", console)
    gke.apply(a_pod("waits", spec=ON_SPOT))
    gke.left_pending("waits")
    gke.step()
    assert gke.nodes("cpu-spot") == []
    assert ("FailedScaleUp", _OUT_OF_STOCK) in gke.events_about("waits"), gke.events_about("waits")
    with gke.stack.cloud().changing() as console:
        REGISTER.restock("cpu-spot", console)
    gke.step()
    assert gke.nodes("cpu-spot") == []
    gke.clock.now += 301
    gke.step()
    assert _pool_of(gke, "waits") == "cpu-spot"


_OUT_OF_STOCK = (
    "Node scale up in zones europe-west4-a associated with this pod failed: GCE out of resources. "
    "Pod is at risk of not being scheduled."
)


def test_only_an_empty_node_is_removed_after_ten_minutes(gke: GkeInUse) -> None:
    gke.stack.up(program([a_pool("cpu", autoscaling={"total_min_node_count": 1})]))
    gke.apply(a_pod("stays"))
    busy = gke.running_on("stays")
    gke.apply(a_pod("goes"))
    gke.left_pending("goes")
    gke.step()
    gke.running_on("goes")
    gke.delete("goes")
    gke.step()
    assert len(gke.nodes("cpu")) == 2
    gke.clock.now += EMPTY_SECONDS
    gke.step()
    (left,) = gke.nodes("cpu")
    assert mapping(left["metadata"])["name"] == mapping(busy["metadata"])["name"]
    gke.delete("stays")
    gke.step()
    gke.clock.now += EMPTY_SECONDS
    gke.step()
    assert len(gke.nodes("cpu")) == 1


SPOT_SELECTOR: Json = {"cloud.google.com/gke-spot": "true"}
TOLERATION: Json = {"key": "cloud.google.com/gke-spot", "operator": "Exists"}


def _on_spot(name: str, *, asks: int = 90, stops_after: str | None = None, cpu: str = "1") -> Json:
    spec: Json = {
        "nodeSelector": SPOT_SELECTOR,
        "tolerations": [TOLERATION],
        "terminationGracePeriodSeconds": asks,
    }
    pod = a_pod(name, cpu=cpu, spec=spec)
    annotations = {STOPS_AFTER: stops_after} if stops_after else {}
    return {**pod, "metadata": {**mapping(pod["metadata"]), "annotations": annotations}}


def _exit_code(pod: Json) -> object:
    status = mapping(sequence(mapping(pod["status"])["containerStatuses"])[0])
    return mapping(mapping(status["state"])["terminated"])["exitCode"]


def test_preempted_pods_fail_by_the_kubelet_and_the_machine_is_recreated(gke: GkeInUse) -> None:
    gke.stack.up(program([a_pool("cpu-spot", spot=True)]))
    gke.apply(
        _on_spot("unaware"), _on_spot("aware", stops_after="0.5"), _on_spot("slow", asks=1, stops_after="60")
    )
    for name in ("unaware", "aware", "slow"):
        gke.left_pending(name)
    gke.step()
    before = gke.running_on("unaware")
    for name in ("aware", "slow"):
        gke.running_on(name)
    node = name_of(before)
    told: list[str] = []
    gke.machines.interruption(node, told.append)()
    assert gke.nodes("cpu-spot") == []
    pods = {
        name: gke.wait_for_pod(name, lambda pod: phase(pod) == "Failed", f"{name} has failed")
        for name in ("unaware", "aware", "slow")
    }
    for name, pod in pods.items():
        conditions = [mapping(each) for each in sequence(mapping(pod["status"])["conditions"])]
        target = next(each for each in conditions if each["type"] == "DisruptionTarget")
        assert target["reason"] == "TerminationByKubelet", f"{name} was not evicted, its node shut down"
        assert mapping(pod["status"])["reason"] == "Terminated"
    assert [_exit_code(pods[name]) for name in ("unaware", "aware", "slow")] == [143, 143, 137]
    assert "unaware gets 15 s of its grace period of 90 s" in told
    gke.step()
    (again,) = gke.nodes("cpu-spot")
    assert mapping(again["metadata"])["name"] == node
    assert mapping(again["metadata"])["uid"] != mapping(before["metadata"])["uid"]


def test_a_machine_that_is_not_available_again_is_bought_elsewhere(gke: GkeInUse) -> None:
    gke.stack.up(program([a_pool("cpu-spot", spot=True)]))
    gke.apply(_on_spot("trains", cpu="3"))
    gke.left_pending("trains")
    gke.step()
    labels = labels_of(gke.running_on("trains"))
    with gke.stack.cloud().changing() as console:
        REGISTER.sell_out("cpu-spot", console, zone=str(labels["topology.kubernetes.io/zone"]))
    gke.machines.interruption(str(labels["kubernetes.io/hostname"]), lambda _: None)()
    gke.client.delete("v1", "Pod", "trains", namespace="default", grace_seconds=0)
    gke.apply(_on_spot("trains-again", cpu="3"))
    gke.left_pending("trains-again")
    gke.step()
    again = labels_of(gke.running_on("trains-again"))
    assert again["topology.kubernetes.io/zone"] != labels["topology.kubernetes.io/zone"]
