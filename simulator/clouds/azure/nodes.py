"""What every node of a node pool is like, and how many there may be."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from holdfast.scheduling import machines
from holdfast.scheduling.json import Json, JsonValue
from holdfast.scheduling.labels import ARCH, GPU_RESOURCE, INSTANCE_TYPE, OS, ZONE
from holdfast.simulator.clouds.azure.nodes.pools import NodePool
from holdfast.simulator.clouds.azure.nodes.reserved import allocatable
from holdfast.simulator.clouds.machines import Machine
from holdfast.simulator.kubernetes_client.objects import mapping, sequence

AKS: Final = "kubernetes.azure.com"
PRIORITY: Final = f"{AKS}/scalesetpriority"
AGENT_POOL: Final = f"{AKS}/agentpool"
REGION: Final = "topology.kubernetes.io/region"

# AKS's own defaults: of pods with the overlay that clusters here have, and without.
_PODS: Final = {"overlay": 250}
_FEWER_PODS: Final = 30
_DISK_GIB: Final = 128
# The zone of a node that is in none: its fault domain.
_NO_ZONE: Final = "0"
# As in the cost model: a spot machine costs a tenth.
_SPOT_PRICE: Final = 0.1
# What is in no table holds the least that AKS takes.
_SMALLEST: Final = machines.Machine(name="", vcpus=2, memory_mib=4096, gpus=0, hourly_price=0.1)


@dataclass(frozen=True, kw_only=True)
class NodeTemplate:
    """The nodes of one pool.

    `labels`, `taints`, `capacity` and `allocatable` are those of each; of at most `maximum` nodes `initial` come with the
    pool; `is_autoscaled`: whether the autoscaler changes how many there are. `home` is the path to its scale set.
    """

    name: str
    location: str
    home: str
    zones: tuple[str, ...]
    labels: Mapping[str, str]
    taints: tuple[Json, ...]
    capacity: Mapping[str, str]
    allocatable: Mapping[str, str]
    initial: int
    minimum: int
    maximum: int
    is_autoscaled: bool
    is_spot: bool
    hourly_price: float

    @property
    def spreads(self) -> bool:
        """A scale set keeps its zones even, as far as it can."""
        return True

    def labels_in(self, zone: str) -> Mapping[str, str]:
        """Return the labels of the pool's nodes in a zone, but for that with the node's own name."""
        return {**self.labels, ZONE: zone, REGION: self.location}

    def machine(self, name: str, zone: str) -> Machine:
        """Return a machine of the pool."""
        scale_set, number = name[:-6], int(name[-6:], 36)
        return Machine(
            name=name,
            provider_id=f"azure://{self.home}/virtualMachineScaleSets/{scale_set}/virtualMachines/{number}",
            labels={**self.labels_in(zone), "kubernetes.io/hostname": name},
            capacity=self.capacity,
            taints=self.taints,
            allocatable=self.allocatable,
        )


def template_of(pool: NodePool) -> NodeTemplate:
    """Return what the nodes of a pool are like."""
    profile, cluster = pool.profile, pool.cluster.outputs
    location = str(cluster.get("location") or "")
    machine = _machine(profile)
    capacity = _capacity(profile, machine, cluster)
    is_spot, is_autoscaled = (
        profile.get("scaleSetPriority") == "Spot",
        profile.get("enableAutoScaling") is True,
    )
    initial = _number(profile.get("count"))
    return NodeTemplate(
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
        minimum=_number(profile.get("minCount")) if is_autoscaled else initial,
        maximum=_number(profile.get("maxCount")) if is_autoscaled else initial,
        is_autoscaled=is_autoscaled,
        is_spot=is_spot,
        hourly_price=machine.hourly_price * (_SPOT_PRICE if is_spot else 1),
    )


def _machine(profile: Json) -> machines.Machine:
    return machines.machine_catalogue("azure").get(str(profile.get("vmSize")), _SMALLEST)


def _capacity(profile: Json, machine: machines.Machine, cluster: Json) -> Mapping[str, str]:
    mode = str(mapping(cluster.get("networkProfile")).get("networkPluginMode"))
    return {
        "cpu": str(machine.vcpus),
        "memory": f"{machine.memory_mib}Mi",
        "ephemeral-storage": f"{_number(profile.get('osDiskSizeGB')) or _DISK_GIB}Gi",
        "pods": str(_number(profile.get("maxPods")) or _PODS.get(mode, _FEWER_PODS)),
        **({GPU_RESOURCE: str(machine.gpus)} if machine.gpus else {}),
    }


def _labels(pool: NodePool, machine: machines.Machine) -> Mapping[str, str]:
    """Return the labels AKS gives to the nodes of a pool, and those that the pool asks for."""
    profile = pool.profile
    return {
        ARCH: machine.arch,
        OS: "linux",
        INSTANCE_TYPE: str(profile.get("vmSize")),
        AGENT_POOL: pool.name,
        "agentpool": pool.name,
        f"{AKS}/mode": str(profile.get("mode") or "User").lower(),
        f"{AKS}/role": "agent",
        f"{AKS}/cluster": str(pool.cluster.outputs.get("nodeResourceGroup")),
        **({PRIORITY: "spot"} if profile.get("scaleSetPriority") == "Spot" else {}),
        **({"accelerator": "nvidia", f"{AKS}/accelerator": "nvidia"} if machine.gpus else {}),
        **{key: str(value) for key, value in mapping(profile.get("nodeLabels")).items()},
    }


def _taints(profile: Json) -> tuple[Json, ...]:
    """Return the taints of a pool's nodes: AKS's own among them, whether the pool says so or not."""
    own = [f"{PRIORITY}=spot:NoSchedule"] if profile.get("scaleSetPriority") == "Spot" else []
    given = [str(each) for each in sequence(profile.get("nodeTaints"))]
    return tuple(_taint(text) for text in dict.fromkeys([*own, *given]))


def _taint(text: str) -> Json:
    pair, _, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    return {"key": key, **({"value": value} if value else {}), "effect": effect}


def _node_group(pool: NodePool) -> str:
    subscription = pool.cluster.id.partition("/resourceGroups/")[0]
    return f"{subscription}/resourceGroups/{pool.cluster.outputs.get('nodeResourceGroup')}"


def _number(value: JsonValue) -> int:
    return int(value) if isinstance(value, int | float) else 0
