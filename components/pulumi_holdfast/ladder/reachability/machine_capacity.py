"""The capacity of machine types, and how much of it is allocatable to pods.

The reservations are those by which each cloud's autoscaler decides whether a pod fits, because that decision buys the
machine. DaemonSets are rounded up, so that a result does not depend on the last 100 MiB.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN, Unknown
from pulumi_holdfast.ladder.labels import ARCH, EFA_RESOURCE, INSTANCE_TYPE, OS, ZONE
from pulumi_holdfast.ladder.machines import Machine
from pulumi_holdfast.ladder.reachability.node_labels import MachineLabel, Provisioner, machine_labels
from pulumi_holdfast.ladder.reachability.shape import EPHEMERAL_STORAGE, MAX_PODS_PER_NODE, Resources, widest

#: The most machine types of a pool that its FallbackPolicy lists: the API server reads the list in CEL.
MOST_CAPACITIES: Final = 8

#: The labels of which a FallbackPolicy lists all values that nodes have, unless there are more than this.
_OF_MACHINES: Final = (INSTANCE_TYPE, ARCH, OS)
LISTED_LABELS: Final = (*_OF_MACHINES, ZONE)
MOST_LABEL_VALUES: Final = 32

#: The name of the entry that stands for the machine types beyond MOST_CAPACITIES.
OTHERS: Final = "another"

#: Resources of nodes that no machine table has: the pool's disk or the node's software decides how much there is.
NOT_IN_TABLES: Final = frozenset(
    {EPHEMERAL_STORAGE, "vpc.amazonaws.com/pod-eni", "vpc.amazonaws.com/PrivateIPv4Address"}
)
#: Accelerators that no machine of the tables has: types with them are left out of the tables.
_ACCELERATORS: Final = (
    "amd.com/gpu",
    "aws.amazon.com/neuron",
    "aws.amazon.com/neuroncore",
    "aws.amazon.com/neurondevice",
    "google.com/tpu",
    "habana.ai/gaudi",
)
#: The memory in the name of a GPU: `a100-80gb`.
_MEMORY: Final = re.compile(r"-([0-9]+)gb$")
_MIB_IN_GIB: Final = 1024


@dataclass(frozen=True, kw_only=True)
class MachineCapacity:
    """A machine type of a pool: its `capacity`, which limits count, what is `allocatable` to pods, and its most pods.

    `labels` are those of its nodes that follow from the type. Unless `has_all_devices`, its nodes may have devices that are
    not listed. `possible_efa` are the fabric adapters that they may have, if that is not known. `gpu_memory_mib` is the memory of one GPU, None where no table has it.
    """

    name: str
    capacity: Resources
    allocatable: Resources
    accelerator: str | None = None
    gpu_memory_mib: int | None = None
    max_pods: int = MAX_PODS_PER_NODE
    labels: Mapping[str, MachineLabel] = field(default_factory=dict[str, MachineLabel])
    has_all_devices: bool = True
    possible_efa: int = 0

    def pods_of(self, requests: Resources) -> int:
        """How many pods with these requests fit on one such machine, if it has the devices that are not known."""
        counted = replace(requests.without_devices(self.unknown_devices(requests)), efa=requests.efa)
        room = replace(self.allocatable, efa=max(self.allocatable.efa, self.possible_efa))
        return min(counted.times_in(room), self.max_pods)

    def has_accelerator(self, name: str) -> bool | Unknown:
        """Whether its GPUs are of this kind: as its cloud spells it, or the model, with or without its memory (`a100-80gb`)."""
        wanted = name.lower()
        if self.accelerator is None:
            return UNKNOWN if self.capacity.gpus else False
        if wanted == self.accelerator or _model(wanted) != _model(self.accelerator):
            return wanted == self.accelerator
        there, asked = _MEMORY.search(self.accelerator), _MEMORY.search(wanted)
        known = int(there[1]) if there else self.gpu_memory_mib and self.gpu_memory_mib // _MIB_IN_GIB
        return asked is None or (UNKNOWN if known is None else int(asked[1]) == known)

    def unknown_devices(self, requests: Resources) -> tuple[str, ...]:
        """The devices that the pods request and its nodes may or may not have."""
        devices = (
            name
            for name in sorted(requests.devices)
            if name not in self.allocatable.devices and (not self.has_all_devices or name in NOT_IN_TABLES)
        )
        efa = self.allocatable.efa < min(requests.efa, self.possible_efa)
        return (*devices, *((EFA_RESOURCE,) if efa else ()))

    def with_device_plugins(self) -> "MachineCapacity":
        """The same type where device plugins may add devices that no table has, but no accelerator that it does not have."""
        devices = {**dict.fromkeys(_ACCELERATORS, 0), **self.allocatable.devices}
        return replace(self, allocatable=replace(self.allocatable, devices=devices), has_all_devices=False)

    def size(self) -> tuple[int, int, int]:
        """The sort key that orders machines by size."""
        return (self.allocatable.gpus, self.allocatable.memory_mib, self.allocatable.cpu_millis)


def _model(accelerator: str) -> str:
    """Return the model of a GPU: of `nvidia-tesla-a100` and `nvidia-a100-80gb`, as Google Cloud spells them, `a100`."""
    return _MEMORY.sub("", accelerator).removeprefix("nvidia-").removeprefix("tesla-")


@dataclass(frozen=True, kw_only=True)
class NodeOverhead:
    """What is reserved on a node: for the kubelet, and for the pods of DaemonSets (`daemons`), of which there are `daemon_pods`.

    `hypervisor_share` is the part of the memory that the provisioner takes for lost before it counts a machine against limits.
    `storage_mib` is the allocatable ephemeral storage, None where the pool's disk decides. Unless `has_all_devices`, devices
    that no table has may be there.
    """

    kubelet: Callable[[Machine], Resources]
    daemons: Resources
    daemon_pods: int = 0
    max_pods: int = MAX_PODS_PER_NODE
    hypervisor_share: float = 0.0
    storage_mib: int | None = None
    has_all_devices: bool = False


@dataclass(frozen=True, kw_only=True)
class KubeletSettings:
    """What an EC2NodeClass sets of the kubelet of its nodes; None: Karpenter's default.

    `kube` and `system` are thousandths of a CPU and MiB that are reserved; `vm_share` is the part of the memory that Karpenter
    takes for lost, which is a setting of its own.
    """

    max_pods: int | None = None
    kube: tuple[int | None, int | None] = (None, None)
    system: tuple[int, int] = (0, 0)
    vm_share: float = 0.075

    def reserved(self, machine: Machine) -> Resources:
        """What Karpenter reserves on a machine (v1.14.1, pkg/providers/instancetype/types.go): by default, 11 MiB a pod.

        Its number of pods is the number of addresses of the machine's network interfaces; for a machine without a known
        number, the one that is usual for its size.
        """
        cpu = _brackets(machine.vcpus, ((1, 0.06), (2, 0.01), (4, 0.005), (None, 0.0025)))
        usual = next(pods for vcpus, pods in _EKS_PODS if vcpus is None or machine.vcpus <= vcpus)
        pods = self.max_pods or machine.max_pods or usual
        millis, mib = self.kube
        memory = 11 * pods + 255 if mib is None else mib
        memory += self.system[1] + _EVICTION_MIB + machine.memory_mib * self.vm_share
        return Resources(
            cpu_millis=(round(cpu * 1000) if millis is None else millis) + self.system[0],
            memory_mib=round(min(memory, machine.memory_mib)),
        )


def machine_capacity(
    machine: Machine,
    provisioner: Provisioner,
    *,
    efa: bool | Unknown = False,
    settings: KubeletSettings | None = None,
) -> MachineCapacity:
    """The capacity and the allocatable resources of a machine type; `efa`: the pool uses its fabric adapters."""
    overhead = NODE_OVERHEADS[provisioner]
    if settings is not None:
        overhead = replace(overhead, kubelet=settings.reserved, hypervisor_share=settings.vm_share)
        machine = replace(machine, max_pods=settings.max_pods or machine.max_pods)
    kubelet = overhead.kubelet(machine)
    whole = Resources(
        cpu_millis=machine.vcpus * 1000,
        memory_mib=machine.memory_mib,
        gpus=machine.gpus,
        efa=machine.efa_interfaces if efa is True else 0,
        devices={} if overhead.storage_mib is None else {EPHEMERAL_STORAGE: overhead.storage_mib},
    )
    found = MachineCapacity(
        name=machine.name,
        capacity=replace(whole, memory_mib=int(machine.memory_mib * (1 - overhead.hypervisor_share))),
        allocatable=replace(
            whole,
            cpu_millis=max(0, whole.cpu_millis - kubelet.cpu_millis - overhead.daemons.cpu_millis),
            memory_mib=max(0, whole.memory_mib - kubelet.memory_mib - overhead.daemons.memory_mib),
        ),
        accelerator=machine.accelerator,
        gpu_memory_mib=machine.gpu_memory_mib,
        max_pods=max(0, (machine.max_pods or overhead.max_pods) - overhead.daemon_pods),
        labels=machine_labels(machine, provisioner),
        possible_efa=machine.efa_interfaces if efa is UNKNOWN else 0,
    )
    return found if overhead.has_all_devices else found.with_device_plugins()


def listed_label_values(
    capacities: Sequence[MachineCapacity], zones: Collection[str] = ()
) -> Mapping[str, tuple[str, ...]]:
    """The values of LISTED_LABELS on nodes of these types, sorted; without labels of which one is not known.

    `zones` are those of the nodes, none if they are not known.
    """
    found: dict[str, set[object]] = {
        key: {each.labels.get(key, UNKNOWN) for each in capacities} for key in _OF_MACHINES
    }
    found[ZONE] = {*zones}
    known = {key: sorted(each for each in values if isinstance(each, str)) for key, values in found.items()}
    return {
        key: tuple(values)
        for key, values in known.items()
        if 0 < len(values) == len(found[key]) <= MOST_LABEL_VALUES
    }


def non_dominated(capacities: Sequence[MachineCapacity]) -> tuple[MachineCapacity, ...]:
    """The machine types that no other one dominates, largest first, MOST_CAPACITIES at most.

    Whatever fits on a type that is left out fits on one that is listed, as often. If too many remain, the smallest are
    merged into one entry with the maximum of each resource: whatever is refused for lack of room then has none, although
    not everything without room is refused.
    """
    kept: list[MachineCapacity] = []
    for each in sorted(capacities, key=MachineCapacity.size, reverse=True):
        if not any(_dominates(other, each) for other in kept):
            kept = [other for other in kept if not _dominates(each, other)] + [each]
    if len(kept) <= MOST_CAPACITIES:
        return tuple(kept)
    return (*kept[: MOST_CAPACITIES - 1], _merged(kept[MOST_CAPACITIES - 1 :]))


def _dominates(one: MachineCapacity, other: MachineCapacity) -> bool:
    return (
        one.accelerator == other.accelerator
        and other.allocatable.fits_in(one.allocatable)
        and other.max_pods <= one.max_pods
        and other.has_all_devices >= one.has_all_devices
        and other.possible_efa <= max(one.possible_efa, one.allocatable.efa)
    )


def _merged(capacities: Sequence[MachineCapacity]) -> MachineCapacity:
    kinds = {each.accelerator for each in capacities}
    return MachineCapacity(
        name=OTHERS,
        capacity=widest([each.capacity for each in capacities]),
        allocatable=widest([each.allocatable for each in capacities]),
        accelerator=kinds.pop() if len(kinds) == 1 else None,
        max_pods=max(each.max_pods for each in capacities),
        has_all_devices=all(each.has_all_devices for each in capacities),
        possible_efa=max(each.possible_efa for each in capacities),
    )


def _gke(machine: Machine) -> Resources:
    """GKE's documented reservations, which grow with the machine."""
    cpu = _brackets(machine.vcpus, ((1, 0.06), (2, 0.01), (4, 0.005), (None, 0.0025)))
    memory = _brackets(machine.memory_mib / 1024, _MEMORY_BRACKETS)
    return Resources(cpu_millis=round(cpu * 1000), memory_mib=round(memory * 1024) + _EVICTION_MIB)


def _nap(machine: Machine) -> Resources:
    """Karpenter's Azure provider v1.14.2, pkg/providers/instancetype/instancetype.go; 7.5 % for the hypervisor there too."""
    cpu = _brackets(machine.vcpus, ((1, 0.06), (2, 0.04), (4, 0.02), (None, 0.01)))
    memory = _brackets(machine.memory_mib / 1024, _MEMORY_BRACKETS)
    return Resources(
        cpu_millis=round(cpu * 1000),
        memory_mib=round(memory * 1024 + machine.memory_mib * 0.075) + _NAP_EVICTION_MIB,
    )


def _aks(machine: Machine) -> Resources:
    """AKS' documented reservations from 1.29 on: 20 MB for each of 250 pods and 50 MB, a quarter at most."""
    cpu = next((millis for cores, millis in _AKS_CPU if machine.vcpus <= cores), _AKS_CPU[-1][1])
    # Nothing is documented above 64 cores: continue the slope of the table from 32 to 64, 10 millicores a core.
    cpu += max(0, machine.vcpus - _AKS_CPU[-1][0]) * 10
    memory = min(20 * 250 + 50, machine.memory_mib * 0.25)
    return Resources(cpu_millis=cpu, memory_mib=round(memory) + _EVICTION_MIB)


def _local(_: Machine) -> Resources:
    """Karpenter v1.14.1, kwok/cloudprovider/helpers.go."""
    return Resources(cpu_millis=100, memory_mib=10)


def _brackets(amount: float, rates: tuple[tuple[float | None, float], ...]) -> float:
    reserved, start = 0.0, 0.0
    for end, rate in rates:
        upper = amount if end is None else min(amount, end)
        reserved += max(0.0, upper - start) * rate
        start = upper
    return reserved


_MEMORY_BRACKETS: Final = ((4.0, 0.25), (8.0, 0.20), (16.0, 0.10), (128.0, 0.06), (None, 0.02))
_EVICTION_MIB: Final = 100
_NAP_EVICTION_MIB: Final = 750
#: vCPUs → addresses for pods in the general families: 58 up to 2xlarge, 234 up to 12xlarge, then 737.
_EKS_PODS: Final = ((8, 58), (48, 234), (None, 737))
_AKS_CPU: Final = ((1, 60), (2, 100), (4, 140), (8, 180), (16, 260), (32, 420), (64, 740))

NODE_OVERHEADS: Final[Mapping[Provisioner, NodeOverhead]] = {
    # kube-proxy 100m, aws-node 50m, the device plugins of NVIDIA and EFA, the identity agent.
    Provisioner.EKS: NodeOverhead(
        kubelet=KubeletSettings().reserved,
        daemons=Resources(cpu_millis=300, memory_mib=512),
        daemon_pods=6,
        hypervisor_share=0.075,
        # Karpenter buys no machine for a device that it does not know.
        has_all_devices=True,
    ),
    # What its nodes need besides the kubelet runs outside of pods; it counts them like Karpenter.
    Provisioner.AUTO: NodeOverhead(
        kubelet=KubeletSettings().reserved,
        daemons=Resources(cpu_millis=300, memory_mib=512),
        hypervisor_share=0.075,
        has_all_devices=True,
    ),
    # Dataplane V2, logging, metrics, metadata server, disk driver, NVIDIA's plugin.
    Provisioner.GKE: NodeOverhead(kubelet=_gke, daemons=Resources(cpu_millis=600, memory_mib=1024)),
    # Cilium, its address manager, node manager, disk and file drivers, masquerading, NVIDIA's plugin.
    Provisioner.NAP: NodeOverhead(
        kubelet=_nap,
        daemons=Resources(cpu_millis=600, memory_mib=1024),
        hypervisor_share=0.075,
        has_all_devices=True,
    ),
    Provisioner.AKS: NodeOverhead(
        kubelet=_aks, daemons=Resources(cpu_millis=600, memory_mib=1024), max_pods=250
    ),
    Provisioner.LOCAL: NodeOverhead(
        kubelet=_local,
        daemons=Resources(cpu_millis=0, memory_mib=0),
        storage_mib=100 * 1024,
        has_all_devices=True,
    ),
}
