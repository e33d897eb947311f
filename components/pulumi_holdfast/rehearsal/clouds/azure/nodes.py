"""The nodes of a node pool: labels, taints, capacity, and what the cloud reserves of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Final

from pulumi_holdfast.ladder import machines
from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.ladder.labels import ARCH, GPU_RESOURCE, INSTANCE_TYPE, OS, ZONE
from pulumi_holdfast.ladder.quantities import parse_quantity
from pulumi_holdfast.rehearsal.clouds.azure.cluster import CLUSTER
from pulumi_holdfast.rehearsal.clouds.machines import REGION, SPOT_PRICE, NodeTemplate, stepped, whole_number
from pulumi_holdfast.rehearsal.clouds.relations import same_id
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, Inventory

# (Up to so many cores, millicores reserved of each): 60 of one, 100 of two, 140 of four, 180 of eight, 260 of sixteen.
_CPU_STEPS: Final = ((1, 60), (2, 40), (4, 20), (None, 10))
# Reserved for each pod of `maxPods`, and once.
_MEMORY_A_POD_MIB: Final = 20
_MEMORY_MIB: Final = 50
_MOST_OF_MEMORY: Final = Fraction(25, 100)
# The kubelet's eviction threshold.
_MEMORY_EVICTION_MIB: Final = 100
# The kubelet's default eviction threshold.
_DISK_EVICTION: Final = Fraction(10, 100)


def allocatable(capacity: Mapping[str, str]) -> dict[str, str]:
    """Return the allocatable resources of a capacity, by AKS's documentation (`node-resource-reservations`).

    The requests of the pods that AKS runs on each node are not simulated.
    """
    cores, pods = int(capacity["cpu"]), int(capacity["pods"])
    memory = int(parse_quantity(capacity["memory"]) / 1024**2)
    disk = int(parse_quantity(capacity["ephemeral-storage"]) / 1024**3)
    kept = min(_MEMORY_A_POD_MIB * pods + _MEMORY_MIB, ceil(memory * _MOST_OF_MEMORY))
    return {
        **capacity,
        "cpu": f"{cores * 1000 - stepped(cores, _CPU_STEPS)}m",
        "memory": f"{memory - kept - _MEMORY_EVICTION_MIB}Mi",
        "ephemeral-storage": f"{disk - ceil(disk * _DISK_EVICTION)}Gi",
    }


AGENT_POOL: Final = "azure-native:containerservice:AgentPool"


@dataclass(frozen=True, kw_only=True)
class NodePool:
    """A node pool of a cluster."""

    target: CloudObject
    cluster: CloudObject

    @property
    def profile(self) -> Json:
        """The inputs with AKS's computed values."""
        return self.target.outputs

    @property
    def name(self) -> str:
        """The name of the pool."""
        return str(self.profile.get("agentPoolName"))


def pools_in(inventory: Inventory) -> list[NodePool]:
    """Return every node pool of a cloud."""
    found = [pool_of(one, inventory) for one in inventory.of_type(AGENT_POOL)]
    return [pool for pool in found if pool is not None]


def pool_of(one: CloudObject, inventory: Inventory) -> NodePool | None:
    """Return a node pool with its cluster; None where the cluster does not exist."""
    cluster = next((each for each in inventory.of_type(CLUSTER) if _is_of(one, each)), None)
    return None if cluster is None else NodePool(target=one, cluster=cluster)


def _is_of(pool: CloudObject, cluster: CloudObject) -> bool:
    place = ("resourceName", "resourceGroupName")
    return all(same_id(pool.inputs.get(field), cluster.inputs.get(field)) for field in place)


AKS: Final = "kubernetes.azure.com"
PRIORITY: Final = f"{AKS}/scalesetpriority"
SPOT_TAINT: Final = f"{PRIORITY}=spot:NoSchedule"
AGENT_POOL_LABEL: Final = f"{AKS}/agentpool"

# AKS's defaults: pods with an overlay network, and without.
_PODS: Final = {"overlay": 250}
_FEWER_PODS: Final = 30
_DISK_GIB: Final = 128
# The zone label of a regional node: its fault domain.
_NO_ZONE: Final = "0"
# The minimum size of AKS, for unknown VM sizes.
_SMALLEST: Final = machines.Machine(name="", vcpus=2, memory_mib=4096, gpus=0, hourly_price=0.1)


@dataclass(frozen=True, kw_only=True)
class ScaleSetTemplate(NodeTemplate):
    """The nodes of one pool; `home` is the path of the scale set."""

    location: str
    home: str

    @property
    def spreads(self) -> bool:
        """A scale set balances its zones."""
        return True

    def labels_in(self, zone: str) -> Mapping[str, str]:
        """Return the labels of the pool's nodes in a zone, except the hostname."""
        return {**self.labels, ZONE: zone, REGION: self.location}

    def provider_id(self, name: str, _zone: str, /) -> str:
        """Return the path of a machine in its scale set; names count to the base of 36."""
        scale_set, number = name[:-6], int(name[-6:], 36)
        return f"azure://{self.home}/virtualMachineScaleSets/{scale_set}/virtualMachines/{number}"


def template_of(pool: NodePool) -> ScaleSetTemplate:
    """Return the template of a pool's nodes."""
    profile, cluster = pool.profile, pool.cluster.outputs
    location = str(cluster.get("location") or "")
    machine = _machine(profile)
    capacity = _capacity(profile, machine, cluster)
    is_spot, is_autoscaled = (
        profile.get("scaleSetPriority") == "Spot",
        profile.get("enableAutoScaling") is True,
    )
    initial = whole_number(profile.get("count"))
    return ScaleSetTemplate(
        name=pool.name,
        location=location,
        home=f"{_node_group(pool)}/providers/Microsoft.Compute",
        zones=tuple(f"{location}-{zone}" for zone in sequence(profile.get("availabilityZones")))
        or (_NO_ZONE,),
        labels=_labels(pool, machine),
        taints=_taints(profile),
        capacity=capacity,
        allocatable=allocatable(capacity),
        initial=initial,
        minimum=whole_number(profile.get("minCount")) if is_autoscaled else initial,
        maximum=whole_number(profile.get("maxCount")) if is_autoscaled else initial,
        is_autoscaled=is_autoscaled,
        is_spot=is_spot,
        hourly_price=machine.hourly_price * (SPOT_PRICE if is_spot else 1),
    )


def _machine(profile: Json) -> machines.Machine:
    return machines.machine_catalogue("azure").get(str(profile.get("vmSize")), _SMALLEST)


def _capacity(profile: Json, machine: machines.Machine, cluster: Json) -> Mapping[str, str]:
    mode = str(mapping(cluster.get("networkProfile")).get("networkPluginMode"))
    return {
        "cpu": str(machine.vcpus),
        "memory": f"{machine.memory_mib}Mi",
        "ephemeral-storage": f"{whole_number(profile.get('osDiskSizeGB')) or _DISK_GIB}Gi",
        "pods": str(whole_number(profile.get("maxPods")) or _PODS.get(mode, _FEWER_PODS)),
        **({GPU_RESOURCE: str(machine.gpus)} if machine.gpus else {}),
    }


def _labels(pool: NodePool, machine: machines.Machine) -> Mapping[str, str]:
    """Return AKS's labels and the pool's own."""
    profile = pool.profile
    return {
        ARCH: machine.arch,
        OS: "linux",
        INSTANCE_TYPE: str(profile.get("vmSize")),
        AGENT_POOL_LABEL: pool.name,
        "agentpool": pool.name,
        f"{AKS}/mode": str(profile.get("mode") or "User").lower(),
        f"{AKS}/role": "agent",
        f"{AKS}/cluster": str(pool.cluster.outputs.get("nodeResourceGroup")),
        **({PRIORITY: "spot"} if profile.get("scaleSetPriority") == "Spot" else {}),
        **({"accelerator": "nvidia", f"{AKS}/accelerator": "nvidia"} if machine.gpus else {}),
        **{key: str(value) for key, value in mapping(profile.get("nodeLabels")).items()},
    }


def _taints(profile: Json) -> tuple[Json, ...]:
    """Return the pool's taints and AKS's taint of spot pools."""
    own = [SPOT_TAINT] if profile.get("scaleSetPriority") == "Spot" else []
    given = [str(each) for each in sequence(profile.get("nodeTaints"))]
    return tuple(_taint(text) for text in dict.fromkeys([*own, *given]))


def _taint(text: str) -> Json:
    pair, _, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    return {"key": key, **({"value": value} if value else {}), "effect": effect}


def _node_group(pool: NodePool) -> str:
    subscription = pool.cluster.id.partition("/resourceGroups/")[0]
    return f"{subscription}/resourceGroups/{pool.cluster.outputs.get('nodeResourceGroup')}"
