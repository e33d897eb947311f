"""The machines of the pool that is part of an AKS cluster itself, as the nodes they become."""

from collections.abc import Mapping, Sequence
from typing import Final

from holdfast.scheduling.json import Json
from holdfast.scheduling.labels import ARCH, INSTANCE_TYPE, OS, ZONE
from holdfast.scheduling.machines import machine_catalogue
from holdfast.simulator.clouds.machines import Group, Machine
from holdfast.simulator.kubernetes_client.objects import mapping, sequence

#: What is in no table holds what the smallest machine does that AKS takes for a system pool.
_SMALLEST: Final[Mapping[str, str]] = {"cpu": "4", "memory": "16384Mi"}
#: As many as AKS runs on a node of an overlay network.
_PODS: Final = "250"


def machines_of(group: Group) -> Sequence[Machine]:
    """Return the machines of a cluster's own pools, over their zones in turn."""
    profiles = map(mapping, sequence(group.target.inputs.get("agentPoolProfiles")))
    return [_machine(group, profile, index) for profile in profiles for index in range(_count(profile))]


def _count(profile: Json) -> int:
    wanted = profile.get("count", 1)
    return int(wanted) if isinstance(wanted, int | float) else 0


def _machine(group: Group, profile: Json, index: int) -> Machine:
    cluster = group.target
    region, pool = str(cluster.inputs.get("location")), str(profile.get("name"))
    scale_set = f"aks-{pool}-{int(cluster.digest[:8] or '0', 16) % 10**8:08}-vmss"
    resources = str(cluster.inputs.get("nodeResourceGroup"))
    zones = [str(zone) for zone in sequence(profile.get("availabilityZones"))]
    name = f"{scale_set}{index:06}"
    return Machine(
        name=name,
        provider_id=(
            f"azure:///subscriptions/{cluster.id.split('/')[2]}/resourceGroups/{resources}/providers/"
            f"Microsoft.Compute/virtualMachineScaleSets/{scale_set}/virtualMachines/{index}"
        ),
        labels={
            "kubernetes.io/hostname": name,
            ARCH: "amd64",
            OS: "linux",
            # Where no zone is asked for, AKS shows a machine's place in a scale set instead.
            ZONE: f"{region}-{zones[index % len(zones)]}" if zones else "0",
            "topology.kubernetes.io/region": region,
            INSTANCE_TYPE: str(profile.get("vmSize")),
            "agentpool": pool,
            "kubernetes.azure.com/agentpool": pool,
            "kubernetes.azure.com/cluster": resources,
            "kubernetes.azure.com/mode": str(profile.get("mode") or "User").lower(),
            **{key: str(value) for key, value in mapping(profile.get("nodeLabels")).items()},
        },
        capacity={**_capacity(str(profile.get("vmSize"))), "pods": _PODS},
        taints=tuple(_taint(str(each)) for each in sequence(profile.get("nodeTaints"))),
    )


def _capacity(vm_size: str) -> Mapping[str, str]:
    known = machine_catalogue("azure").get(vm_size)
    return {"cpu": str(known.vcpus), "memory": f"{known.memory_mib}Mi"} if known else _SMALLEST


def _taint(text: str) -> Json:
    """`key=value:effect`, as AKS takes a taint, as a node spells it."""
    name, _, effect = text.rpartition(":")
    key, _, value = name.partition("=")
    return {"key": key, **({"value": value} if value else {}), "effect": effect}
