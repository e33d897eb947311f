"""Reads GKE's node pools, with what GKE adds to their nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from holdfast.policies.clusters import clusters_of
from holdfast.policies.fields import gcp
from holdfast.policies.inputs.admission import tolerations_for
from holdfast.policies.inputs.gke_zones import CLUSTER, fewer_nodes, pool_limits, pool_zones
from holdfast.policies.inputs.pool import (
    LEAST_PRIORITY,
    NO_DRIVER,
    WINDOWS,
    DeclaredPool,
    Machines,
    known_taints,
    machines_named,
    taint_of,
)
from holdfast.policies.inputs.refused_pools import images_on_gke, outside_its_class, refused_by_gke
from holdfast.policies.resources import (
    StackResource,
    Value,
    at,
    count,
    is_object,
    items_at,
    known_items,
    labels_at,
    of_type,
    once,
    text_at,
    whole_number,
)
from holdfast.scheduling.json import UNKNOWN, Unknown
from holdfast.scheduling.labels import (
    ARCH,
    COMPUTE_CLASS,
    GKE_PROVISIONING,
    GKE_SPOT,
    GKE_SPOT_VALUE,
    GPU_RESOURCE,
    ON_DEMAND,
    POOL,
    RESERVED,
    SPOT,
    ZONE,
)
from holdfast.scheduling.machines import attachable_to, machine_catalogue, with_attached
from holdfast.scheduling.reachability.affinity import ABSENT, LabelFact
from holdfast.scheduling.reachability.facts import AddedToleration, PoolFacts
from holdfast.scheduling.reachability.label_values import LabelValues
from holdfast.scheduling.reachability.machine_capacity import MachineCapacity, Provisioner, machine_capacity
from holdfast.scheduling.taints import GPU, Taint, Toleration

NODE_POOL: Final = "gcp:container/nodePool:NodePool"

_DEFAULT_POOL: Final = "default-pool"

#: GKE ends such nodes without asking their pods: at any time, after a day at the latest, or after a week.
_PREEMPTIBLE: Final = {"spot": SPOT, "preemptible": SPOT, "flexStart": RESERVED}

#: GKE makes such nodes only for ProvisioningRequests, when it has capacity for all of one at once, and for a week at most.
_QUEUED: Final = "queued"

_EFFECTS: Final = {
    "NO_SCHEDULE": "NoSchedule",
    "PREFER_NO_SCHEDULE": "PreferNoSchedule",
    "NO_EXECUTE": "NoExecute",
}
# GKE adds a toleration to pods that request GPUs (ExtendedResourceToleration).
_GPU_TOLERATION: Final = AddedToleration(toleration=Toleration(key=GPU_RESOURCE), for_gpu_pods=True)
# GKE's own taints of nodes with Arm processors and of sandboxed nodes. It adds the toleration to pods that select Arm.
_ARM: Final = Taint(key=ARCH, value="arm64")
_ARM_TOLERATION: Final = AddedToleration(toleration=Toleration.of(_ARM), selecting=(ARCH, "arm64"))
_SANDBOX: Final = Taint(key="sandbox.gke.io/runtime", value="gvisor")

_METADATA: Final = "iam.gke.io/gke-metadata-server-enabled"
_TPU_TOPOLOGY: Final = "cloud.google.com/gke-tpu-topology"

#: GPUs that GKE divides into partitions, and their memory.
_MEMORY_GB: Final[Mapping[str, int]] = {
    "nvidia-tesla-a100": 40,
    "nvidia-a100-80gb": 80,
    "nvidia-h100-80gb": 80,
    "nvidia-h200-141gb": 141,
    "nvidia-b200": 180,
    "nvidia-gb200": 186,
    "nvidia-rtx-pro-6000": 96,
}
_PARTITION: Final = re.compile(r"(?P<compute>[1-7])g\.(?P<memory>[0-9]{1,3})gb")
_COMPUTE_UNITS: Final = 7
_MEMORY_UNITS: Final = 8
_STRATEGIES: Final = {"TIME_SHARING": "time-sharing", "MPS": "mps"}

# GKE's machine type for node pools that set none.
_DEFAULT_MACHINE_TYPE: Final = "e2-medium"


@once
def gke_pools(resources: Sequence[StackResource]) -> tuple[DeclaredPool, ...]:
    """Return the pools of the stack's GKE node pools, and those inside its clusters."""
    own = [_pool(each, resources) for each in of_type(resources, NODE_POOL)]
    inline = [pool for each in of_type(resources, CLUSTER) for pool in _inline(each, resources)]
    return (*own, *inline)


def _inline(cluster: StackResource, resources: Sequence[StackResource]) -> Iterator[DeclaredPool]:
    """Yield the pools that a cluster declares itself, and the default pool that it is created with."""
    listed, declared = items_at(cluster.props, "nodePools"), known_items(cluster.declared, "nodePools")
    profiles = [
        (f"nodePools[{index}].", each, declared[index] if index < len(declared) else each)
        for index, each in enumerate(() if listed is UNKNOWN else listed)
    ]
    removed = at(cluster.props, "removeDefaultNodePool"), at(cluster.props, "enableAutopilot")
    if listed is not UNKNOWN and not profiles and True not in removed and UNKNOWN not in removed:
        counted = {"nodeCount": at(cluster.props, "initialNodeCount")}
        default, set_of_it = (
            {key: at(props, key) for key in ("nodeConfig", "nodeLocations")}
            for props in (cluster.props, cluster.declared)
        )
        profiles.append(("", {"name": _DEFAULT_POOL, **default, **counted}, set_of_it))
    for where, profile, inputs in profiles:
        if is_object(profile) and is_object(inputs):
            pool = _pool(replace(cluster, props=profile, inputs=inputs), resources)
            yield replace(
                pool,
                resource=cluster,
                labels_path=f"{where}nodeConfig.labels",
                taints_path=f"{where}nodeConfig.taints",
            )


def _pool(node_pool: StackResource, resources: Sequence[StackResource]) -> DeclaredPool:
    label = text_at(node_pool.props, "nodeConfig", "labels", POOL)
    declared = text_at(node_pool.props, "name")
    name = declared if isinstance(declared, str) else node_pool.logical_name
    kinds, decided = _capacity_types(node_pool)
    machines, zones = _machines(node_pool), pool_zones(node_pool, resources)
    limits, most_pods = pool_limits(node_pool, resources), _most_pods(node_pool, resources)
    image = str(text_at(node_pool.props, "nodeConfig", "imageType") or "")
    driver = at(_accelerator(node_pool), "gpuDriverInstallationConfig", "gpuDriverVersion")
    return DeclaredPool(
        resource=node_pool,
        provisioner=Provisioner.GKE,
        label=label,
        node_pool=name,
        title=f"node pool {name!r}",
        labels_path="nodeConfig.labels",
        taints_path="nodeConfig.taints",
        no_schedule="NO_SCHEDULE",
        facts=PoolFacts(
            name=label if isinstance(label, str) else node_pool.logical_name,
            title=f"node pool {name!r}",
            capacity_types=kinds,
            is_decided=decided,
            labels=_labels(node_pool, zones, is_spot=kinds == frozenset({SPOT})),
            taints=_taints(node_pool, machines),
            machines=_with_most_pods(most_pods, machines.capacities),
            unmodeled=(
                *((WINDOWS,) if "WINDOWS" in image.upper() else ()),
                *fewer_nodes(node_pool, resources, machines.capacities, most_pods, limits.nodes),
                *images_on_gke(node_pool, resources),
                *outside_its_class(node_pool, name, resources),
                *gcp.NODE_POOL.unread(node_pool.declared, f"node pool {name!r}"),
            ),
            unmodeled_gpus=(NO_DRIVER,) if driver == "INSTALLATION_DISABLED" else (),
            least_priority=_least_priority(node_pool),
            faults=tuple(refused_by_gke(node_pool, kinds if decided else frozenset(), resources)),
            shares_gpus=at(_accelerator(node_pool), "gpuSharingConfig") is not None,
            unknown_machine_types=machines.unknown_types,
            limits=limits,
            zones=zones,
            is_compact=True if at(node_pool.props, "placementPolicy", "type") == "COMPACT" else None,
            added_tolerations=_tolerations(node_pool, label, resources),
        ),
    )


def _capacity_types(node_pool: StackResource) -> tuple[frozenset[str], bool]:
    """Return the capacity types that its nodes may have, and whether it is known which of them they have."""
    affinity = text_at(node_pool.props, "nodeConfig", "reservationAffinity", "consumeReservationType")
    if affinity == "SPECIFIC_RESERVATION":
        return frozenset({RESERVED}), True
    queued = at(node_pool.props, "queuedProvisioning", "enabled")
    if queued is True or queued is UNKNOWN:
        return frozenset({_QUEUED} if queued is True else {ON_DEMAND, _QUEUED}), queued is True
    given = {field: at(node_pool.props, "nodeConfig", field) for field in _PREEMPTIBLE}
    certain = frozenset(_PREEMPTIBLE[field] for field, value in given.items() if value is True)
    if certain:
        return certain, True
    unknown = frozenset(_PREEMPTIBLE[field] for field, value in given.items() if value is UNKNOWN)
    return frozenset({ON_DEMAND}) | unknown, not unknown


def _least_priority(node_pool: StackResource) -> int | None:
    """Return the least priority of pods for which it gets its first nodes."""
    scaling = at(node_pool.props, "autoscaling")
    least = at(scaling, "minNodeCount") or at(scaling, "totalMinNodeCount")
    return None if scaling is None or least else LEAST_PRIORITY


def _machines(node_pool: StackResource) -> Machines:
    name = text_at(node_pool.props, "nodeConfig", "machineType")
    attached = items_at(node_pool.props, "nodeConfig", "guestAccelerators")
    if name is UNKNOWN or attached is UNKNOWN or UNKNOWN in attached:
        return Machines(capacities=UNKNOWN)
    machine = machine_catalogue("gcp").get(name or _DEFAULT_MACHINE_TYPE)
    if machine is None or not attached:
        return machines_named([name or _DEFAULT_MACHINE_TYPE], "gcp", Provisioner.GKE)
    kind, gpus = text_at(attached[0], "type"), count(at(attached[0], "count"))
    if not machine.gpus and isinstance(kind, str) and isinstance(gpus, int):
        if gpus not in attachable_to(machine).get(kind, ()):
            return Machines(capacities=(), unknown_types=(f"{machine.name} with {gpus} {kind}",))
        machine = with_attached(machine, kind, gpus)
    clients = _clients_of_a_gpu(node_pool)
    if clients is UNKNOWN or (not machine.gpus and UNKNOWN in (kind, gpus)):
        return Machines(capacities=UNKNOWN)
    shared = replace(machine, gpus=machine.gpus * clients)
    return Machines(capacities=(machine_capacity(shared, Provisioner.GKE),))


def _accelerator(node_pool: StackResource) -> Value:
    attached = items_at(node_pool.props, "nodeConfig", "guestAccelerators")
    return attached[0] if attached is not UNKNOWN and attached else None


def _clients_of_a_gpu(node_pool: StackResource) -> int | Unknown:
    """Return as how many GPUs its nodes list each: one for each partition, and for each client that may share it."""
    size = text_at(_accelerator(node_pool), "gpuPartitionSize")
    sharing = at(_accelerator(node_pool), "gpuSharingConfig")
    clients = 1 if sharing is None else whole_number(at(sharing, "maxSharedClientsPerGpu"))
    if size is UNKNOWN or not isinstance(clients, int):
        return UNKNOWN
    parts = _partitions(_accelerator_kind(node_pool), size) if size else 1
    return parts if parts is UNKNOWN else parts * clients


def _accelerator_kind(node_pool: StackResource) -> str:
    machine = machine_catalogue("gcp").get(str(at(node_pool.props, "nodeConfig", "machineType")))
    own = machine.accelerator if machine is not None else None
    return own or str(at(_accelerator(node_pool), "type"))


def _partitions(kind: str, size: str) -> int | Unknown:
    """Return into how many partitions of this size, such as `1g.10gb`, NVIDIA divides a GPU.

    It has seven compute units and eight memory units; a partition takes whole ones of both. (GKE's device plugin has the
    numbers as a table.)
    """
    named, whole = _PARTITION.fullmatch(size), _MEMORY_GB.get(kind)
    if named is None or whole is None:
        return UNKNOWN
    memory = max(1, round(_MEMORY_UNITS * int(named["memory"]) / whole))
    return min(_COMPUTE_UNITS // max(1, int(named["compute"])), _MEMORY_UNITS // memory)


def _labels(
    node_pool: StackResource, zones: frozenset[str] | Unknown, *, is_spot: bool
) -> Mapping[str, LabelFact] | Unknown:
    known = labels_at(node_pool.props, "nodeConfig", "labels")
    if known is UNKNOWN:
        return known
    spot = {GKE_SPOT: GKE_SPOT_VALUE, GKE_PROVISIONING: SPOT} if is_spot else {}
    sandbox = {_SANDBOX.key: _SANDBOX.value} if _is_sandboxed(node_pool) else {}
    zone = UNKNOWN if zones is UNKNOWN else LabelValues(values=zones)
    return {
        **known,
        **spot,
        **sandbox,
        ZONE: zone,
        **_sharing_labels(_accelerator(node_pool)),
        **_labels_of_settings(node_pool),
    }


def _labels_of_settings(node_pool: StackResource) -> Mapping[str, LabelFact]:
    """Return the labels by which pods select GKE's metadata server and the topology of TPUs."""
    mode = text_at(node_pool.props, "nodeConfig", "workloadMetadataConfig", "mode")
    served: Mapping[str | Unknown | None, LabelFact] = {"GKE_METADATA": "true", "GCE_METADATA": ABSENT}
    topology = text_at(node_pool.props, "placementPolicy", "tpuTopology")
    metadata = {_METADATA: served[mode]} if mode in served else {}
    return {**metadata, **({_TPU_TOPOLOGY: topology} if topology is not None else {})}


def _sharing_labels(accelerator: Value) -> Mapping[str, LabelFact]:
    """Return the labels by which jobs select partitions of GPUs, and GPUs that are shared."""
    sharing = at(accelerator, "gpuSharingConfig")
    strategy, clients = text_at(sharing, "gpuSharingStrategy"), count(at(sharing, "maxSharedClientsPerGpu"))
    found: Mapping[str, LabelFact | None] = {
        "cloud.google.com/gke-gpu-partition-size": text_at(accelerator, "gpuPartitionSize") or None,
        "cloud.google.com/gke-gpu-sharing-strategy": _STRATEGIES.get(strategy, UNKNOWN)
        if isinstance(strategy, str)
        else strategy,
        "cloud.google.com/gke-max-shared-clients-per-gpu": str(clients)
        if isinstance(clients, int)
        else clients,
    }
    return {key: value for key, value in found.items() if value is not None}


def _is_sandboxed(node_pool: StackResource) -> bool:
    return at(node_pool.props, "nodeConfig", "sandboxConfig") is not None


def _most_pods(node_pool: StackResource, resources: Sequence[StackResource]) -> int | Unknown | None:
    """Return how many pods a node of the pool may have: its own number, or that of its cluster."""
    own = whole_number(at(node_pool.props, "maxPodsPerNode"))
    if own is not None:
        return own
    of_clusters = [
        whole_number(at(cluster.props, "defaultMaxPodsPerNode"))
        for cluster in clusters_of(node_pool, "gcp", resources)
    ]
    return next((most for most in of_clusters if most is not None), None)


def _with_most_pods(
    most: int | Unknown | None, machines: tuple[MachineCapacity, ...] | Unknown
) -> tuple[MachineCapacity, ...] | Unknown:
    """Return the machines with this number of pods on a node; GKE's default is that of the table."""
    if machines is UNKNOWN or not isinstance(most, int):
        return machines
    return tuple(replace(machine, max_pods=most) for machine in machines)


def _taints(node_pool: StackResource, machines: Machines) -> tuple[Taint, ...] | Unknown:
    listed = items_at(node_pool.props, "nodeConfig", "taints")
    if listed is UNKNOWN or machines.capacities is UNKNOWN:
        return UNKNOWN
    known = known_taints([_taint(each) for each in listed])
    if known is UNKNOWN:
        return known
    # GKE taints nodes with GPUs by itself, unless the pool has a taint with that key.
    gpu = (GPU,) if machines.have_gpus and all(each.key != GPU.key for each in known) else ()
    behavior = at(node_pool.props, "nodeConfig", "taintConfig", "architectureTaintBehavior")
    is_arm = any(machine.labels.get(ARCH) == "arm64" for machine in machines.capacities)
    arm = (_ARM,) if is_arm and behavior != "NONE" else ()
    sandbox = (_SANDBOX,) if _is_sandboxed(node_pool) else ()
    return (*known, *gpu, *arm, *sandbox)


def _taint(value: Value) -> Taint | Unknown | None:
    taint = taint_of(value)
    return (
        replace(taint, effect=_EFFECTS.get(taint.effect, taint.effect)) if isinstance(taint, Taint) else taint
    )


def _tolerations(
    node_pool: StackResource, label: str | Unknown | None, resources: Sequence[StackResource]
) -> tuple[AddedToleration, ...] | Unknown:
    added = tolerations_for(label, resources)
    if added is UNKNOWN:
        return UNKNOWN
    compute_class = text_at(node_pool.props, "nodeConfig", "labels", COMPUTE_CLASS)
    # GKE adds a toleration to pods that select a ComputeClass.
    by_class = (
        (AddedToleration(toleration=Toleration(key=COMPUTE_CLASS)),) if isinstance(compute_class, str) else ()
    )
    return (*added, _GPU_TOLERATION, _ARM_TOLERATION, *by_class)
