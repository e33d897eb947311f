"""Simulated AKS agent pools: computed outputs, refused changes, and replacements."""

from pathlib import Path

import pytest

from pulumi_holdfast.rehearsal.clouds.azure.instances import REGISTER
from pulumi_holdfast.rehearsal.clouds.azure.nodes import pool_of, template_of
from pulumi_holdfast.rehearsal.clouds.state import CloudState
from pulumi_holdfast.rehearsal.engine.values import Properties, Value
from tests.support.clusters.aks_console import AGENT_POOL, GROUP, NAME, PATH, AksConsole
from tests.support.clusters.provider_calls import Provider, invoke, refusal

SPOT: dict[str, Value] = {"scaleSetPriority": "Spot"}
TAINT = "kubernetes.azure.com/scalesetpriority=spot:NoSchedule"
LABEL = {"kubernetes.azure.com/scalesetpriority": "spot"}


@pytest.fixture
def console(azure: Provider) -> AksConsole:
    made = AksConsole(azure=azure)
    made.cluster()
    return made


def test_a_pool_needs_its_cluster(azure: Provider) -> None:
    reason = refusal(AksConsole(azure=azure).pool)
    assert "ParentResourceNotFound" in reason
    assert PATH in reason


def test_a_spot_pool_gets_the_label_and_the_taint_of_aks_once(console: AksConsole) -> None:
    found = console.outputs("spot", **SPOT)
    assert found["nodeLabels"] == {"holdfast.dev/pool": "spot", **LABEL}
    assert found["nodeTaints"] == [TAINT]
    assert (found["scaleSetEvictionPolicy"], found["spotMaxPrice"]) == ("Delete", -1)
    taints: Value = ["karpenter.sh/capacity-type=spot:NoSchedule", TAINT]
    labels: Value = {"holdfast.dev/pool": "spot", **LABEL}
    found = console.outputs("declared", **SPOT, nodeLabels=labels, nodeTaints=taints)
    assert found["nodeTaints"] == taints
    assert found["nodeLabels"] == labels


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("osDiskSizeGB", 256),
        ("availabilityZones", ["1"]),
        ("vnetSubnetID", "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/subnets/other"),
        ("scaleSetPriority", "Spot"),
    ],
)
def test_an_immutable_field_is_refused_as_an_update(console: AksConsole, field: str, value: Value) -> None:
    pool, asked, changed = (
        console.engine("cpu"),
        console.inputs("cpu"),
        console.inputs("cpu", **{field: value}),
    )
    object_id, _ = pool.create(asked)
    assert not pool.diff(asked, changed).replaces
    pool.refuses_update(object_id, changed, f"Changing property 'properties.{field}' is not allowed.")


def test_an_update_with_another_number_of_nodes_than_the_autoscalers_is_refused(
    console: AksConsole, azure: Provider, state_file: Path
) -> None:
    object_id, scaled = console.pool("cpu"), 3
    with CloudState(state_file).changing() as inventory:
        pool = inventory.find(AGENT_POOL, object_id)
        assert pool is not None
        found = pool_of(pool, inventory)
        assert found is not None
        for _ in range(scaled):
            instance = REGISTER.new_instance(pool, template_of(found), "0", inventory)
            REGISTER.record(pool, instance, inventory)
    call: Properties = {"resourceGroupName": GROUP, "resourceName": NAME, "agentPoolName": "cpu"}
    assert invoke(azure, "azure-native:containerservice:getAgentPool", call)["count"] == scaled
    stale, current = console.inputs("cpu", maxCount=20), console.inputs("cpu", maxCount=20, count=scaled)
    console.engine("cpu").refuses_update(object_id, stale, "Cannot manually scale AgentPool 'cpu'")
    console.engine("cpu").update(object_id, current)
    assert invoke(azure, "azure-native:containerservice:getAgentPool", call)["count"] == scaled
