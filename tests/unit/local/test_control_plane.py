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
        assert made.cluster_name == "cluster"

    return record(build, preview=preview)


@pytest.mark.parametrize("preview", [False, True])
def test_it_creates_a_provider_and_its_system_nodes_only(preview: bool) -> None:
    types = sorted(resource.type for resource in recorded(preview=preview))
    assert types == [
        "holdfast:index:LocalCluster",
        "kubernetes:core/v1:Node",
        "kubernetes:core/v1:Node",
        "pulumi:providers:kubernetes",
    ]


def test_the_provider_reads_the_kubeconfig_from_its_path() -> None:
    provider = recorded().one(":kubernetes")
    assert provider.inputs["kubeconfig"] == "/somewhere/kubeconfig"


def test_system_nodes_are_simulated_tainted_labeled_and_on_demand() -> None:
    for node in recorded().of(":Node"):
        assert objects(node, "spec", "taints") == [
            {"key": "CriticalAddonsOnly", "value": "true", "effect": "NoSchedule"}
        ]
        assert text(node, "metadata", "labels", "karpenter.sh/capacity-type") == "on-demand"
        assert text(node, "metadata", "labels", "holdfast.dev/system") == "true"
        assert text(node, "metadata", "annotations", "kwok.x-k8s.io/node") == "fake"
        assert node.provider == "cluster-kubernetes"


def test_system_nodes_are_spread_over_zones() -> None:
    nodes = recorded(system_nodes=3).of(":Node")
    zones = {text(node, "metadata", "labels", "topology.kubernetes.io/zone") for node in nodes}
    assert len(zones) == 3
    names = {text(node, "metadata", "name") for node in nodes}
    assert names == {"system-0", "system-1", "system-2"}
