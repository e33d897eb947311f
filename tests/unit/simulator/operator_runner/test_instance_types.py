"""Karpenter is sold what EC2 sells where it runs."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.scheduling.json import Json
from holdfast.scheduling.machines import Machine, is_sold_in, machine_catalogue
from holdfast.simulator.clouds.state import CloudObject, CloudState
from holdfast.simulator.kubernetes_client.objects import mapping, sequence
from holdfast.simulator.operator_runner.instance_types import (
    Ec2Market,
    azure_instance_types,
    azure_machine_labels,
    instance_types,
    machine_labels,
)
from holdfast.simulator.operator_runner.pod_spec import CannotRunError
from tests.support.aks_objects import aks_cluster

ZONES = ("us-east-1a", "us-east-1b")

machines = st.sampled_from(sorted(machine_catalogue("aws").values(), key=lambda machine: machine.name))


def entries(text: str) -> list[Json]:
    return json.loads(text)


def offerings(entry: Json) -> set[tuple[str, ...]]:
    """Capacity type and zone of everything an entry offers."""
    return {
        tuple(
            str(value)
            for requirement in sequence(mapping(offering)["Requirements"])
            for value in sequence(mapping(requirement)["values"])
        )
        for offering in sequence(entry["offerings"])
    }


@given(machines)
def test_a_machine_is_offered_in_every_zone_and_on_spot_only_where_it_ever_is(machine: Machine) -> None:
    (entry,) = entries(instance_types([machine], ZONES))
    capacities = ("on-demand", "spot") if machine.on_spot else ("on-demand",)
    assert offerings(entry) == {(capacity, zone) for capacity in capacities for zone in ZONES}, (
        "Karpenter buys nothing that nobody sells"
    )


@given(machines)
def test_a_machine_has_the_gpus_and_adapters_of_its_type_and_no_resource_of_none(machine: Machine) -> None:
    (entry,) = entries(instance_types([machine], ZONES))
    resources = mapping(entry["resources"])
    assert resources.get("nvidia.com/gpu", "0") == str(machine.gpus), "GPU pods fit where there are GPUs"
    assert resources.get("vpc.amazonaws.com/efa", "0") == str(machine.efa_interfaces), "and EFA pods likewise"
    assert "0" not in resources.values(), "a resource of none would be one that a pod can ask for"


def test_spot_costs_a_tenth() -> None:
    (entry,) = entries(instance_types([machine_catalogue("aws")["m7i.large"]], ZONES[:1]))
    prices = sorted(
        price
        for offering in sequence(entry["offerings"])
        if isinstance(price := mapping(offering)["Price"], float)
    )
    assert prices[0] == pytest.approx(prices[1] / 10, abs=1e-6), "as in the cost model"


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        (
            "p4d.24xlarge",
            {"family": "p4d", "size": "24xlarge", "category": "p", "generation": "4", "gpu-name": "a100"},
        ),
        ("m7i-flex.large", {"family": "m7i-flex", "size": "large", "category": "m", "generation": "7"}),
        ("u-3tb1.56xlarge", {"family": "u-3tb1", "category": "u", "generation": "1"}),
    ],
)
def test_a_node_has_the_labels_that_awss_provider_puts_on_it(name: str, labels: dict[str, str]) -> None:
    found = machine_labels(machine_catalogue("aws")[name])
    wanted = {f"karpenter.k8s.aws/instance-{label}": value for label, value in labels.items()}
    assert wanted.items() <= found.items(), "manifests that select by them schedule as they do on EKS"


def test_a_machine_without_gpus_has_no_label_of_any() -> None:
    assert not any("gpu" in label for label in machine_labels(machine_catalogue("aws")["m7i.large"])), (
        "a pod that selects GPUs by label must not match it"
    )


def node(region: str | None) -> Json:
    labels: Json = {} if region is None else {"topology.kubernetes.io/region": region}
    return {"metadata": {"name": "system-0", "labels": labels}}


@pytest.fixture
def cloud(tmp_path: Path) -> CloudState:
    return CloudState(tmp_path / "aws.json")


def add_subnet(cloud: CloudState, name: str, zone: str) -> None:
    subnet = CloudObject(type="aws:ec2/subnet:Subnet", id=name, urn="", inputs={"availabilityZone": zone})
    with cloud.changing() as inventory:
        inventory.put(subnet)


def test_a_region_sells_its_own_machines_and_no_other(cloud: CloudState) -> None:
    sold = {str(entry["name"]) for entry in entries(Ec2Market(cloud).sold_to(node("eu-west-1")))}
    assert sold == {name for name in machine_catalogue("aws") if is_sold_in(name, "eu-west-1")}, (
        "a type of another region would never be found on AWS"
    )


def test_machines_are_sold_in_the_zones_that_have_a_subnet(cloud: CloudState) -> None:
    for zone in ("us-east-1d", "us-east-1b", "us-east-1b", "eu-west-1a"):
        add_subnet(cloud, f"subnet-{len(cloud.read().all())}", zone)
    (first, *_) = entries(Ec2Market(cloud).sold_to(node("us-east-1")))
    assert {zone for _, zone in offerings(first)} == {"us-east-1b", "us-east-1d"}, (
        "elsewhere there is no network for a machine to join"
    )


def test_in_a_network_that_was_brought_they_are_sold_in_three_zones(cloud: CloudState) -> None:
    (first, *_) = entries(Ec2Market(cloud).sold_to(node("us-east-1")))
    assert len({zone for _, zone in offerings(first)}) == 3, (
        "its subnets are the user's and not in this cloud"
    )


@pytest.mark.parametrize("region", [None, "mars-north-1"])
def test_in_no_known_region_karpenter_is_told_why_it_cannot_run(
    cloud: CloudState, region: str | None
) -> None:
    with pytest.raises(CannotRunError, match=r"nothing is known to be sold in the region of node system-0"):
        Ec2Market(cloud).sold_to(node(region))


azure_machines = st.sampled_from(
    sorted(machine_catalogue("azure").values(), key=lambda machine: machine.name)
)


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


@given(azure_machines)
def test_a_machine_says_how_much_it_has_and_of_gpus_what_kind(machine: Machine) -> None:
    labels = azure_machine_labels(machine)
    assert labels["karpenter.azure.com/sku-cpu"] == str(machine.vcpus), "in vCPUs"
    assert labels["karpenter.azure.com/sku-memory"] == str(machine.memory_mib), "in MiB"
    assert labels["karpenter.azure.com/sku-gpu-count"] == str(machine.gpus), "none is a number too"
    assert ("karpenter.azure.com/sku-gpu-name" in labels) is bool(machine.gpus), "and has no name"
