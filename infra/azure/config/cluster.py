"""An AKS cluster's configuration: how it scales, who reaches it, when it is upgraded, what its operators run on."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, ClassVar, Final

from pydantic import BeforeValidator, Field

from holdfast.infra import versions
from holdfast.infra.azure.config.fields import (
    DISK_ENCRYPTION_SET_ALLOWED,
    OBJECT_ID_ALLOWED,
    VM_SIZE_ALLOWED,
    ZONE_ALLOWED,
    DiskEncryptionSetId,
    ObjectId,
    VmSize,
    Zone,
)
from holdfast.infra.config.base import Section
from holdfast.infra.config.fields import (
    CIDR_ALLOWED,
    DATE_ALLOWED,
    TIME_ALLOWED,
    Cidr,
    Day,
    TimeOfDay,
    Weekday,
    error_with_fix,
)

#: A Saturday on which there was no stack yet: AKS wants a day from which on a window holds, and one that moved would be a
#: difference at every update.
_FROM: Final = "2026-01-03"

#: Channels of AKS that go on to the next minor version, or that stand for nodeOs.
_OTHER_CHANNELS: Final = ("stable", "rapid", "node-image")


class ClusterChannel(StrEnum):
    """Which versions of Kubernetes come by themselves."""

    NONE = "none"
    PATCH = "patch"


class NodeOsChannel(StrEnum):
    """How the nodes' operating system is kept up to date, as AKS spells it."""

    NONE = "None"
    UNMANAGED = "Unmanaged"
    SECURITY_PATCH = "SecurityPatch"
    NODE_IMAGE = "NodeImage"


def _cluster_channel(value: object) -> object:
    if value in _OTHER_CHANNELS:
        raise error_with_fix(
            "Write patch, and another `cluster.version` when you want it: where a channel had gone on to the next minor version, "
            "the next `pulumi up` would go back, which AKS refuses. The nodes' images are nodeOs."
        )
    return value


class AzureUpgrades(Section):
    """What AKS upgrades of its own accord, in the window."""

    fixes: ClassVar[Mapping[str, str]] = {
        "version": "Write cluster.",
        "channel": "Write cluster, and nodeOs for the nodes' operating system.",
    }

    cluster: Annotated[ClusterChannel, BeforeValidator(_cluster_channel)] = Field(
        default=ClusterChannel.NONE,
        description="none or patch: which versions of Kubernetes come by themselves",
        examples=["patch"],
    )
    node_os: NodeOsChannel = Field(
        default=NodeOsChannel.SECURITY_PATCH,
        description="None, Unmanaged, SecurityPatch or NodeImage: how nodes get a newer operating system",
        examples=["SecurityPatch"],
    )


class AzureMaintenanceWindow(Section):
    """When AKS may upgrade: one stretch of hours in a week."""

    fixes: ClassVar[Mapping[str, str]] = {"days": "Write day: AKS takes one stretch of hours a week."}

    day: Weekday = Field(
        default=Weekday.SATURDAY, description="a day of the week, such as saturday", examples=["saturday"]
    )
    start: TimeOfDay = Field(default="02:00", description=TIME_ALLOWED, examples=['"02:00"'])
    hours: int = Field(default=8, ge=4, le=24, description="a whole number of hours, 4 to 24", examples=["8"])

    every_weeks: int = Field(
        default=1, ge=1, le=4, description="a whole number of weeks, 1 to 4", examples=["2"]
    )
    start_date: Day = Field(
        default=_FROM,
        description=f"{DATE_ALLOWED}: one from which on it holds, and from which everyWeeks counts",
        examples=[f'"{_FROM}"'],
    )


class AzureMaintenanceExclusion(Section):
    """Days on which AKS upgrades nothing of its own accord."""

    fixes: ClassVar[Mapping[str, str]] = {"from": "Write start.", "until": "Write end.", "to": "Write end."}

    start: Day = Field(description=DATE_ALLOWED, examples=['"2026-12-20"'])
    end: Day = Field(description=f"{DATE_ALLOWED}, the last of them", examples=['"2027-01-06"'])


class AzureMaintenance(Section):
    """When the cluster and its nodes are upgraded, and when not."""

    fixes: ClassVar[Mapping[str, str]] = {"exclusion": "Write exclusions, a list."}

    window: AzureMaintenanceWindow = Field(
        default_factory=AzureMaintenanceWindow,
        description="a mapping of day, start, hours, everyWeeks and startDate",
        examples=['{day: saturday, start: "02:00", hours: 8}'],
    )
    exclusions: tuple[AzureMaintenanceExclusion, ...] = Field(
        default=(),
        description="a list of days without upgrades, each a mapping of start and end",
        examples=['[{start: "2026-12-20", end: "2027-01-06"}]'],
    )


class Scaling(StrEnum):
    """Who makes nodes: AKS's own Karpenter, or one scale set for each pool. Never both: AKS refuses it."""

    NAP = "nap"
    FIXED = "fixed"


class Login(StrEnum):
    """Whose credentials kubelogin shows: the Azure CLI's, a federated token's, or a service principal's secret."""

    AZURE_CLI = "azurecli"
    WORKLOAD_IDENTITY = "workloadidentity"
    SERVICE_PRINCIPAL = "spn"


class AzurePublicAccess(Section):
    """The API server at a public address."""

    cidrs: tuple[Cidr, ...] = Field(
        min_length=1,
        # AKS takes 200, those from which the nodes call among them.
        max_length=190,
        description=f"a list of 1 to 190 items, each {CIDR_ALLOWED}",
        examples=["[203.0.113.0/24]"],
    )


class AzureAccess(Section):
    """From where the API server is reached: at a public address, or at a private one. One of the two."""

    fixes: ClassVar[Mapping[str, str]] = {
        "publicAccessCidrs": "Write `public: {cidrs: […]}`.",
        "authorizedNetworks": "Write `public: {cidrs: […]}`.",
        "authorizedIPRanges": "Write `public: {cidrs: […]}`.",
        "cidrs": "Write `public: {cidrs: […]}`.",
        "privateDnsZone": "Leave it out: AKS makes the zone. Write `publicName: true` to need none.",
    }

    public: AzurePublicAccess | None = Field(
        default=None, description="a mapping of cidrs", examples=["{cidrs: [203.0.113.0/24]}"]
    )
    private: bool = Field(
        default=False,
        description="true for an API server with a private address alone, else nothing",
        examples=["true"],
    )
    public_name: bool = Field(
        default=False,
        description="true beside private: true, for a name that everybody can look up; it leads to the private address",
        examples=["true"],
    )


class AzureSystemNodes(Section):
    """The on-demand machines of the cluster's services and of the operators, beside all pools."""

    fixes: ClassVar[Mapping[str, str]] = {
        "machineType": "Write vmSize.",
        "instanceTypes": "Write vmSize, one: AKS's system pool is a scale set.",
        "vmSizes": "Write vmSize, one: AKS's system pool is a scale set.",
    }

    vm_size: VmSize = Field(
        default="Standard_D4ds_v5",
        description=f"{VM_SIZE_ALLOWED}, without GPUs",
        examples=["Standard_D4ds_v5"],
    )
    # AKS wants two in a system pool, and so do the operators, one of which must be there while the other moves.
    count: int = Field(default=2, ge=2, le=10, description="a whole number of nodes, 2 to 10", examples=["2"])
    zones: tuple[Zone, ...] = Field(
        default=(), description=f"a list of items, each {ZONE_ALLOWED}", examples=["[1, 2, 3]"]
    )
    disk_gib: int = Field(
        default=128,
        alias="diskGiB",
        ge=30,
        le=2048,
        description="a whole number of GiB, 30 to 2048",
        examples=["128"],
    )


class AzureCluster(Section):
    """The control plane."""

    fixes: ClassVar[Mapping[str, str]] = {
        "kubeconfig": "Leave it out: the program asks kubelogin for a token whenever it needs one.",
        "publicAccessCidrs": "Write access: {public: {cidrs: […]}}.",
        "authorizedNetworks": "Write access: {public: {cidrs: […]}}.",
        "private": "Write access: {private: true}.",
        "serviceCidr": "Write servicesCidr under network.",
        "channel": "Write upgrades: {cluster: …}.",
        "autoscaling": "Write scaling: nap, or scaling: fixed.",
        "nodeProvisioning": "Write scaling: nap, or scaling: fixed.",
        "localAccounts": "Leave it out: there are none, Entra ID says who gets in.",
    }

    version: str = Field(
        default=versions.KUBERNETES,
        description=f'a Kubernetes version in quotes, "{versions.KUBERNETES}" or later',
        examples=[f'"{versions.KUBERNETES}"'],
    )
    scaling: Scaling = Field(
        default=Scaling.NAP,
        description="nap, AKS's node auto-provisioning, or fixed, a scale set for each pool; AKS takes no autoscaled "
        "scale sets beside node auto-provisioning",
        examples=["nap"],
    )
    access: AzureAccess = Field(
        description="a mapping of public or of private",
        examples=["{public: {cidrs: [203.0.113.0/24]}}"],
    )
    admins: tuple[ObjectId, ...] = Field(
        default=(),
        description=f"a list of administrators, each {OBJECT_ID_ALLOWED}",
        examples=["[00000000-0000-0000-0000-00000000000a]"],
    )
    login: Login = Field(
        default=Login.AZURE_CLI,
        description="azurecli, workloadidentity or spn: whose credentials kubelogin shows",
        examples=["azurecli"],
    )
    maintenance: AzureMaintenance = Field(
        default_factory=AzureMaintenance,
        description="a mapping of window and exclusions",
        examples=['{window: {day: saturday, start: "02:00", hours: 8}}'],
    )
    upgrades: AzureUpgrades = Field(
        default_factory=AzureUpgrades,
        description="a mapping of cluster and nodeOs",
        examples=["{cluster: patch, nodeOs: SecurityPatch}"],
    )
    system_nodes: AzureSystemNodes = Field(
        default_factory=AzureSystemNodes,
        description="a mapping of vmSize, count, zones and diskGiB",
        examples=["{count: 2}"],
    )
    disk_encryption_set: DiskEncryptionSetId | None = Field(
        default=None,
        description=DISK_ENCRYPTION_SET_ALLOWED,
        examples=[
            "/subscriptions/…/resourceGroups/keys/providers/Microsoft.Compute/diskEncryptionSets/holdfast"
        ],
    )
