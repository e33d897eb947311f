"""The sections of a stack on Google Cloud: its document, and the project and the region beside it."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, ClassVar, Final, Literal, TypeAlias

from pydantic import AfterValidator, Field

from pulumi_holdfast.config.errors import setting_fix
from pulumi_holdfast.config.fields import (
    OR_OUTPUT,
    Allowed,
    Cidr,
    Day,
    DnsLabel,
    Duration,
    Section,
    Text,
    TextOrOutput,
    Variant,
    Weekday,
    WindowHours,
    WindowStart,
    error_with_fix,
    one_of_them,
)
from pulumi_holdfast.config.sections import (
    COMPACT_TEXT,
    POOLS_TEXT,
    PRICE_CAPS,
    RETAIN_TEXT,
    CloudDocument,
    ClusterSection,
    ExistingCluster,
    PoolSection,
    ReservationSection,
    RetainDays,
    network_of,
)
from pulumi_holdfast.config.storage import (
    STORAGE_FIELD,
    THROUGHPUT_TEXT,
    ZONE_TEXT,
    BucketName,
    VolumeSection,
)
from pulumi_holdfast.ladder.machines import Machine, machine_catalogue, regions, with_attached
from pulumi_holdfast.ladder.pools import Pool

#: The keys under which a stack names its project and region: the GCP provider's own, so that no second ones can differ.
PROJECT: Final = "gcp:project"
REGION: Final = "gcp:region"

_NAME: Final = r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?"
_PROJECT: Final = r"[a-z][-a-z0-9.:]{4,61}[a-z0-9]"
_KEY_PART: Final = r"[A-Za-z0-9_-]{1,63}"
_KEY: Final = re.compile(
    rf"projects/{_PROJECT}/locations/[a-z0-9-]+/keyRings/{_KEY_PART}/cryptoKeys/{_KEY_PART}", re.ASCII
)
_LINK: Final = re.compile(r"https://[a-z.]+/compute/[a-z0-9]+/")
_A_MONDAY: Final = datetime(2026, 1, 5, tzinfo=UTC)


def _project(project: str) -> str:
    if re.fullmatch(r"[0-9]+", project, re.ASCII):
        raise error_with_fix(
            f"Write the id of this project number from `gcloud projects describe {project}`."
        )
    if not re.fullmatch(r"[a-z][a-z0-9-]{4,28}[a-z0-9]", project, re.ASCII):
        raise error_with_fix("Write the id from `gcloud projects list`, not the name.")
    return project


def _region(region: str) -> str:
    if region not in regions("gcp"):
        zoneless = re.sub(r"-[a-z]$", "", region)
        raise error_with_fix(setting_fix(REGION, zoneless, regions("gcp"), "us-central1"))
    return region


def _key(text: str) -> str:
    without_version = re.sub(r"/cryptoKeyVersions/[0-9]+$", "", text)
    if without_version != text and _KEY.fullmatch(without_version):
        raise error_with_fix(f'Write the key without its version, which rotates: "{without_version}".')
    if not _KEY.fullmatch(text):
        raise error_with_fix("Write the name from `gcloud kms keys list --keyring RING --location REGION`.")
    return text


def _linked(prefix: str, command: str, suffix: str = "") -> AfterValidator:
    """The name of a resource of Compute Engine: a link to it is corrected to its path."""
    shape = re.compile(rf"({prefix})?{_NAME}{suffix}", re.ASCII)

    def check(text: str) -> str:
        path = _LINK.sub("", text)
        if path != text and shape.fullmatch(path):
            raise error_with_fix(f'Write "{path}".')
        if not shape.fullmatch(text):
            raise error_with_fix(
                f"Write one that `gcloud compute {command} list --format='value(name)'` prints."
            )
        return text

    return AfterValidator(check)


MachineType = Annotated[
    str,
    one_of_them(
        "a GKE node pool has one machine type. If it is often out of capacity, list more zones, or add a pool for each type and a "
        "tier for each pool."
    ),
    Allowed("one machine type of Compute Engine", "a2-highgpu-8g"),
]
Zone = Annotated[
    str,
    Text(
        "a zone, such as us-central1-a",
        "us-central1-a",
        r"[a-z]+-[a-z]+[0-9]+-[a-z]",
        "Write a region, a hyphen and the letter of one of its zones, such as us-central1-a.",
    ),
]
KeyName = Annotated[
    TextOrOutput,
    AfterValidator(_key),
    Allowed(
        "the name of a key: projects/…/locations/…/keyRings/…/cryptoKeys/…",
        "projects/my-project/locations/us-central1/keyRings/holdfast/cryptoKeys/gke",
    ),
    OR_OUTPUT,
]
GkeClusterName = Annotated[
    str,
    Text(
        "the name of a GKE cluster in the stack's project and region",
        "shared",
        r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?",
        "Write one that `gcloud container clusters list --format='value(name)'` prints.",
    ),
]
NetworkName = Annotated[
    TextOrOutput,
    _linked(rf"projects/{_PROJECT}/global/networks/", "networks"),
    Allowed("the name of a network, or projects/…/global/networks/… of another project", "shared"),
    OR_OUTPUT,
]
SubnetworkName = Annotated[
    TextOrOutput,
    _linked(rf"projects/{_PROJECT}/regions/[a-z0-9-]+/subnetworks/", "networks subnets"),
    Allowed("the name of a subnetwork, or projects/…/regions/…/subnetworks/… of another project", "training"),
    OR_OUTPUT,
]
RangeName = Annotated[
    str,
    Text(
        "the name of a secondary range of the subnetwork",
        "pods",
        _NAME,
        "Write one from `gcloud compute networks subnets describe`.",
    ),
]
ReservationName = Annotated[
    str,
    _linked(rf"projects/{_PROJECT}/reservations/", "reservations", rf"(/reservationBlocks/{_NAME})?"),
    Allowed(
        "the name of a specifically targeted reservation, or projects/…/reservations/… with, if needed, /reservationBlocks/…",
        "h100",
    ),
]


class MaintenanceWindow(Section):
    """The weekly maintenance window."""

    days: tuple[Weekday, ...] = Field(
        default=(Weekday.SATURDAY, Weekday.SUNDAY),
        min_length=1,
        max_length=7,
        description="days of the week",
        examples=["[saturday, sunday]"],
    )
    start: WindowStart = Field(default="02:00", description="the start, in UTC")
    hours: WindowHours = Field(
        default=8, description="the length; at least 12 hours a week together, as GKE requires"
    )

    @property
    def recurrence(self) -> str:
        """The recurrence rule, as in RFC 5545."""
        return f"FREQ=WEEKLY;BYDAY={','.join(day.short for day in self._in_order())}"

    @property
    def first(self) -> tuple[str, str]:
        """Start and end of the first window, in UTC; a fixed date, so that updates do not change it."""
        hours, minutes = (int(part) for part in self.start.split(":"))
        begin = _A_MONDAY + timedelta(days=self._in_order()[0].number, hours=hours, minutes=minutes)
        return _spelled(begin), _spelled(begin + timedelta(hours=self.hours))

    def _in_order(self) -> list[Weekday]:
        return sorted(self.days, key=lambda day: day.number)


def _spelled(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


class MaintenanceExclusion(Section):
    """Days on which GKE upgrades neither the minor version nor nodes."""

    start: Day = Field(description="the first day")
    end: Day | None = Field(
        default=None, description="the end, before the end of the version's support, which is the default"
    )


class GcpMaintenance(Section):
    """When GKE upgrades the cluster and its nodes."""

    window: MaintenanceWindow = Field(default_factory=MaintenanceWindow, description="when GKE may upgrade")
    exclusions: tuple[MaintenanceExclusion, ...] = Field(
        default=(),
        max_length=1,
        description="days on which GKE upgrades neither the minor version nor nodes",
        examples=['[{start: "2026-12-01"}]'],
    )


class Channel(StrEnum):
    """GKE's release channels."""

    RAPID = "rapid"
    REGULAR = "regular"
    STABLE = "stable"
    EXTENDED = "extended"


class DnsEndpoint(Section):
    """The DNS-based endpoint of the API server, reachable wherever Google's APIs are; IAM controls access."""

    # GKE has no DNS-based endpoint for a single network: `false` closes it to every client.
    allow_external: bool = Field(
        default=False,
        description="`true` confirms that the endpoint is open to the whole internet, protected only by IAM",
    )


class GcpAccess(Section):
    """Access to the API server: by DNS name or at an address. Exactly one of the two."""

    fixes: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("publicAccessCidrs", "privateAccessCidrs"), "Write authorizedNetworks."
    )

    dns_endpoint: DnsEndpoint | None = Field(
        default=None,
        description="`{allowExternal: true}`: a DNS name that is reachable from the internet; or",
        examples=["{allowExternal: true}"],
    )
    authorized_networks: tuple[Cidr, ...] | None = Field(
        default=None, min_length=1, max_length=100, description="the CIDRs that may reach the address"
    )


class GcpSystemNodes(Section):
    """The on-demand nodes of the cluster's services, operators and Ray heads, which belong to no pool."""

    machine_type: MachineType = Field(
        default="e2-standard-4", description="without GPUs", examples=["e2-standard-4"]
    )
    per_zone: int = Field(default=1, ge=1, le=10, description="nodes in each zone")
    # Pods that name no pool run here too. Without spare nodes a Ray head could stay pending forever.
    spare_per_zone: int = Field(default=2, ge=0, le=10, description="nodes by which the pool scales up")


_LOCATION_TEXT: Final = "the region, the default, for a control plane in three zones, or one of its zones"
_STREAMING_TEXT: Final = (
    "containers start while their images are still being pulled from Artifact Registry; needs the API "
    "`containerfilesystem.googleapis.com`"
)


class GcpCluster(ClusterSection):
    """The control plane."""

    fixes: ClassVar[Mapping[str, str]] = {
        "kubeconfig": "Leave it out: the program gets a token from gke-gcloud-auth-plugin whenever it needs one.",
        **dict.fromkeys(
            ("publicAccessCidrs", "privateAccessCidrs"), "Write access: {authorizedNetworks: […]}."
        ),
        "admins": "Leave it out: IAM controls who administers a cluster (roles/container.admin).",
    }

    channel: Channel = Field(
        default=Channel.REGULAR,
        description="the release channel, which must offer the version in this location, and brings patches and later versions",
    )
    location: str | None = Field(default=None, description=_LOCATION_TEXT, examples=["us-central1"])
    zones: tuple[Zone, ...] | None = Field(
        default=None,
        min_length=1,
        description="the zones of the system nodes and of pools without `zones`; by default the first three by name, for a zonal control "
        "plane its zone",
        examples=["[us-central1-a, us-central1-b, us-central1-c]"],
    )
    maintenance: GcpMaintenance = Field(
        default_factory=GcpMaintenance,
        description="when GKE may upgrade",
        examples=['{exclusions: [{start: "2026-12-01"}]}'],
    )
    access: GcpAccess = Field(
        description="what may reach the API server ([Google Cloud](#gcp-only), [Azure](#azure-only))",
        examples=["{authorizedNetworks: [203.0.113.0/24]}"],
    )
    system_nodes: GcpSystemNodes = Field(
        default_factory=GcpSystemNodes,
        description="on-demand machines for GKE's services, the operators and Ray heads; not tainted, so pods without selectors may run "
        "here too",
        examples=["{perZone: 1}"],
    )
    image_streaming: bool = Field(default=True, description=_STREAMING_TEXT)
    secrets_key: KeyName | None = Field(
        default=None,
        description="the name of a key in the region that encrypts the cluster's secrets, by default Google's",
    )


class GcpExistingCluster(ExistingCluster):
    """An existing GKE cluster in the stack's project and region."""

    existing: GkeClusterName = Field(
        description="an existing cluster that the stack uses instead of a new one ([existing clusters](existing-clusters.md))"
    )
    location: str | None = Field(default=None, description=_LOCATION_TEXT, examples=["us-central1"])
    image_streaming: bool = Field(default=True, description=_STREAMING_TEXT)


class GcpNewNetwork(Section):
    """A new network for the stack: one subnetwork, with ranges for pods and Services."""

    cidr: Cidr = Field(default="10.40.0.0/20", description="a private block for nodes")
    pods_cidr: Cidr = Field(
        default="10.44.0.0/14", description="a private block for pods: each node takes a /24"
    )
    services_cidr: Cidr = Field(
        default="10.40.16.0/20", description="a private block for Services, /16 to /27"
    )


class GcpExistingNetwork(Section):
    """An existing subnetwork. The stack changes nothing in it."""

    otherwise: ClassVar[str] = (
        "Leave it out: an existing network has its own; without network and subnetwork the stack creates one."
    )

    network: NetworkName = Field(
        description="an existing network, which the stack does not change; it has private Google access and a way to the internet"
    )
    subnetwork: SubnetworkName = Field(description="the subnetwork of the existing network")
    pods_range: RangeName = Field(description="the name of the subnetwork's secondary range for pods")
    services_range: RangeName = Field(
        description="the name of the subnetwork's secondary range for Services", examples=["services"]
    )


class GcpClusterNetwork(Section):
    """The network of an existing cluster."""


GcpNetworkConfig: TypeAlias = Annotated[
    GcpNewNetwork | GcpExistingNetwork | GcpClusterNetwork,
    Variant(("network", "subnetwork", "podsRange", "servicesRange"), GcpExistingNetwork, GcpNewNetwork),
]

#: Seconds until a preempted Spot VM stops.
ShutdownSeconds: TypeAlias = Literal[0, 30, 120]


class Upgrades(StrEnum):
    """How GKE replaces the nodes of a pool in an upgrade."""

    SURGE = "surge"
    BLUE_GREEN = "blue-green"


class GcpAccelerator(Section):
    """GPUs attached to a machine type without GPUs."""

    type: str = Field(description="a kind of GPU of Compute Engine", examples=["nvidia-tesla-t4"])
    count: int = Field(ge=1, le=8, description="how many")


class GcpReservation(ReservationSection):
    """A specifically targeted reservation of Compute Engine, or one block of it."""

    name: ReservationName = Field(
        description="the name of a specifically targeted reservation of Compute Engine, or of a block of it"
    )


_QUEUED: Final = (
    "Leave it out: queued provisioning needs a ProvisioningRequest for each job, which Kueue makes, and jobs that Kueue "
    "manages follow no ladder. Without it, flexStart waits until machines are available."
)


class GcpFlexStart(Section):
    """Machines of the Dynamic Workload Scheduler: GKE waits for them, and keeps them for a limited time."""

    fixes: ClassVar[Mapping[str, str]] = dict.fromkeys(("queued", "queuedProvisioning"), _QUEUED)

    max_run_duration: Duration = Field(
        default=timedelta(days=7),
        description="how long a machine runs at most, 10m to 168h",
        examples=["168h"],
    )


class GcpPool(PoolSection):
    """Machines of one type and one capacity type."""

    fixes: ClassVar[Mapping[str, str]] = {
        **PoolSection.fixes,
        **dict.fromkeys(
            ("instanceTypes", "machineTypes", "families", "sizes"),
            "Write machineType, one for each pool: a GKE node pool has one machine type.",
        ),
        **dict.fromkeys(
            PRICE_CAPS,
            "Leave it out: Compute Engine has no bids, so GKE has no field that holds a price cap. A Spot VM has a list price; a "
            "tier's procurementTimeout moves jobs if there is no capacity.",
        ),
        "queuedProvisioning": _QUEUED,
    }

    machine_type: MachineType = Field(
        description="one type: a GKE node pool has exactly one. For scarce machines use more zones or more tiers"
    )
    accelerator: GcpAccelerator | None = Field(
        default=None,
        description="GPUs for machines of the `n1` series; by default the machine's own",
        examples=["{type: nvidia-tesla-t4, count: 1}"],
    )
    zones: tuple[Zone, ...] | None = Field(
        default=None,
        min_length=1,
        description="the zones of the pool's machines; by default the cluster's; all of them must offer the machine type",
    )
    compact_placement: bool = Field(default=False, description=COMPACT_TEXT)
    upgrades: Upgrades = Field(
        default=Upgrades.SURGE,
        description="`surge`: one node after another without extra nodes, for scarce machines. `blue-green`: a second set of nodes. Not "
        "with `compactPlacement`. In both cases GKE evicts after an hour, regardless of disruption budgets",
    )
    graceful_shutdown_seconds: ShutdownSeconds | None = Field(
        default=None,
        description="on spot pools, the shutdown time of a preempted node, 30 by default; system pods use 5 of the 30, 10 of the 120",
        examples=["30"],
    )
    reservation: GcpReservation | None = Field(
        default=None, description="on reserved pools", examples=['{name: h100, ends: "2026-12-08T11:30:00Z"}']
    )
    flex_start: GcpFlexStart | None = Field(
        default=None,
        description="on reserved pools with GPUs: machines of the Dynamic Workload Scheduler, for 10 minutes to 7 days. GKE does not "
        "repair them. Queued provisioning is rejected: it needs Kueue, whose jobs follow no ladder",
        examples=["{maxRunDuration: 168h}"],
    )
    disk_gib: int = Field(
        default=100,
        alias="diskGiB",
        ge=30,
        le=65536,
        description="the size of the machines' disk, which is encrypted",
    )
    compute_class: DnsLabel | None = Field(
        default=None,
        description="the name of a [ComputeClass](#gcp-only) that jobs select",
        examples=["any-a100"],
    )

    @property
    def shutdown_seconds(self) -> ShutdownSeconds:
        """The graceful shutdown time of a preempted node, in seconds; 30 by default."""
        return 30 if self.graceful_shutdown_seconds is None else self.graceful_shutdown_seconds

    def machine(self) -> Machine | None:
        """The pool's machine, with the GPUs that are attached to it; None if it is unknown.

        Raises ValueError for GPUs that it does not support, which validation rejects.
        """
        machine = machine_catalogue("gcp").get(self.machine_type)
        if machine is None or self.accelerator is None:
            return machine
        return with_attached(machine, self.accelerator.type, self.accelerator.count)

    def as_pool(self) -> Pool:
        """The pool for the rules in `scheduling`."""
        machine = self.machine()
        return self.pool_of(() if machine is None else (machine,), self.reservation)


class Recovery(StrEnum):
    """How overwritten and deleted checkpoints are kept."""

    SOFT_DELETE = "soft-delete"
    VERSIONING = "versioning"


class GcpCheckpoints(Section):
    """The Cloud Storage bucket for checkpoints, in the stack's region."""

    fixes: ClassVar[Mapping[str, str]] = {"versioning": "Write recovery: versioning."}
    otherwise: ClassVar[str] = "Leave it out: the stack creates the bucket, and names it."

    retain_days: RetainDays = Field(default=30, description=RETAIN_TEXT)
    recovery: Recovery = Field(
        default=Recovery.SOFT_DELETE,
        description="how they are kept: soft delete, for 7 to 90 days, or `versioning`, for any time ([ADR "
        "0009](adr/0009-checkpoints-on-google-cloud.md))",
    )
    hierarchical: bool = Field(
        default=False,
        description="a hierarchical namespace with atomic folder renames; not with versioning. It cannot change later: the bucket would "
        "be replaced, and a preflight check rejects it",
    )
    kms_key: KeyName | None = Field(
        default=None, description="the name of a key in the region; by default Google's keys encrypt"
    )


class GcpVolume(VolumeSection):
    """A volume of data on Google Cloud."""

    existing: BucketName | None = Field(
        default=None,
        description="of a `bucket` volume, a bucket that there is already; by default the stack creates one",
    )
    zone: Zone | None = Field(default=None, description=ZONE_TEXT)
    throughput: Literal[125, 250, 500, 1000] = Field(default=1000, description=THROUGHPUT_TEXT)


class GcpPlatform(CloudDocument):
    """A stack on Google Cloud: its document, project and region."""

    fixes: ClassVar[Mapping[str, str]] = {
        "project": "Write gcp:project beside holdfast:platform, where the GCP provider reads it.",
        "region": "Write gcp:region beside holdfast:platform, where the GCP provider reads it.",
        "environment": "Leave it out: the names of the jobs' identities contain the stack's name.",
        "resourcePools": "Write pools.",
    }

    cloud: Literal["gcp"] = Field(description="the cloud; it determines which of the fields below exist")
    project: Annotated[
        str,
        AfterValidator(_project),
        Allowed("the id of a project: 6 to 30 lower-case letters, digits and hyphens", "my-project"),
    ] = Field(alias=PROJECT, description="the id of the project, which `gcloud projects list` shows")
    region: Annotated[
        str, AfterValidator(_region), Allowed("a region from `gcloud compute regions list`", "us-central1")
    ] = Field(alias=REGION, description="the region of the stack")
    cluster: Annotated[
        GcpCluster | GcpExistingCluster, Variant(("existing",), GcpExistingCluster, GcpCluster)
    ] = Field(
        description="the control plane ([below](#cluster))",
        examples=["{access: {authorizedNetworks: [203.0.113.0/24]}}"],
    )
    network: GcpNetworkConfig = Field(
        default_factory=network_of(GcpNewNetwork, GcpClusterNetwork),
        description="the network ([below](#network))",
        examples=["{cidr: 10.40.0.0/20, podsCidr: 10.44.0.0/14}"],
    )
    pools: tuple[GcpPool, ...] = Field(
        description=POOLS_TEXT,
        examples=[
            "[{name: cpu, capacity: on-demand, machineType: n2-standard-4, maxNodes: 20, default: true}]"
        ],
    )
    checkpoints: GcpCheckpoints = Field(
        default_factory=GcpCheckpoints,
        description="the store of checkpoints ([below](#checkpoints))",
        examples=["{retainDays: 30}"],
    )
    storage: Annotated[tuple[GcpVolume, ...], STORAGE_FIELD] = ()  # pyright: ignore[reportIncompatibleVariableOverride] - the model is frozen

    @property
    def location(self) -> str:
        """The location of the control plane: a region or a zone."""
        return self.cluster.location or self.region

    @property
    def existing_cluster(self) -> str | None:
        """The name of the existing cluster; None if the stack creates one."""
        return self.cluster.existing if isinstance(self.cluster, GcpExistingCluster) else None

    def system_machines(self) -> tuple[Machine, ...]:
        """The machine type of the system nodes; none for an existing cluster."""
        if isinstance(self.cluster, GcpExistingCluster):
            return ()
        return (machine_catalogue("gcp")[self.cluster.system_nodes.machine_type],)

    def classes(self) -> Mapping[str, tuple[Pool, ...]]:
        """The pools of each ComputeClass by its name, in the order in which GKE tries them."""
        names = dict.fromkeys(pool.compute_class for pool in self.pools if pool.compute_class is not None)
        return {
            name: tuple(pool.as_pool() for pool in self.pools if pool.compute_class == name) for name in names
        }

    def scheduling_pools(self) -> tuple[Pool, ...]:
        """The pools for the rules in `scheduling`, in their order."""
        return tuple(pool.as_pool() for pool in self.pools)
