"""The machines of EKS node groups, as the nodes they become."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Final

from holdfast.scheduling.json import Json, JsonValue
from holdfast.scheduling.labels import ARCH, INSTANCE_TYPE, OS, ZONE
from holdfast.scheduling.machines import machine_catalogue
from holdfast.simulator.clouds.aws.names import region
from holdfast.simulator.clouds.machines import Group, Machine
from holdfast.simulator.kubernetes_client.objects import mapping, sequence

NODE_GROUP: Final = "aws:eks/nodeGroup:NodeGroup"
_SUBNET: Final = "aws:ec2/subnet:Subnet"
# EKS's own default instance type, and what it holds.
_DEFAULT_TYPE: Final = "t3.medium"
_DEFAULT_CAPACITY: Final = {"cpu": "2", "memory": "4096Mi"}
# Of an object that was put in by hand, or whose subnets are the user's own and no business of this cloud.
_ZONES: Final = ("a", "b", "c")
_EFFECTS: Final[Mapping[str, str]] = {
    "NO_SCHEDULE": "NoSchedule",
    "PREFER_NO_SCHEDULE": "PreferNoSchedule",
    "NO_EXECUTE": "NoExecute",
}


def machines_of(group: Group) -> Sequence[Machine]:
    """Return the machines of a node group: as many as are desired, over its subnets in turn."""
    inputs = group.target.inputs
    wanted = mapping(inputs.get("scalingConfig")).get("desiredSize", 0)
    count = int(wanted) if isinstance(wanted, int | float) else 0
    return [_machine(group, index) for index in range(count)]


def _machine(group: Group, index: int) -> Machine:
    inputs = group.target.inputs
    where = region(inputs, {"region": _region_of_arn(group)})
    zone = _zone(group, index, where)
    identity = hashlib.sha256(f"{group.target.digest or group.target.id}|{index}".encode()).hexdigest()[:17]
    name = f"i-{identity}.{where}.compute.internal"
    machine = _machine_type(inputs)
    labels: dict[str, str] = {
        "kubernetes.io/hostname": name,
        ARCH: "amd64",
        OS: "linux",
        ZONE: zone,
        "topology.kubernetes.io/region": where,
        INSTANCE_TYPE: machine,
        "eks.amazonaws.com/nodegroup": _name(group),
        "eks.amazonaws.com/capacityType": str(inputs.get("capacityType") or "ON_DEMAND"),
        **{key: str(value) for key, value in mapping(inputs.get("labels")).items()},
    }
    return Machine(
        name=name,
        provider_id=f"aws:///{zone}/i-{identity}",
        labels=labels,
        capacity=_capacity(machine),
        taints=tuple(_taint(mapping(each)) for each in sequence(inputs.get("taints"))),
    )


def _name(group: Group) -> str:
    return str(group.target.outputs.get("nodeGroupName") or group.target.id.rpartition(":")[2])


def _zone(group: Group, index: int, where: str) -> str:
    subnets = sequence(group.target.inputs.get("subnetIds"))
    if subnets:
        found = group.inventory.find(_SUBNET, str(subnets[index % len(subnets)]))
        zone = found.outputs.get("availabilityZone") if found is not None else None
        if zone:
            return str(zone)
    return f"{where}{_ZONES[index % len(_ZONES)]}"


def _region_of_arn(group: Group) -> JsonValue:
    """`arn:aws:eks:eu-west-1:…`: an object does not keep its provider's configuration."""
    parts = str(group.target.outputs.get("arn", "")).split(":")
    return parts[3] if len(parts) > 3 else None


def _machine_type(inputs: Json) -> str:
    return next((str(each) for each in sequence(inputs.get("instanceTypes"))), _DEFAULT_TYPE)


def _capacity(machine: str) -> dict[str, str]:
    known = machine_catalogue("aws").get(machine)
    held = {"cpu": str(known.vcpus), "memory": f"{known.memory_mib}Mi"} if known else dict(_DEFAULT_CAPACITY)
    return {**held, "pods": "110"}


def _taint(taint: Json) -> Json:
    value = {"value": taint["value"]} if taint.get("value") else {}
    return {
        "key": taint.get("key"),
        **value,
        "effect": _EFFECTS.get(str(taint.get("effect")), str(taint.get("effect"))),
    }
