"""Compares a stack's demand with the quotas of a Google Cloud project and their use by others.

Which quota a machine counts against is read from the project: a family of machines or GPUs has a quota of its own, or is a
dimension of one for all families.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from pulumi_holdfast.config.loader import PLATFORM
from pulumi_holdfast.config.naming import gke_cluster_name
from pulumi_holdfast.config.preflight import Demand, QuotaUse, Usage, quota_use
from pulumi_holdfast.gcp.config.sections import GcpCluster, GcpExistingCluster, Upgrades
from pulumi_holdfast.gcp.control_plane.system_nodes import SystemNodesArgs
from pulumi_holdfast.ladder.json import mapping, sequence
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.machines import Machine, boot_disk_of, machine_catalogue, with_attached, zones_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pulumi_holdfast.config.preflight import Runner
    from pulumi_holdfast.gcp.config.sections import GcpPlatform
    from pulumi_holdfast.ladder.json import Json, JsonValue


@dataclass(frozen=True, order=True)
class Quota:
    """A quota of Compute Engine by its id in the Cloud Quotas API, and its dimension beside the region."""

    id: str
    dimension: tuple[str, str] | None = None

    @property
    def name(self) -> str:
        """The id, with the value of the dimension."""
        return self.id if self.dimension is None else f"{self.id} ({self.dimension[1]})"


@dataclass(frozen=True, kw_only=True)
class QuotaRow:
    """One value of a quota, for some dimensions and locations; -1 is no limit."""

    id: str
    dimensions: Mapping[str, str] = field(default_factory=dict[str, str])
    locations: tuple[str, ...] = ()
    value: int = 0


Granted: TypeAlias = Mapping[Quota, float]

_REGION: Final = "region"
_EVERYWHERE: Final = "global"


def granted_in(region: str, rows: Iterable[QuotaRow]) -> Granted:
    """The granted value of each quota in a region; a value for the region takes precedence over one for all."""
    found: dict[Quota, float] = {}
    for row in sorted(rows, key=lambda row: _REGION in row.dimensions):
        others = [pair for pair in row.dimensions.items() if pair[0] != _REGION]
        here = row.dimensions.get(_REGION, region) == region
        applies = not row.locations or not {region, _EVERYWHERE}.isdisjoint(row.locations)
        if here and applies and len(others) <= 1:
            found[Quota(row.id, others[0] if others else None)] = inf if row.value < 0 else row.value
    return found


#: Families with one quota together.
_SHARED: Final = ("E2", "N1")
#: Families of GPU machines: Compute Engine requires quota for their GPUs only.
_GPU_FAMILIES: Final = ("A2", "A3", "A4", "G2", "G4")
_DISKS: Final = {
    "pd-balanced": Quota("SSD-TOTAL-GB-per-project-region"),
    "hyperdisk-balanced": Quota("HDB-TOTAL-GB-per-project-region"),
}
#: The part of a quota's id, by accelerator.
_GPUS: Final = {
    "nvidia-tesla-t4": "T4",
    "nvidia-tesla-p4": "P4",
    "nvidia-tesla-p100": "P100",
    "nvidia-tesla-v100": "V100",
    "nvidia-tesla-a100": "A100",
    "nvidia-a100-80gb": "A100-80GB",
    "nvidia-h100-80gb": "H100",
    "nvidia-h100-mega-80gb": "H100-MEGA",
    "nvidia-h200-141gb": "H200",
    "nvidia-b200": "B200",
    "nvidia-l4": "L4",
    "nvidia-rtx-pro-6000": "RTX-PRO-6000",
}
_ALL_CPUS: Final = Quota("CPUS-ALL-REGIONS-per-project")
_ALL_GPUS: Final = Quota("GPUS-ALL-REGIONS-per-project")
_SPOT_CPUS: Final = Quota("PREEMPTIBLE-CPUS-per-project-region")


@dataclass(frozen=True, kw_only=True)
class Take:
    """How much one machine uses of one quota: of the first of `quotas` that the project has."""

    quotas: tuple[Quota, ...]
    unit: str
    amount: int
    #: Not every project lists it.
    is_optional: bool = False


def takes_of(machine: Machine, capacity: CapacityType, disk_gib: int) -> Iterator[Take]:
    """How much a machine uses of the quotas for CPUs, GPUs and boot disks."""
    family = machine.name.partition("-")[0].upper()
    is_spot = capacity is CapacityType.SPOT
    if family not in _GPU_FAMILIES:
        own = (
            [Quota("CPUS-per-project-region")]
            if family in _SHARED
            else [
                Quota(f"{family}-CPUS-per-project-region"),
                Quota("CPUS-PER-VM-FAMILY-per-project-region", ("vm_family", family)),
            ]
        )
        yield Take(quotas=tuple([_SPOT_CPUS, *own] if is_spot else own), unit="vCPUs", amount=machine.vcpus)
        yield Take(quotas=(_ALL_CPUS,), unit="vCPUs", amount=machine.vcpus, is_optional=True)
    if machine.accelerator is not None:
        gpu = _GPUS[machine.accelerator]
        own = [
            Quota(f"NVIDIA-{gpu}-GPUS-per-project-region"),
            Quota(
                "GPUS-PER-GPU-FAMILY-per-project-region", ("gpu_family", f"NVIDIA_{gpu.replace('-', '_')}")
            ),
        ]
        spot = Quota(f"PREEMPTIBLE-NVIDIA-{gpu}-GPUS-per-project-region")
        yield Take(quotas=tuple([spot, *own] if is_spot else own), unit="GPUs", amount=machine.gpus)
        yield Take(quotas=(_ALL_GPUS,), unit="GPUs", amount=machine.gpus, is_optional=True)
    if disk_gib:
        yield Take(quotas=(_DISKS[boot_disk_of(machine)],), unit="GB", amount=disk_gib)


def _quota_of(take: Take, granted: Granted) -> Quota | None:
    """The quota that a machine counts against; None for an optional one that the project does not list."""
    listed = [quota for quota in take.quotas if quota in granted]
    usable = next((quota for quota in listed if granted[quota]), None)
    return usable or next(iter(listed), None if take.is_optional else take.quotas[0])


def quota_uses(
    platform: GcpPlatform,
    zones: Sequence[str],
    granted: Granted | None,
    *,
    used: Mapping[Quota, float] | None = None,
    reason: str = "",
) -> tuple[QuotaUse, ...]:
    """The use of each quota by the pools and by the system nodes in `zones`.

    `granted` is None if the caller may not query it; `reason` says why. `used` is the use by others, None if unknown.
    """
    found: dict[Quota, list[Demand]] = defaultdict(list)
    units: dict[Quota, str] = {}
    for take, demand in _demands(platform, len(zones)):
        quota = _quota_of(take, granted or {})
        if quota is not None:
            found[quota].append(demand)
            units[quota] = take.unit
    return tuple(
        quota_use(
            quota.name,
            units[quota],
            demands,
            _usage(quota, granted, used, reason),
            increase=_increase(platform, quota),
        )
        for quota, demands in found.items()
    )


def _usage(quota: Quota, granted: Granted | None, used: Mapping[Quota, float] | None, reason: str) -> Usage:
    if granted is None:
        return Usage(reason=reason)
    if quota not in granted:
        return Usage(reason="the project lists no such quota.")
    is_disk = quota in _DISKS.values()
    return Usage(granted=granted[quota], used=None if used is None or is_disk else used.get(quota, 0))


def _demands(platform: GcpPlatform, zones: int) -> Iterator[tuple[Take, Demand]]:
    cluster, at = platform.cluster, f"{PLATFORM}.cluster.systemNodes"
    if not isinstance(cluster, GcpExistingCluster):
        system = cluster.system_nodes
        (machine,) = platform.system_machines()
        for take in takes_of(machine, CapacityType.ON_DEMAND, SystemNodesArgs.disk_gib):
            most = take.amount * (system.per_zone + system.spare_per_zone) * zones
            yield take, Demand(field=at, asked=most, least=take.amount * system.per_zone * zones)
    for index, pool in enumerate(platform.pools):
        machine = pool.machine()
        sets = 2 if pool.upgrades is Upgrades.BLUE_GREEN else 1
        for take in () if machine is None else takes_of(machine, pool.capacity, pool.disk_gib):
            most = take.amount * pool.max_nodes * sets
            yield take, Demand(field=f"{PLATFORM}.pools[{index}]", asked=most, least=take.amount)


def used_by(machines: Iterable[tuple[Machine, CapacityType]], granted: Granted) -> Mapping[Quota, float]:
    """How much machines use of each quota for CPUs and GPUs."""
    found: dict[Quota, float] = defaultdict(float)
    for machine, capacity in machines:
        for take in takes_of(machine, capacity, 0):
            quota = _quota_of(take, granted)
            if quota is not None:
                found[quota] += take.amount
    return found


def _increase(platform: GcpPlatform, quota: Quota) -> str:
    dimensions = [] if quota in (_ALL_CPUS, _ALL_GPUS) else [f"{_REGION}={platform.region}"]
    dimensions += [] if quota.dimension is None else ["=".join(quota.dimension)]
    return (
        f"gcloud beta quotas preferences create --service compute.googleapis.com --project {platform.project} "
        f"--quota-id {quota.id} --preferred-value {{}}"
        + (f" --dimensions {','.join(dimensions)}" if dimensions else "")
    )


#: GKE's default number of zones for a regional cluster.
_ZONES_OF_A_REGION: Final = 3


def zones_of_cluster(platform: GcpPlatform, available: Sequence[str] | None) -> tuple[str, ...]:
    """The zones of the system nodes, and of pools without zones.

    Those of the configuration; otherwise that of a zonal control plane; otherwise the first three, by name, of the
    region's `available` zones, with None for the known ones.
    """
    cluster = platform.cluster
    if isinstance(cluster, GcpCluster) and cluster.zones is not None:
        return cluster.zones
    if platform.location != platform.region:
        return (platform.location,)
    there = zones_of(platform.region) if available is None else available
    return tuple(there[:_ZONES_OF_A_REGION])


#: The label that GKE gives the machines of a cluster.
_CLUSTER: Final = "goog-k8s-cluster-name"


def project_quota_uses(platform: GcpPlatform, stack: str, runner: Runner) -> tuple[QuotaUse, ...]:
    """Each quota that machines and boot disks of the stack count against.

    A query that fails, such as one without permission, leaves its values unknown.
    """
    zones = zones_of_cluster(platform, None)
    of_project = ("--project", platform.project, "--format", "json")
    answer = runner(
        ("gcloud", "beta", "quotas", "info", "list", "--service", "compute.googleapis.com", *of_project)
    )
    if answer.code != 0:
        reason = " ".join((answer.errors or answer.output).split())
        return quota_uses(platform, zones, None, reason=reason)
    granted = granted_in(platform.region, _rows(_listed(answer.output)))
    answer = runner(
        (
            *("gcloud", "compute", "instances", "list", *of_project),
            *("--filter", f"status=RUNNING AND NOT labels.{_CLUSTER}={gke_cluster_name(stack)}"),
        )
    )
    others = _machines(_listed(answer.output), platform.region) if answer.code == 0 else None
    return quota_uses(platform, zones, granted, used=None if others is None else used_by(others, granted))


def _listed(output: str) -> Iterator[Json]:
    return (mapping(each) for each in sequence(cast("JsonValue", json.loads(output or "[]"))))


def _rows(infos: Iterable[Json]) -> Iterator[QuotaRow]:
    for info in infos:
        for each in map(mapping, sequence(info.get("dimensionsInfos"))):
            yield QuotaRow(
                id=str(info.get("quotaId")),
                dimensions={name: str(value) for name, value in mapping(each.get("dimensions")).items()},
                locations=tuple(str(place) for place in sequence(each.get("applicableLocations"))),
                # JSON of Google's APIs has whole numbers as text, and leaves 0 out.
                value=int(str(mapping(each.get("details")).get("value") or 0)),
            )


def _machines(instances: Iterable[Json], region: str) -> Iterator[tuple[Machine, CapacityType]]:
    """The known machine types of instances in a region."""
    catalogue = machine_catalogue("gcp")
    for instance in instances:
        machine = catalogue.get(_last_part(instance.get("machineType")))
        if machine is None or not _last_part(instance.get("zone")).startswith(f"{region}-"):
            continue
        for attached in map(mapping, sequence(instance.get("guestAccelerators"))):
            # Machine types with GPUs of their own list these, too.
            if not machine.gpus:
                kind, count = (
                    _last_part(attached.get("acceleratorType")),
                    int(str(attached.get("acceleratorCount"))),
                )
                machine = _with(machine, kind, count)
        is_spot = mapping(instance.get("scheduling")).get("preemptible") is True
        yield machine, CapacityType.SPOT if is_spot else CapacityType.ON_DEMAND


def _with(machine: Machine, kind: str, count: int) -> Machine:
    try:
        return with_attached(machine, kind, count)
    except ValueError:
        # GPUs that no pool of this program can have, such as those of virtual workstations.
        return machine


def _last_part(url: JsonValue) -> str:
    return str(url).rpartition("/")[2]
