"""The configuration of an AKS cluster: scaling, access, upgrades, maintenance, system nodes; or an existing one."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, ClassVar, Final, TypeAlias

from pydantic import BeforeValidator, Field

from pulumi_holdfast.azure.config.fields import (
    CLUSTER_NAME_ALLOWED,
    DISK_ENCRYPTION_SET_ALLOWED,
    OBJECT_ID_ALLOWED,
    REGISTRY_ALLOWED,
    RESOURCE_GROUP_ALLOWED,
    VM_SIZE_ALLOWED,
    WORKSPACE_ALLOWED,
    AksClusterName,
    DiskEncryptionSetId,
    DiskGib,
    ListedZones,
    ObjectId,
    RegistryId,
    ResourceGroup,
    VmSize,
    WorkspaceId,
)
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
    error_with_fix,
)

#: A Saturday before the first stack: AKS needs a start date for a window, and a relative one would be a difference in
#: every update.
_FROM: Final = "2026-01-03"

#: Channels of AKS that move to the next minor version, or that belong to nodeOs.
_OTHER_CHANNELS: Final = ("stable", "rapid", "node-image")


class ClusterChannel(StrEnum):
    """The automatic upgrades of Kubernetes."""

    NONE = "none"
    PATCH = "patch"


class NodeOsChannel(StrEnum):
    """How AKS keeps the nodes' operating system up to date; AKS's own values."""

    NONE = "None"
    UNMANAGED = "Unmanaged"
    SECURITY_PATCH = "SecurityPatch"
    NODE_IMAGE = "NodeImage"


def _cluster_channel(value: object) -> object:
    if value in _OTHER_CHANNELS:
        raise error_with_fix(
            "Write patch, and change `cluster.version` for the next minor version: after an automatic upgrade to it, the "
            "next `pulumi up` would try to downgrade, which AKS rejects. Write nodeOs for the nodes' images."
        )
    return value


class AzureUpgrades(Section):
    """Automatic upgrades in the maintenance window."""

    fixes: ClassVar[Mapping[str, str]] = {
        "version": "Write cluster.",
        "channel": "Write cluster, and nodeOs for the nodes' operating system.",
    }

    cluster: Annotated[ClusterChannel, BeforeValidator(_cluster_channel)] = Field(
        default=ClusterChannel.NONE,
        description="none or patch: the automatic upgrades of Kubernetes",
        examples=["patch"],
    )
    node_os: NodeOsChannel = Field(
        default=NodeOsChannel.SECURITY_PATCH,
        description="None, Unmanaged, SecurityPatch or NodeImage: how nodes get a newer operating system",
        examples=["SecurityPatch"],
    )


class AzureMaintenanceWindow(Section):
    """The weekly window for automatic upgrades."""

    fixes: ClassVar[Mapping[str, str]] = {"days": "Write day: AKS allows one window a week."}

    day: Weekday = Field(
        default=Weekday.SATURDAY, description="a day of the week, such as saturday", examples=["saturday"]
    )
    start: WindowStart = "02:00"
    hours: WindowHours = 8

    every_weeks: int = Field(
        default=1, ge=1, le=4, description="a whole number of weeks, 1 to 4", examples=["2"]
    )
    start_date: Day = Field(
        default=_FROM,
        description=f"{DATE_ALLOWED}: the first date of the window, and the start for everyWeeks",
        examples=[f'"{_FROM}"'],
    )


class AzureMaintenanceExclusion(Section):
    """Days without automatic upgrades."""

    fixes: ClassVar[Mapping[str, str]] = {"from": "Write start.", "until": "Write end.", "to": "Write end."}

    start: Day = Field(description=DATE_ALLOWED, examples=['"2026-12-20"'])
    end: Day = Field(description=f"{DATE_ALLOWED}: the last day", examples=['"2027-01-06"'])


class AzureMaintenance(Section):
    """When AKS upgrades the cluster and its nodes."""

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
    """How nodes scale: AKS's managed Karpenter, or one scale set for each pool. AKS does not allow both."""

    NAP = "nap"
    FIXED = "fixed"


class Login(StrEnum):
    """The credentials that kubelogin uses: the Azure CLI's, a federated token, or a service principal's secret."""

    AZURE_CLI = "azurecli"
    WORKLOAD_IDENTITY = "workloadidentity"
    SERVICE_PRINCIPAL = "spn"


class AzurePublicAccess(Section):
    """The API server at a public address."""

    cidrs: tuple[Cidr, ...] = Field(
        min_length=1,
        # AKS allows 200, including the egress addresses of the nodes.
        max_length=190,
        description=f"a list of 1 to 190 items, each {CIDR_ALLOWED}",
        examples=["[203.0.113.0/24]"],
    )


class AzureAccess(Section):
    """Access to the API server: at a public address or at a private one. Exactly one of the two."""

    fixes: ClassVar[Mapping[str, str]] = {
        "publicAccessCidrs": "Write `public: {cidrs: […]}`.",
        "authorizedNetworks": "Write `public: {cidrs: […]}`.",
        "authorizedIPRanges": "Write `public: {cidrs: […]}`.",
        "cidrs": "Write `public: {cidrs: […]}`.",
        "privateDnsZone": "Leave it out: AKS creates the zone. Write `publicName: true` to do without one.",
    }

    public: AzurePublicAccess | None = Field(
        default=None, description="a mapping of cidrs", examples=["{cidrs: [203.0.113.0/24]}"]
    )
    private: bool = Field(
        default=False, description="true for an API server with only a private address", examples=["true"]
    )
    public_name: bool = Field(
        default=False,
        description="true, together with private: true, for a public DNS name of the private address",
        examples=["true"],
    )


class AzureSystemNodes(Section):
    """The on-demand nodes of the cluster's services and the operators, which belong to no pool."""

    fixes: ClassVar[Mapping[str, str]] = {
        "machineType": "Write vmSize.",
        "instanceTypes": "Write vmSize, a single one: AKS's system pool is a scale set.",
        "vmSizes": "Write vmSize, a single one: AKS's system pool is a scale set.",
    }

    vm_size: VmSize = Field(
        default="Standard_D4ds_v5",
        description=f"{VM_SIZE_ALLOWED}, without GPUs",
        examples=["Standard_D4ds_v5"],
    )
    # AKS needs two nodes in a system pool, and so do the operators, which run two replicas.
    count: int = Field(default=2, ge=2, le=10, description="a whole number of nodes, 2 to 10", examples=["2"])
    zones: ListedZones = ()
    disk_gib: DiskGib = 128


_SCALING_ALLOWED: Final = (
    "nap, AKS's node auto-provisioning, or fixed, a scale set for each pool; a stack has no autoscaled "
    "scale sets beside node auto-provisioning"
)
_LOGIN_ALLOWED: Final = "azurecli, workloadidentity or spn: the credentials that kubelogin uses"


class AzureCluster(Section):
    """The control plane."""

    fixes: ClassVar[Mapping[str, str]] = {
        "kubeconfig": "Leave it out: the program gets a token from kubelogin whenever it needs one.",
        "publicAccessCidrs": "Write access: {public: {cidrs: […]}}.",
        "authorizedNetworks": "Write access: {public: {cidrs: […]}}.",
        "private": "Write access: {private: true}.",
        "serviceCidr": "Write servicesCidr under network.",
        "channel": "Write upgrades: {cluster: …}.",
        "autoscaling": "Write scaling: nap, or scaling: fixed.",
        "nodeProvisioning": "Write scaling: nap, or scaling: fixed.",
        "logs": "Write logWorkspace: ….",
        "localAccounts": "Leave it out: Entra ID controls access; the cluster has no local accounts.",
    }

    version: KubernetesVersion = versions.KUBERNETES
    scaling: Scaling = Field(default=Scaling.NAP, description=_SCALING_ALLOWED, examples=["nap"])
    access: AzureAccess = Field(
        description="a mapping of public or of private", examples=["{public: {cidrs: [203.0.113.0/24]}}"]
    )
    admins: tuple[ObjectId, ...] = Field(
        default=(),
        description=f"a list of administrators, each {OBJECT_ID_ALLOWED}",
        examples=["[00000000-0000-0000-0000-00000000000a]"],
    )
    login: Login = Field(default=Login.AZURE_CLI, description=_LOGIN_ALLOWED, examples=["azurecli"])
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
    log_workspace: WorkspaceId | None = Field(
        default=None,
        description=WORKSPACE_ALLOWED,
        examples=[
            "/subscriptions/…/resourceGroups/logs/providers/Microsoft.OperationalInsights/workspaces/platform"
        ],
    )
    registry: RegistryId | None = Field(
        default=None,
        description=REGISTRY_ALLOWED,
        examples=[
            "/subscriptions/…/resourceGroups/shared/providers/Microsoft.ContainerRegistry/registries/myregistry"
        ],
    )


class AzureExistingCluster(ExistingCluster):
    """An existing AKS cluster in the stack's subscription and location."""

    fixes: ClassVar[Mapping[str, str]] = fixes_beside_existing(
        AzureCluster, ("existing", "resourceGroup", "scaling", "login")
    )

    existing: AksClusterName = Field(description=CLUSTER_NAME_ALLOWED, examples=["shared"])
    resource_group: ResourceGroup = Field(description=RESOURCE_GROUP_ALLOWED, examples=["platform"])
    scaling: Scaling = Field(default=Scaling.NAP, description=_SCALING_ALLOWED, examples=["nap"])
    login: Login = Field(default=Login.AZURE_CLI, description=_LOGIN_ALLOWED, examples=["azurecli"])


def cluster_variant(value: object) -> type[AzureCluster] | type[AzureExistingCluster]:
    """The section for a value: an existing cluster if it names one."""
    return AzureExistingCluster if is_existing_cluster(value) else AzureCluster


AzureClusterConfig: TypeAlias = Annotated[AzureCluster | AzureExistingCluster, Variant(cluster_variant)]
