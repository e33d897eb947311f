"""The instance types of AWS and Azure in the format of Karpenter's kwok provider."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.ladder.labels import (
    ARCH,
    CAPACITY_TYPE,
    EFA_RESOURCE,
    GPU_RESOURCE,
    INSTANCE_TYPE,
    OS,
    RESERVATION_ID,
    ZONE,
    CapacityType,
)
from pulumi_holdfast.ladder.machines import Machine, is_sold_in, machine_catalogue, zones_of
from pulumi_holdfast.ladder.reachability.node_labels import Provisioner, machine_labels
from pulumi_holdfast.rehearsal.clouds.aws.network import SUBNET
from pulumi_holdfast.rehearsal.clouds.aws.offerings import reservations
from pulumi_holdfast.rehearsal.clouds.aws.offerings import zones as ec2_zones
from pulumi_holdfast.rehearsal.clouds.machines import REGION
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, CloudState
from pulumi_holdfast.rehearsal.operator_runner.pod_spec import CannotRunError

_OF_KUBERNETES: Final = frozenset({INSTANCE_TYPE, ARCH, OS})

# Like in the cost model, a spot machine costs a tenth.
_PRICE: Final = {CapacityType.ON_DEMAND: 1.0, CapacityType.SPOT: 0.1}


def instance_types(
    machines: Iterable[Machine],
    zones: Sequence[str],
    provisioner: Provisioner = Provisioner.EKS,
    reserved: Mapping[str, Json] | None = None,
) -> str:
    """The instance types: each machine in each zone, on demand and, if offered, on spot; and what is reserved.

    `reserved` are EC2's capacity reservations by id.
    """
    by_name = sorted(machines, key=lambda machine: machine.name)
    offered = [_reserved_offering(*each) for each in (reserved or {}).items()]
    types = [_instance_type(machine, zones, _labels(machine, provisioner), offered) for machine in by_name]
    return json.dumps(types, separators=(",", ":"), sort_keys=True)


def _labels(machine: Machine, provisioner: Provisioner) -> Mapping[str, str]:
    """The labels of its nodes whose values are known; Karpenter sets those of Kubernetes itself."""
    return {
        name: value
        for name, value in machine_labels(machine, provisioner).items()
        if isinstance(value, str) and name not in _OF_KUBERNETES
    }


def _reserved_offering(reservation: str, inputs: Json) -> tuple[str, Json]:
    """The instance type of a reservation, and what Karpenter gets of it: for free, since it is paid for."""
    requirements = {
        CAPACITY_TYPE: CapacityType.RESERVED.value,
        RESERVATION_ID: reservation,
        ZONE: str(inputs.get("availabilityZone")),
    }
    return str(inputs.get("instanceType")), {
        "Price": 0,
        "Available": True,
        "ReservationCapacity": inputs.get("instanceCount"),
        "Requirements": [
            {"key": key, "operator": "In", "values": [value]} for key, value in requirements.items()
        ],
    }


def _instance_type(
    machine: Machine, zones: Sequence[str], labels: Mapping[str, str], reserved: Sequence[tuple[str, Json]]
) -> Json:
    gpus = {GPU_RESOURCE: str(machine.gpus)} if machine.gpus else {}
    adapters = {EFA_RESOURCE: str(machine.efa_interfaces)} if machine.efa_interfaces else {}
    capacities = tuple(_PRICE) if machine.on_spot else (CapacityType.ON_DEMAND,)
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
        "offerings": [
            *(_offering(machine, capacity, zone) for zone in zones for capacity in capacities),
            *(offering for name, offering in reserved if name == machine.name),
        ],
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


def azure_instance_types(cluster: CloudObject) -> str:
    """The instance types in the location of a cluster. Raises CannotRunError for an unknown location."""
    location = str(cluster.outputs.get("location"))
    machines = [one for one in machine_catalogue("azure").values() if is_sold_in(one.name, location)]
    if not machines:
        raise CannotRunError(
            f"the machine catalog has no machine for the location of the cluster, {location}"
        )
    # AKS uses this zone in a location without zones.
    return instance_types(machines, zones_of(location) or ("0",), Provisioner.NAP)


# Of a region without subnets of the stack.
_MOST_ZONES: Final = 3


class Ec2InstanceTypes:
    """The instance types of EC2; `cloud` is the state of the AWS simulator."""

    def __init__(self, cloud: CloudState) -> None:
        self._cloud = cloud

    def for_node(self, node: Json) -> str:
        """The instance types for a Karpenter on this node: all machines of its region, in zones with subnets.

        Raises CannotRunError for an unknown region.
        """
        metadata = mapping(node.get("metadata"))
        region = mapping(metadata.get("labels")).get(REGION)
        machines = [
            machine for machine in machine_catalogue("aws").values() if is_sold_in(machine.name, str(region))
        ]
        if not machines:
            raise CannotRunError(
                f"the machine catalog has no machine for the region of node {metadata.get('name')}, {region}"
            )
        return instance_types(machines, self._zones(str(region)), reserved=reservations(self._cloud.read()))

    def _zones(self, region: str) -> Sequence[str]:
        subnets = self._cloud.read().of_type(SUBNET)
        zones = {str(subnet.outputs.get("availabilityZone")) for subnet in subnets}
        ours = sorted(zone for zone in zones if zone.startswith(region))
        return ours or ec2_zones(region)[:_MOST_ZONES]
