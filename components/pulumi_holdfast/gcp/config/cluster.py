"""The configuration of a GKE cluster: version, access, maintenance, system nodes; or an existing one."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, ClassVar, Final, TypeAlias

from pydantic import Field

from pulumi_holdfast.config import versions
from pulumi_holdfast.config.base import Section, Variant
from pulumi_holdfast.config.existing import ExistingCluster, fixes_beside_existing, is_existing_cluster
from pulumi_holdfast.config.fields import (
    CIDR_ALLOWED,
    DATE_ALLOWED,
    Cidr,
    Day,
    KubernetesVersion,
    Weekday,
    WindowHours,
    WindowStart,
)
from pulumi_holdfast.gcp.config.fields import (
    CLUSTER_NAME_ALLOWED,
    KEY_ALLOWED,
    MACHINE_ALLOWED,
    ZONE_ALLOWED,
    GkeClusterName,
    KeyName,
    MachineType,
    Zone,
)

_A_MONDAY: Final = datetime(2026, 1, 5, tzinfo=UTC)


class MaintenanceWindow(Section):
    """The weekly maintenance window."""

    days: tuple[Weekday, ...] = Field(
        default=(Weekday.SATURDAY, Weekday.SUNDAY),
        min_length=1,
        max_length=7,
        description="a list of days of the week, such as saturday",
        examples=["[saturday, sunday]"],
    )
    start: WindowStart = "02:00"
    hours: WindowHours = 8

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


class MaintenanceExclusion(Section):
    """Days on which GKE upgrades neither the minor version nor nodes."""

    fixes: ClassVar[Mapping[str, str]] = {"from": "Write start.", "until": "Write end.", "to": "Write end."}

    start: Day = Field(description=DATE_ALLOWED, examples=['"2026-12-01"'])
    end: Day | None = Field(
        default=None,
        description=f"{DATE_ALLOWED}: the end, before the end of the version's support",
        examples=['"2027-06-30"'],
    )


class GcpMaintenance(Section):
    """When GKE upgrades the cluster and its nodes."""

    window: MaintenanceWindow = Field(
        default_factory=MaintenanceWindow,
        description="a mapping of days, start and hours",
        examples=['{days: [saturday, sunday], start: "02:00", hours: 8}'],
    )
    exclusion: MaintenanceExclusion | None = Field(
        default=None, description="a mapping of start and end", examples=['{start: "2026-12-01"}']
    )


def _spelled(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


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
        description="true, which opens the endpoint to the whole internet, protected only by IAM",
        examples=["true"],
    )


class GcpAccess(Section):
    """Access to the API server: by DNS name or at an address. Exactly one of the two."""

    fixes: ClassVar[Mapping[str, str]] = {
        "publicAccessCidrs": "Write authorizedNetworks.",
        "privateAccessCidrs": "Write authorizedNetworks, with the blocks of your own networks.",
    }

    dns_endpoint: DnsEndpoint | None = Field(
        default=None, description="a mapping of allowExternal", examples=["{allowExternal: true}"]
    )
    authorized_networks: tuple[Cidr, ...] | None = Field(
        default=None,
        min_length=1,
        max_length=100,
        description=f"a list of 1 to 100 items, each {CIDR_ALLOWED}",
        examples=["[203.0.113.0/24]"],
    )


class GcpSystemNodes(Section):
    """The on-demand nodes of the cluster's services, operators and Ray heads, which belong to no pool."""

    machine_type: MachineType = Field(
        default="e2-standard-4", description=f"{MACHINE_ALLOWED}, without GPUs", examples=["e2-standard-4"]
    )
    per_zone: int = Field(
        default=1, ge=1, le=10, description="a whole number of nodes, 1 to 10", examples=["1"]
    )
    # Pods that name no pool run here too. Without spare nodes a Ray head could stay pending forever.
    spare_per_zone: int = Field(
        default=2, ge=0, le=10, description="a whole number of nodes, 0 to 10", examples=["2"]
    )


_LOCATION_ALLOWED: Final = "the stack's region, for a control plane in three zones, or one of its zones"
_IMAGE_STREAMING_ALLOWED: Final = "true to start containers while their images are still being pulled from Artifact Registry, false otherwise"


class GcpCluster(Section):
    """The control plane."""

    fixes: ClassVar[Mapping[str, str]] = {
        "kubeconfig": "Leave it out: the program gets a token from gke-gcloud-auth-plugin whenever it needs one.",
        "region": "Write gcp:region beside holdfast:platform; write location for a cluster in one zone.",
        "zone": "Write location.",
        "publicAccessCidrs": "Write access: {authorizedNetworks: […]}.",
        "privateAccessCidrs": "Write access: {authorizedNetworks: […]}.",
        "admins": "Leave it out: IAM controls who administers a cluster (roles/container.admin).",
        "serviceCidr": "Write servicesCidr under network.",
        "minMasterVersion": "Write version.",
    }

    version: KubernetesVersion = versions.KUBERNETES
    channel: Channel = Field(
        default=Channel.REGULAR,
        description="rapid, regular, stable or extended, one of the four",
        examples=["regular"],
    )
    location: str | None = Field(default=None, description=_LOCATION_ALLOWED, examples=["us-central1"])
    zones: tuple[Zone, ...] | None = Field(
        default=None,
        min_length=1,
        description=f"a list of one item or more, each {ZONE_ALLOWED}",
        examples=["[us-central1-a, us-central1-b, us-central1-c]"],
    )
    maintenance: GcpMaintenance = Field(
        default_factory=GcpMaintenance,
        description="a mapping of window and exclusion",
        examples=['{exclusion: {start: "2026-12-01"}}'],
    )
    access: GcpAccess = Field(
        description="a mapping of dnsEndpoint or of authorizedNetworks",
        examples=["{authorizedNetworks: [203.0.113.0/24]}"],
    )
    system_nodes: GcpSystemNodes = Field(
        default_factory=GcpSystemNodes,
        description="a mapping of machineType, perZone and sparePerZone",
        examples=["{perZone: 1}"],
    )
    image_streaming: bool = Field(default=True, description=_IMAGE_STREAMING_ALLOWED, examples=["false"])
    database_key: KeyName | None = Field(
        default=None,
        description=KEY_ALLOWED,
        examples=["projects/my-project/locations/us-central1/keyRings/holdfast/cryptoKeys/gke"],
    )


class GcpExistingCluster(ExistingCluster):
    """An existing GKE cluster in the stack's project and region."""

    fixes: ClassVar[Mapping[str, str]] = fixes_beside_existing(
        GcpCluster, ("existing", "location", "imageStreaming")
    )

    existing: GkeClusterName = Field(description=CLUSTER_NAME_ALLOWED, examples=["shared"])
    location: str | None = Field(default=None, description=_LOCATION_ALLOWED, examples=["us-central1"])
    image_streaming: bool = Field(default=True, description=_IMAGE_STREAMING_ALLOWED, examples=["false"])


def cluster_variant(value: object) -> type[GcpCluster] | type[GcpExistingCluster]:
    """The section for a value: an existing cluster if it names one."""
    return GcpExistingCluster if is_existing_cluster(value) else GcpCluster


GcpClusterConfig: TypeAlias = Annotated[GcpCluster | GcpExistingCluster, Variant(cluster_variant)]
