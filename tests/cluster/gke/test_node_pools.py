"""GKE's node pools bring nodes with GKE's labels and taints; the cluster's API server is there as long as the cluster."""

import pytest

from holdfast.simulator.kubernetes_client.objects import mapping
from holdfast.simulator.pulumi import EngineFailure
from tests.support.clusters.autoscaled import GkeInUse, labels_of, taints_of
from tests.support.clusters.cloud_program import GKE_CLUSTER, a_pool
from tests.support.clusters.cloud_program import gke as program

pytestmark = [pytest.mark.cluster, pytest.mark.engine, pytest.mark.timeout(300)]


def test_a_pool_brings_its_nodes_and_takes_them_with_it(gke: GkeInUse) -> None:
    gke.stack.preview(program())
    assert gke.nodes() == [], "a preview bought machines"
    gke.stack.up(program())
    nodes = gke.nodes()
    assert len(nodes) == 2, "the pool has one node in each of two zones"
    zones = sorted(str(labels_of(node)["topology.kubernetes.io/zone"]) for node in nodes)
    assert zones == ["europe-west4-a", "europe-west4-b"], "both zones have one"
    for node in nodes:
        labels, status = labels_of(node), mapping(node["status"])
        assert labels["cloud.google.com/gke-nodepool"] == "system", "GKE names the pool on each node"
        assert labels["cloud.google.com/gke-provisioning"] == "standard", "manifests may select it"
        assert labels["holdfast.dev/system"] == "true", "the pool's own labels are there"
        assert taints_of(node) == [], "GKE taints no machine without GPUs"
        assert mapping(status["capacity"])["cpu"] == "2", "as the machine has"
        assert mapping(status["allocatable"])["cpu"] == "1930m", "GKE keeps some of it"
    assert gke.stack.up(program()).changed == 0, "a second up has something to do"
    gke.stack.destroy()
    assert gke.nodes() == [], "nodes outlived their pool"


def test_an_autoscaled_pool_begins_with_its_minimum(gke: GkeInUse) -> None:
    pools = [a_pool("cpu", autoscaling={"total_min_node_count": 1}), a_pool("cpu-spot", spot=True)]
    gke.stack.up(program(pools, system=0))
    (node,) = gke.nodes()
    assert labels_of(node)["holdfast.dev/pool"] == "cpu", "the pool with a minimum, and no other, has a node"
    gke.stack.destroy()


def test_inside_a_cluster_is_made_when_there_is_one_and_not_after_it_is_gone(gke: GkeInUse) -> None:
    name = gke.stack.name
    gke.stack.up(program(name=name))
    assert gke.client.get("v1", "ConfigMap", f"conf-{name}") is not None, "nothing was made inside"
    with gke.stack.cloud().changing() as console:
        for one in console.of_type(GKE_CLUSTER):
            console.remove(one.type, one.id)
    with pytest.raises(EngineFailure) as failure:
        gke.stack.destroy()
    told = str(failure.value)
    assert "configured Kubernetes cluster is unreachable" in told, told
    assert "i/o timeout" in told, "it does not say that nobody answers at that address"
    gke.client.delete("v1", "ConfigMap", f"conf-{name}")
