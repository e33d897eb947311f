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


@pytest.mark.parametrize("overrides", [{}, SPOT])
def test_a_refresh_finds_no_difference(console: AksConsole, overrides: dict[str, Value]) -> None:
    pool, asked = console.engine("it"), console.inputs("it", **overrides)
    _, _, found = pool.read(pool.create(asked)[0], inputs=asked)
    assert not pool.diff(found, asked).detailedDiff


def test_a_pool_is_identified_by_its_path_and_has_its_name_alone(console: AksConsole) -> None:
    assert console.pool("cpu") == f"{PATH}/agentPools/cpu"
    assert "already existing" in refusal(lambda: console.pool("cpu"))


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


def test_a_preview_keeps_the_labels_and_taints_that_the_program_sets(console: AksConsole) -> None:
    asked = console.inputs("it", **SPOT, nodeTaints=["team=vision:NoSchedule"])
    planned = console.engine("it").plan(asked)
    assert {name: planned[name] for name in asked} == asked


def test_a_pool_on_demand_runs_the_requested_version_without_spot_settings(console: AksConsole) -> None:
    found = console.outputs("cpu")
    assert found["nodeLabels"] == {"holdfast.dev/pool": "cpu"}
    assert found["nodeTaints"] == []
    assert not {"scaleSetEvictionPolicy", "spotMaxPrice"} & found.keys()
    assert str(found["currentOrchestratorVersion"]).startswith("1.36.")
    assert found["orchestratorVersion"] == "1.36"
    assert found["powerState"] == {"code": "Running"}


def test_another_size_is_another_pool(console: AksConsole) -> None:
    old, new = console.inputs("cpu"), console.inputs("cpu", vmSize="Standard_D8ds_v5")
    answer = console.engine("cpu").diff(old, new)
    assert list(answer.replaces) == ["vmSize"]
    assert answer.deleteBeforeReplace


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


@pytest.mark.parametrize("change", [{"maxCount": 20}, {"nodeLabels": {"team": "vision"}}])
def test_what_scales_and_marks_it_can_change(console: AksConsole, change: dict[str, Value]) -> None:
    outputs = console.engine("cpu").update(console.pool("cpu"), console.inputs("cpu", **change))
    assert change.items() <= outputs.items()


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


def test_the_price_of_a_spot_pool_stays(console: AksConsole) -> None:
    pool, object_id = console.engine("spot"), console.pool("spot", **SPOT)
    assert pool.update(object_id, console.inputs("spot", **SPOT, maxCount=4))
    capped = console.inputs("spot", **SPOT, spotMaxPrice=1.5)
    pool.refuses_update(object_id, capped, "properties.spotMaxPrice")
