"""Karpenter can buy the instance types that AWS and Azure offer in its region."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.ladder.machines import Machine, is_sold_in, machine_catalogue
from pulumi_holdfast.ladder.reachability.node_labels import Provisioner
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, CloudState
from pulumi_holdfast.rehearsal.operator_runner.instance_types import (
    Ec2InstanceTypes,
    azure_instance_types,
    instance_types,
)
from pulumi_holdfast.rehearsal.operator_runner.pod_spec import CannotRunError
from tests.support.builders.aks_objects import aks_cluster

ZONES = ("us-east-1a", "us-east-1b")

machines = st.sampled_from(sorted(machine_catalogue("aws").values(), key=lambda machine: machine.name))


def entries(text: str) -> list[Json]:
    return json.loads(text)


def offerings(entry: Json) -> set[tuple[str, ...]]:
    return {
        tuple(
            str(value)
            for requirement in sequence(mapping(offering)["Requirements"])
            for value in sequence(mapping(requirement)["values"])
        )
        for offering in sequence(entry["offerings"])
    }


@given(machines)
def test_machine_has_its_offerings_gpus_and_efa_interfaces(machine: Machine) -> None:
    (entry,) = entries(instance_types([machine], ZONES))
    capacities = ("on-demand", "spot") if machine.on_spot else ("on-demand",)
    assert offerings(entry) == {(capacity, zone) for capacity in capacities for zone in ZONES}
    resources = mapping(entry["resources"])
    assert resources.get("nvidia.com/gpu", "0") == str(machine.gpus)
    assert resources.get("vpc.amazonaws.com/efa", "0") == str(machine.efa_interfaces)
    assert "0" not in resources.values(), "a missing resource must not be listed"


def test_nodes_have_the_known_labels_of_the_provider_and_not_those_of_kubernetes() -> None:
    (aws,) = entries(instance_types([machine_catalogue("aws")["p4d.24xlarge"]], ZONES))
    labels = mapping(aws["labels"])
    assert labels["karpenter.k8s.aws/instance-gpu-name"] == "a100"
    assert {name.partition("/")[0] for name in labels} == {"karpenter.k8s.aws"}
    assert "karpenter.k8s.aws/instance-ebs-bandwidth" not in labels
    size = machine_catalogue("azure")["Standard_NC24ads_A100_v4"]
    (azure,) = entries(instance_types([size], ("eastus2-1",), Provisioner.NAP))
    assert mapping(azure["labels"])["karpenter.azure.com/sku-version"] == "4"


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


def test_region_has_only_its_own_machines(cloud: CloudState) -> None:
    names = {str(entry["name"]) for entry in entries(Ec2InstanceTypes(cloud).for_node(node("eu-west-1")))}
    assert names == {name for name in machine_catalogue("aws") if is_sold_in(name, "eu-west-1")}
    for region in (None, "mars-north-1"):
        with pytest.raises(CannotRunError, match=r"no machine for the region of node system-0"):
            Ec2InstanceTypes(cloud).for_node(node(region))


def test_machines_are_offered_in_zones_with_a_subnet_or_in_three(cloud: CloudState) -> None:
    def zones() -> set[str]:
        (first, *_) = entries(Ec2InstanceTypes(cloud).for_node(node("us-east-1")))
        return {zone for _, zone in offerings(first)}

    assert len(zones()) == 3
    for name, zone in enumerate(("us-east-1d", "us-east-1b", "us-east-1b", "eu-west-1a")):
        add_subnet(cloud, f"subnet-{name}", zone)
    assert zones() == {"us-east-1b", "us-east-1d"}


def zones_of(entry: Json) -> set[str]:
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


def test_machines_of_a_location_are_offered_in_its_zones() -> None:
    entries: list[Json] = json.loads(azure_instance_types(aks_cluster(location="eastus2")))
    assert {str(entry["name"]) for entry in entries} == {
        name for name in machine_catalogue("azure") if is_sold_in(name, "eastus2")
    }
    assert zones_of(entries[0]) == {"eastus2-1", "eastus2-2", "eastus2-3"}
    entries: list[Json] = json.loads(azure_instance_types(aks_cluster(location="westus")))
    assert zones_of(entries[0]) == {"0"}
    with pytest.raises(CannotRunError, match="for the location of the cluster, atlantis"):
        azure_instance_types(aks_cluster(location="atlantis"))
