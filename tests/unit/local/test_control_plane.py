"""The local cluster."""

import pytest

from pulumi_holdfast.kubernetes.contracts import Cluster
from pulumi_holdfast.local.control_plane import LocalCluster, LocalClusterArgs
from tests.support.fakes.pulumi_engine import Recording, record
from tests.support.inputs import objects, text


def recorded(*, system_nodes: int = 2, preview: bool = False) -> Recording:
    def build() -> None:
        made: Cluster = LocalCluster(
            "cluster", LocalClusterArgs(kubeconfig="/somewhere/kubeconfig", system_nodes=system_nodes)
        )
        assert made.cluster_name == "cluster", "the contract requires the cluster's name"

    return record(build, preview=preview)


@pytest.mark.parametrize("preview", [False, True])
def test_it_creates_a_provider_and_its_system_nodes_only(preview: bool) -> None:
    types = sorted(resource.type for resource in recorded(preview=preview))
    assert types == [
        "holdfast:index:LocalCluster",
        "kubernetes:core/v1:Node",
        "kubernetes:core/v1:Node",
        "pulumi:providers:kubernetes",
    ], "Karpenter creates all other nodes when pods need them"


def test_the_provider_reads_the_kubeconfig_from_its_path() -> None:
    provider = recorded().one(":kubernetes")
    assert provider.inputs["kubeconfig"] == "/somewhere/kubeconfig", "the content holds a key"


def test_system_nodes_are_simulated_tainted_labeled_and_on_demand() -> None:
    for node in recorded().of(":Node"):
        assert objects(node, "spec", "taints") == [
            {"key": "CriticalAddonsOnly", "value": "true", "effect": "NoSchedule"}
        ], "only operators tolerate it"
        assert text(node, "metadata", "labels", "karpenter.sh/capacity-type") == "on-demand", (
            "never interrupted"
        )
        assert text(node, "metadata", "labels", "holdfast.dev/system") == "true", "operators select it"
        assert text(node, "metadata", "annotations", "kwok.x-k8s.io/node") == "fake", (
            "without it no kubelet reports the node ready, and no operator starts"
        )
        assert node.provider == "cluster-kubernetes", "not the cluster of the user's kubectl context"


def test_system_nodes_are_spread_over_zones() -> None:
    nodes = recorded(system_nodes=3).of(":Node")
    zones = {text(node, "metadata", "labels", "topology.kubernetes.io/zone") for node in nodes}
    assert len(zones) == 3, "operators spread over zones as on a cloud"
    names = {text(node, "metadata", "name") for node in nodes}
    assert names == {"system-0", "system-1", "system-2"}, "each has a unique name"
