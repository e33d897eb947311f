"""The nodes of an AKS node pool are what AKS makes of the pool."""

import pytest

from pulumi_holdfast.rehearsal.clouds.azure.nodes import allocatable, pool_of, template_of
from pulumi_holdfast.rehearsal.clouds.machines import NodeTemplate
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, Inventory
from tests.support.builders.aks_objects import agent_pool, aks_cluster


def _template(pool: CloudObject | None = None, cluster: CloudObject | None = None) -> NodeTemplate:
    made = pool or agent_pool()
    found = pool_of(made, Inventory([cluster or aks_cluster(), made], {}))
    assert found is not None
    return template_of(found)


@pytest.mark.parametrize(
    ("cores", "memory", "pods", "expected"),
    [
        # The figures of AKS's documentation, worked out by hand.
        (1, 4096, 30, {"cpu": "940m", "memory": "3346Mi"}),
        (2, 8192, 30, {"cpu": "1900m", "memory": "7442Mi"}),
        (4, 4096, 70, {"cpu": "3860m", "memory": "2972Mi"}),
        (8, 32768, 250, {"cpu": "7820m", "memory": "27618Mi"}),
        (64, 262144, 250, {"cpu": "63260m", "memory": "256994Mi"}),
    ],
)
def test_allocatable_is_as_documented(cores: int, memory: int, pods: int, expected: dict[str, str]) -> None:
    capacity = {"cpu": str(cores), "memory": f"{memory}Mi", "ephemeral-storage": "128Gi", "pods": str(pods)}
    found = allocatable(capacity)
    assert {name: found[name] for name in expected} == expected
    assert found["pods"] == str(pods)


def test_only_nodes_of_spot_pools_have_the_label_and_the_taint_of_aks() -> None:
    found = _template(agent_pool("cpuspot", spot=True))
    assert found.labels["kubernetes.azure.com/scalesetpriority"] == "spot"
    assert found.labels["karpenter.sh/capacity-type"] == "spot"
    assert [(taint["key"], taint["value"], taint["effect"]) for taint in found.taints] == [
        ("kubernetes.azure.com/scalesetpriority", "spot", "NoSchedule"),
        ("karpenter.sh/capacity-type", "spot", "NoSchedule"),
    ]
    found = _template()
    assert "kubernetes.azure.com/scalesetpriority" not in found.labels
    assert found.taints == ()
    assert found.labels["kubernetes.azure.com/agentpool"] == "cpu"
    assert found.labels["kubernetes.azure.com/mode"] == "user"
    said = agent_pool(
        "cpuspot", spot=True, nodeTaints=["kubernetes.azure.com/scalesetpriority=spot:NoSchedule"]
    )
    assert len(_template(said).taints) == 1
    (taint,) = _template(agent_pool(nodeTaints=["team:NoExecute"])).taints
    assert taint == {"key": "team", "effect": "NoExecute"}


def test_capacity_and_price_are_those_of_the_machine_and_its_network() -> None:
    found = _template(agent_pool("a100", vmSize="Standard_ND96amsr_A100_v4"))
    assert found.capacity["nvidia.com/gpu"] == "8"
    assert found.labels["kubernetes.azure.com/accelerator"] == "nvidia"
    assert found.taints == ()
    assert "nvidia.com/gpu" not in _template().capacity
    assert _template().capacity["pods"] == "250"
    flat = aks_cluster(networkProfile={"networkPlugin": "azure"})
    assert _template(cluster=flat).capacity["pods"] == "30"
    assert _template(agent_pool(maxPods=110)).capacity["pods"] == "110", "unless the pool says how many"
    spot = _template(agent_pool("cpuspot", spot=True))
    assert spot.hourly_price < _template().hourly_price
