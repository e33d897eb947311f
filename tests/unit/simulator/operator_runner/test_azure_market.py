"""AKS's own Karpenter is sold what Azure sells where its cluster is."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.scheduling.json import Json
from holdfast.scheduling.machines import Machine, is_sold_in, machine_catalogue
from holdfast.simulator.kubernetes_client.objects import mapping, sequence
from holdfast.simulator.operator_runner.instance_types import azure_instance_types, azure_machine_labels
from holdfast.simulator.operator_runner.pod_spec import CannotRunError
from tests.support.aks_objects import aks_cluster

machines = st.sampled_from(sorted(machine_catalogue("azure").values(), key=lambda machine: machine.name))


def zones_of(entry: Json) -> set[str]:
    """Where an entry is offered."""
    requirements = [
        mapping(each)
        for offering in sequence(entry["offerings"])
        for each in sequence(mapping(offering)["Requirements"])
    ]
    return {
        str(value)
        for each in requirements
        if each["key"] == "topology.kubernetes.io/zone"
        for value in sequence(each["values"])
    }


def test_all_that_its_location_sells_is_offered_in_the_zones_there() -> None:
    entries: list[Json] = json.loads(azure_instance_types(aks_cluster(location="eastus2")))
    assert {str(entry["name"]) for entry in entries} == {
        name for name in machine_catalogue("azure") if is_sold_in(name, "eastus2")
    }, "no more and no less"
    assert zones_of(entries[0]) == {"eastus2-1", "eastus2-2", "eastus2-3"}, "as its nodes will be labelled"


def test_a_location_without_zones_has_one_that_is_called_nought() -> None:
    entries: list[Json] = json.loads(azure_instance_types(aks_cluster(location="westus")))
    assert zones_of(entries[0]) == {"0"}, "as AKS labels nodes there"


def test_of_a_location_that_nobody_knows_nothing_is_made_up() -> None:
    with pytest.raises(CannotRunError, match="in the location of its cluster, atlantis"):
        azure_instance_types(aks_cluster(location="atlantis"))


@pytest.mark.parametrize(
    ("name", "family", "series", "version"),
    [
        ("Standard_D4ds_v5", "D", "Dds_v5", "5"),
        ("Standard_NC24ads_A100_v4", "N", "NCads_A100_v4", "4"),
    ],
)
def test_a_sizes_labels_are_those_of_azures_provider(
    name: str, family: str, series: str, version: str
) -> None:
    labels = azure_machine_labels(machine_catalogue("azure")[name])
    parts = [labels[f"karpenter.azure.com/sku-{part}"] for part in ("name", "family", "series", "version")]
    assert parts == [name, family, series, version], "NodePools may be made of them"


@given(machines)
def test_a_machine_says_how_much_it_has_and_of_gpus_what_kind(machine: Machine) -> None:
    labels = azure_machine_labels(machine)
    assert labels["karpenter.azure.com/sku-cpu"] == str(machine.vcpus), "in vCPUs"
    assert labels["karpenter.azure.com/sku-memory"] == str(machine.memory_mib), "in MiB"
    assert labels["karpenter.azure.com/sku-gpu-count"] == str(machine.gpus), "none is a number too"
    assert ("karpenter.azure.com/sku-gpu-name" in labels) is bool(machine.gpus), "and has no name"
