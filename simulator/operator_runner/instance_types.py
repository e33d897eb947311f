"""What a cloud sells, in the form that Karpenter's simulated provider reads. Pure."""

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from holdfast.scheduling.json import Json
from holdfast.scheduling.labels import CAPACITY_TYPE, GPU_RESOURCE, ZONE, CapacityType
from holdfast.scheduling.machines import Machine, is_sold_in, machine_catalogue, zones_of
from holdfast.simulator.clouds.state import CloudObject, CloudState
from holdfast.simulator.kubernetes_client.objects import mapping
from holdfast.simulator.operator_runner.pod_spec import CannotRunError

EFA_RESOURCE: Final = "vpc.amazonaws.com/efa"

# As in the cost model: a spot machine costs a tenth.
_PRICE: Final = {CapacityType.ON_DEMAND: 1.0, CapacityType.SPOT: 0.1}

_LABELS: Final = "karpenter.k8s.aws"
# m7i-flex.large, u-3tb1.56xlarge: a category, for some how much memory, a generation, and what else it has.
_FAMILY: Final = re.compile(r"^(?P<category>[a-z]+)(-\d+tb)?(?P<generation>\d+).*\.")


def instance_types(
    machines: Iterable[Machine],
    zones: Sequence[str],
    labels: Callable[[Machine], Mapping[str, str]] | None = None,
) -> str:
    """The list of instance types: each machine, in each zone, on demand and, where it ever is, on spot.

    `labels` are those which its provider puts on a machine's node; by default AWS's.
    """
    labelled = labels or machine_labels
    by_name = sorted(machines, key=lambda machine: machine.name)
    types = [_instance_type(machine, zones, labelled(machine)) for machine in by_name]
    return json.dumps(types, separators=(",", ":"), sort_keys=True)


def machine_labels(machine: Machine) -> Mapping[str, str]:
    """The labels beside Kubernetes' own that AWS's provider puts on a machine's node, as far as they are known."""
    family, _, size = machine.name.partition(".")
    labels = {
        "instance-family": family,
        "instance-size": size,
        "instance-cpu": str(machine.vcpus),
        "instance-memory": str(machine.memory_mib),
    }
    named = _FAMILY.match(machine.name)
    if named:
        labels |= {"instance-category": named["category"], "instance-generation": named["generation"]}
    if machine.gpus and machine.accelerator:
        labels |= {
            "instance-gpu-name": machine.accelerator,
            "instance-gpu-manufacturer": "nvidia",
            "instance-gpu-count": str(machine.gpus),
        }
    return {f"{_LABELS}/{name}": value for name, value in labels.items()}


def _instance_type(machine: Machine, zones: Sequence[str], labels: Mapping[str, str]) -> Json:
    gpus = {GPU_RESOURCE: str(machine.gpus)} if machine.gpus else {}
    adapters = {EFA_RESOURCE: str(machine.efa_interfaces)} if machine.efa_interfaces else {}
    capacities = tuple(CapacityType) if machine.on_spot else (CapacityType.ON_DEMAND,)
    return {
        "name": machine.name,
        "architecture": machine.arch,
        "operatingSystems": ["linux"],
        "labels": labels,
        "resources": {
            "cpu": str(machine.vcpus),
            "memory": f"{machine.memory_mib}Mi",
            "ephemeral-storage": "100Gi",
            "pods": "110",
            **gpus,
            **adapters,
        },
        "offerings": [_offering(machine, capacity, zone) for zone in zones for capacity in capacities],
    }


def _offering(machine: Machine, capacity: CapacityType, zone: str) -> Json:
    return {
        "Price": round(machine.hourly_price * _PRICE[capacity], 6),
        "Available": True,
        "Requirements": [
            {"key": CAPACITY_TYPE, "operator": "In", "values": [capacity.value]},
            {"key": ZONE, "operator": "In", "values": [zone]},
        ],
    }


_AZURE_LABELS: Final = "karpenter.azure.com"
# Standard_NC24ads_A100_v4: a family, what it adds to that, the vCPUs, what else there is, and a version.
_SIZE: Final = re.compile(r"^Standard_(?P<family>[A-Z])(?P<more>[A-Z]*)\d+[-\d]*(?P<rest>\w*)$", re.ASCII)
_VERSION: Final = re.compile(r"_v(?P<version>\d+)$")


def azure_instance_types(cluster: CloudObject) -> str:
    """List what is sold to a cluster, in the form that Karpenter's simulated provider reads.

    Raises CannotRunError where nothing is known of its location.
    """
    location = str(cluster.outputs.get("location"))
    machines = [one for one in machine_catalogue("azure").values() if is_sold_in(one.name, location)]
    if not machines:
        raise CannotRunError(f"nothing is known to be sold in the location of its cluster, {location}")
    # Where a location has no zones, AKS calls them all by this one.
    return instance_types(machines, zones_of(location) or ("0",), labels=azure_machine_labels)


def azure_machine_labels(machine: Machine) -> Mapping[str, str]:
    """The labels beside Kubernetes' own that Azure's provider puts on a machine's node, as far as they are known."""
    labels = {
        "sku-name": machine.name,
        "sku-cpu": str(machine.vcpus),
        "sku-memory": str(machine.memory_mib),
        "sku-gpu-count": str(machine.gpus),
    }
    named = _SIZE.match(machine.name)
    if named:
        version = _VERSION.search(machine.name)
        labels |= {
            "sku-family": named["family"],
            "sku-series": f"{named['family']}{named['more']}{named['rest']}",
            "sku-version": version["version"] if version else "1",
        }
    if machine.gpus and machine.accelerator:
        labels |= {"sku-gpu-name": machine.accelerator, "sku-gpu-manufacturer": "nvidia"}
    return {f"{_AZURE_LABELS}/{name}": value for name, value in labels.items()}


REGION: Final = "topology.kubernetes.io/region"
_SUBNET: Final = "aws:ec2/subnet:Subnet"
# Of a region in which the stack has no subnets of its own: as many as the stand-in for EC2 tells of.
_ZONES: Final = ("a", "b", "c")


class Ec2Market:
    """The market of a stand-in cloud: `cloud` is what exists in it."""

    def __init__(self, cloud: CloudState) -> None:
        self._cloud = cloud

    def sold_to(self, node: Json) -> str:
        """List what is sold to a buyer on this node: all of its region's machines, in the zones with subnets.

        Raises CannotRunError where the node's region is none.
        """
        metadata = mapping(node.get("metadata"))
        region = mapping(metadata.get("labels")).get(REGION)
        machines = [
            machine for machine in machine_catalogue("aws").values() if is_sold_in(machine.name, str(region))
        ]
        if not machines:
            raise CannotRunError(
                f"nothing is known to be sold in the region of node {metadata.get('name')}, {region}"
            )
        return instance_types(machines, self._zones(str(region)))

    def _zones(self, region: str) -> Sequence[str]:
        subnets = self._cloud.read().of_type(_SUBNET)
        zones = {str(subnet.outputs.get("availabilityZone")) for subnet in subnets}
        ours = sorted(zone for zone in zones if zone.startswith(region))
        return ours or [f"{region}{letter}" for letter in _ZONES]
