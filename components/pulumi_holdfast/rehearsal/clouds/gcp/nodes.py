"""The nodes of a node pool: labels, taints, capacity, and what the cloud reserves of it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Final, Literal, TypeAlias

from pulumi_holdfast.ladder import machines
from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.ladder.labels import ARCH, GPU_RESOURCE, INSTANCE_TYPE, OS, ZONE
from pulumi_holdfast.ladder.quantities import parse_quantity
from pulumi_holdfast.rehearsal.clouds.machines import (
    REGION,
    SPOT_PRICE,
    NodeTemplate,
    node_taint,
    stepped,
    whole_number,
)
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, Inventory

_GIB: Final = 1024
# (Up to so many cores, millicores reserved of each).
_CPU_STEPS: Final = ((1, 60), (2, 10), (4, 5), (None, Fraction(5, 2)))
# (Up to so many GiB, share reserved).
_MEMORY_STEPS: Final = (
    (4, Fraction(25, 100)),
    (8, Fraction(20, 100)),
    (16, Fraction(10, 100)),
    (128, Fraction(6, 100)),
    (None, Fraction(2, 100)),
)
# The kubelet's eviction threshold.
_MEMORY_EVICTION_MIB: Final = 100
# Of shared-core machines.
_SHARED_CORE_MILLICORES: Final = 1060
_SHARED_CORE: Final = frozenset({"e2-micro", "e2-small", "e2-medium"})


def allocatable(machine_type: str, capacity: Mapping[str, str]) -> dict[str, str]:
    """Return the allocatable resources of a capacity, by GKE's documentation (`plan-node-sizes`).

    The requests of the pods that GKE runs on each node are not simulated.
    """
    cores = int(capacity["cpu"])
    memory = int(parse_quantity(capacity["memory"]) / 1024**2)
    disk = int(parse_quantity(capacity["ephemeral-storage"]) / 1024**3)
    kept = _SHARED_CORE_MILLICORES if machine_type in _SHARED_CORE else ceil(stepped(cores, _CPU_STEPS))
    return {
        **capacity,
        "cpu": f"{cores * 1000 - kept}m",
        "memory": f"{memory - ceil(stepped(memory, _in_mib(_MEMORY_STEPS))) - _MEMORY_EVICTION_MIB}Mi",
        "ephemeral-storage": f"{disk - _disk_kept(disk)}Gi",
    }


def _in_mib(steps: tuple[tuple[int | None, Fraction], ...]) -> tuple[tuple[int | None, Fraction], ...]:
    return tuple((upto and upto * _GIB, share) for upto, share in steps)


def _disk_kept(gib: int) -> int:
    """Return the eviction threshold (a tenth) and the system's part (the least of three)."""
    system = min(Fraction(gib, 2), 6 + Fraction(35 * gib, 100), Fraction(100))
    return ceil(Fraction(gib, 10) + system)


# GKE's defaults.
_DEFAULT_TYPE: Final = "e2-medium"
_DEFAULT_DISK_GIB: Final = 100
_DEFAULT_PODS: Final = 110
# The default machine, for unknown types.
_SMALLEST: Final = machines.Machine(
    name=_DEFAULT_TYPE, vcpus=2, memory_mib=4096, gpus=0, hourly_price=0.03350571
)


def type_name(config: Json) -> str:
    """Return the machine type of a node configuration."""
    return str(config.get("machineType") or _DEFAULT_TYPE)


def machine_of(config: Json) -> machines.Machine:
    """Return the machine of a node configuration, the default for an unknown type."""
    return machines.machine_catalogue("gcp").get(type_name(config), _SMALLEST)


def accelerator_of(config: Json) -> tuple[str, int]:
    """Return the GPU type and the number of GPUs of a machine; "" and 0 without."""
    for each in map(mapping, sequence(config.get("guestAccelerators"))):
        if count := whole_number(each.get("count")):
            return str(each.get("type") or ""), count
    machine = machine_of(config)
    return machine.accelerator or "", machine.gpus


def capacity_of(config: Json, *, pods: int | None = None) -> Mapping[str, str]:
    """Return the capacity of a machine, by resource; `pods` is the maximum number of pods."""
    machine = machine_of(config)
    _, gpus = accelerator_of(config)
    return {
        "cpu": str(machine.vcpus),
        "memory": f"{machine.memory_mib}Mi",
        "ephemeral-storage": f"{whole_number(config.get('diskSizeGb')) or _DEFAULT_DISK_GIB}Gi",
        "pods": str(pods or _DEFAULT_PODS),
        **({GPU_RESOURCE: str(gpus)} if gpus else {}),
    }


CLUSTER: Final = "gcp:container/cluster:Cluster"
NODE_POOL: Final = "gcp:container/nodePool:NodePool"
#: The fields of the nodes of a cluster or pool that cannot change in place.
IMMUTABLE_NODE_FIELDS: Final = frozenset(
    f"nodeConfig.{name}"
    for name in (
        "ephemeralStorageConfig",
        "ephemeralStorageLocalSsdConfig",
        "flexStart",
        "guestAccelerators",
        "localNvmeSsdBlockConfig",
        "localSsdCount",
        "metadata",
        "minCpuPlatform",
        "oauthScopes",
        "preemptible",
        "reservationAffinity",
        "secondaryBootDisks",
        "serviceAccount",
        "shieldedInstanceConfig",
        "spot",
    )
)
_ZONE: Final = re.compile(r"^(?P<region>[a-z]+-[a-z]+\d+)-[a-z]$")
# The default number of zones of a regional cluster.
_ZONES: Final = 3


def cluster_name(pool: CloudObject) -> str:
    """Return the name of a pool's cluster, which the input gives as a path or a name."""
    return str(pool.outputs.get("cluster") or "").rpartition("/")[2]


def cluster_of(pool: CloudObject, inventory: Inventory) -> CloudObject | None:
    """Return a pool's cluster, None where it is not in the state."""
    named = [one for one in inventory.of_type(CLUSTER) if one.outputs.get("name") == cluster_name(pool)]
    here = [one for one in named if one.outputs.get("location") in (None, pool.outputs.get("location"))]
    return next(iter(here or named), None)


def zones_of(pool: CloudObject, inventory: Inventory) -> tuple[str, ...]:
    """Return a pool's zones: its own, its cluster's, or those of the location."""
    cluster = cluster_of(pool, inventory)
    own = sequence(pool.outputs.get("nodeLocations"))
    shared = sequence(cluster.outputs.get("nodeLocations")) if cluster else ()
    location = str(pool.outputs.get("location") or (cluster.outputs.get("location") if cluster else "") or "")
    home = (location,) if _ZONE.match(location) else ()
    # The node locations of a zonal cluster do not include its own zone.
    named = tuple(str(zone) for zone in own) or (*home, *(str(zone) for zone in shared if zone not in home))
    return named or machines.zones_of(location)[:_ZONES]


def region_of(zone: str) -> str:
    """Return the region of a zone."""
    match = _ZONE.match(zone)
    return match["region"] if match else zone


def node_config(pool: CloudObject) -> Json:
    """Return a pool's node configuration, with GKE's additions."""
    return {**mapping(pool.inputs.get("nodeConfig")), **mapping(pool.outputs.get("nodeConfig"))}


LocationPolicy: TypeAlias = Literal["ANY", "BALANCED"]

GKE: Final = "cloud.google.com"
PROVISIONING: Final = f"{GKE}/gke-provisioning"


@dataclass(frozen=True, kw_only=True)
class InstanceGroupTemplate(NodeTemplate):
    """The nodes of one pool, in an instance group for each zone."""

    project: str
    location_policy: LocationPolicy

    @property
    def spreads(self) -> bool:
        """Whether the zone with the fewest nodes gets the next."""
        return self.location_policy == "BALANCED"

    def labels_in(self, zone: str) -> Mapping[str, str]:
        """Return the labels of the pool's nodes in a zone, except the hostname."""
        return {**self.labels, ZONE: zone, REGION: region_of(zone), "topology.gke.io/zone": zone}

    def provider_id(self, name: str, zone: str, /) -> str:
        """Return project, zone and name of a machine."""
        return f"gce://{self.project}/{zone}/{name}"


def template_of(pool: CloudObject, inventory: Inventory) -> InstanceGroupTemplate:
    """Return the template of a pool's nodes."""
    config = node_config(pool)
    zones = zones_of(pool, inventory)
    capacity = capacity_of(config, pods=whole_number(pool.outputs.get("maxPodsPerNode")))
    scaling = mapping(pool.inputs.get("autoscaling"))
    minimum = _limit(scaling, "Min", len(zones))
    fixed = whole_number(pool.inputs.get("nodeCount")) or whole_number(pool.inputs.get("initialNodeCount"))
    initial = max(fixed * len(zones), minimum)
    return InstanceGroupTemplate(
        name=pool_name(pool),
        project=project_of(pool),
        zones=zones,
        labels=_labels(pool, config),
        taints=_taints(config),
        capacity=capacity,
        allocatable=allocatable(type_name(config), capacity),
        initial=initial,
        minimum=minimum if scaling else initial,
        maximum=_limit(scaling, "Max", len(zones)) if scaling else initial,
        is_autoscaled=bool(scaling),
        location_policy="ANY" if scaling.get("locationPolicy") == "ANY" else "BALANCED",
        is_spot=bool(config.get("spot")),
        hourly_price=machine_of(config).hourly_price * (SPOT_PRICE if config.get("spot") else 1),
    )


def project_of(pool: CloudObject) -> str:
    """Return the project of a pool."""
    return str(pool.outputs.get("project") or "rehearsal")


def pool_name(pool: CloudObject) -> str:
    """Return the name of a pool."""
    return str(pool.outputs.get("name") or pool.id.rpartition("/")[2])


def _limit(scaling: Json, which: Literal["Min", "Max"], zones: int) -> int:
    """Return a limit of the whole pool, which the input may give per zone."""
    total = scaling.get(f"total{which}NodeCount")
    each = whole_number(scaling.get(f"{which.lower()}NodeCount"))
    return each * zones if total is None else whole_number(total)


def _labels(pool: CloudObject, config: Json) -> Mapping[str, str]:
    """Return GKE's labels and the pool's own."""
    machine = machine_of(config)
    accelerator, gpus = accelerator_of(config)
    metadata_server = mapping(config.get("workloadMetadataConfig")).get("mode") == "GKE_METADATA"
    return {
        ARCH: machine.arch,
        OS: "linux",
        INSTANCE_TYPE: type_name(config),
        f"{GKE}/gke-nodepool": pool_name(pool),
        f"{GKE}/machine-family": type_name(config).partition("-")[0],
        f"{GKE}/gke-boot-disk": str(config.get("diskType") or "pd-balanced"),
        f"{GKE}/gke-container-runtime": "containerd",
        f"{GKE}/gke-os-distribution": "cos",
        PROVISIONING: _provisioning(config),
        **({f"{GKE}/gke-spot": "true"} if config.get("spot") else {}),
        **({f"{GKE}/gke-preemptible": "true"} if config.get("preemptible") else {}),
        **({f"{GKE}/gke-accelerator": accelerator} if gpus and accelerator else {}),
        **({"iam.gke.io/gke-metadata-server-enabled": "true"} if metadata_server else {}),
        **{key: str(value) for key, value in mapping(config.get("labels")).items()},
    }


def _provisioning(config: Json) -> str:
    return "spot" if config.get("spot") else "preemptible" if config.get("preemptible") else "standard"


def _taints(config: Json) -> tuple[Json, ...]:
    """Return the effective taints of a pool, in the format of a node."""
    given = config.get("effectiveTaints") or config.get("taints")
    return tuple(node_taint(mapping(each)) for each in sequence(given))
