"""A spot node is taken as Compute Engine takes it: its pods get what the kubelet leaves them, and it comes back new."""

from typing import TYPE_CHECKING

import pytest

from holdfast.rehearsal.scenarios.node_termination import STOPS_AFTER
from holdfast.simulator.clouds.gcp.instances import sell_out
from holdfast.simulator.kubernetes_client.objects import mapping, sequence
from tests.support.clusters.autoscaled import GkeInUse, a_pod, phase
from tests.support.clusters.cloud_program import a_pool
from tests.support.clusters.cloud_program import gke as program

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json

pytestmark = [pytest.mark.cluster, pytest.mark.engine, pytest.mark.timeout(300)]

ON_SPOT: "Json" = {"cloud.google.com/gke-spot": "true"}
TOLERATION: "Json" = {"key": "cloud.google.com/gke-spot", "operator": "Exists"}


def _on_spot(name: str, *, asks: int = 90, stops_after: str | None = None, cpu: str = "1") -> "Json":
    spec: Json = {
        "nodeSelector": ON_SPOT,
        "tolerations": [TOLERATION],
        "terminationGracePeriodSeconds": asks,
    }
    pod = a_pod(name, cpu=cpu, spec=spec)
    annotations = {STOPS_AFTER: stops_after} if stops_after else {}
    return {**pod, "metadata": {**mapping(pod["metadata"]), "annotations": annotations}}


def _exit_code(pod: "Json") -> object:
    status = mapping(sequence(mapping(pod["status"])["containerStatuses"])[0])
    return mapping(mapping(status["state"])["terminated"])["exitCode"]


def test_pods_fail_with_the_kubelets_word_and_the_machine_is_made_again(gke: GkeInUse) -> None:
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
    node = str(mapping(before["metadata"])["name"])
    told: list[str] = []
    gke.machines.interruption(node, told.append).interrupt()
    assert gke.nodes("cpu-spot") == [], "the machine is off, and its node is there"
    pods = {
        name: gke.wait_for_pod(name, lambda pod: phase(pod) == "Failed", f"{name} has failed")
        for name in ("unaware", "aware", "slow")
    }
    for name, pod in pods.items():
        conditions = [mapping(each) for each in sequence(mapping(pod["status"])["conditions"])]
        target = next(each for each in conditions if each["type"] == "DisruptionTarget")
        assert target["reason"] == "TerminationByKubelet", f"{name} was not evicted, its node shut down"
        assert mapping(pod["status"])["reason"] == "Terminated", "as GKE's documentation has it"
    assert [_exit_code(pods[name]) for name in ("unaware", "aware", "slow")] == [143, 143, 137], (
        "who stops in time ends by SIGTERM, who does not by SIGKILL"
    )
    assert "unaware gets 15 s to end, of the 90 s it asks for" in told, told
    gke.step()
    (again,) = gke.nodes("cpu-spot")
    assert mapping(again["metadata"])["name"] == node, "its group makes a machine again under its old name"
    assert mapping(again["metadata"])["uid"] != mapping(before["metadata"])["uid"], "it is another node"


def test_a_machine_that_is_not_to_be_had_again_is_bought_elsewhere(gke: GkeInUse) -> None:
    gke.stack.up(program([a_pool("cpu-spot", spot=True)]))
    gke.apply(_on_spot("trains", cpu="3"))
    gke.left_pending("trains")
    gke.step()
    labels = mapping(mapping(gke.running_on("trains")["metadata"])["labels"])
    with gke.stack.cloud().changing() as console:
        sell_out("cpu-spot", console, zone=str(labels["topology.kubernetes.io/zone"]))
    gke.machines.interruption(str(labels["kubernetes.io/hostname"]), lambda _: None).interrupt()
    gke.client.delete("v1", "Pod", "trains", namespace="default", grace_seconds=0)
    gke.apply(_on_spot("trains-again", cpu="3"))
    gke.left_pending("trains-again")
    gke.step()
    again = mapping(mapping(gke.running_on("trains-again")["metadata"])["labels"])
    assert again["topology.kubernetes.io/zone"] != labels["topology.kubernetes.io/zone"], (
        "the other zone had one"
    )
