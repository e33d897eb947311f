"""The sections of a stack on Azure: its document, and the location, the subscription and the tenant beside it."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, ClassVar, Final, Literal, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator

from pulumi_holdfast.config.errors import setting_fix
from pulumi_holdfast.config.fields import (
    OR_OUTPUT,
    Allowed,
    Cidr,
    Day,
    Section,
    Text,
    TextOrOutput,
    Variant,
    Weekday,
    WindowHours,
    WindowStart,
    error_with_fix,
)
from pulumi_holdfast.config.sections import (
    POOLS_TEXT,
    RETAIN_TEXT,
    ROLL_OUT_TEXT,
    CloudDocument,
    ClusterSection,
    ExistingCluster,
    PoolSection,
    ReservationSection,
    network_of,
)
from pulumi_holdfast.config.storage import STORAGE_FIELD, THROUGHPUT_TEXT, ZONE_TEXT, VolumeSection
from pulumi_holdfast.ladder.machines import Machine, machine_catalogue, regions, select_vm_sizes, zones_of
from pulumi_holdfast.ladder.pools import Pool

#: Room for 1024 nodes with a /24 each. AKS's default has room for 256, including surge nodes.
PODS_CIDR: Final = "10.244.0.0/14"
SERVICES_CIDR: Final = "172.20.0.0/16"

#: The keys of the Azure provider, so that there are no second values.
LOCATION: Final = "azure-native:location"
SUBSCRIPTION: Final = "azure-native:subscriptionId"
TENANT: Final = "azure-native:tenantId"

_BLOB_ZONE: Final = "privatelink.blob.core.windows.net"
_NAME: Final = r"[\w().-]{1,90}"
_GUID: Final = r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_AZURE_ID: Final = "/subscriptions/…/resourceGroups/…/providers/Microsoft."


def _location(location: str) -> str:
    if location not in regions("azure"):
        # The portal shows "East US 2". Azure accepts that too, but not in the zone of a node or a NodePool.
        meant = re.sub(r"[^a-z0-9]", "", location.lower())
        raise error_with_fix(setting_fix(LOCATION, meant, regions("azure"), "eastus2"))
    return location


def _guid(what: str, command: str) -> Text:
    allowed = f"the id of {what}, a GUID; or nothing, for that of the credentials"
    return Text(allowed, "", _GUID, f"Write the id from `{command}`, not the name; or leave it out.")


def _object_id(text: str) -> str:
    if re.fullmatch(_GUID, text, re.ASCII) is None:
        raise error_with_fix(
            "Write the output of `az ad group show --group NAME --query id`, `az ad user show --id NAME --query id` or "
            "`az ad sp show --id APPLICATION --query id`."
        )
    return text.lower()


def _zone(value: object) -> str:
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    of_label = re.fullmatch(r"[a-z0-9]+-([1-3])", text, re.ASCII)
    if of_label:
        raise error_with_fix(f"Write {of_label[1]}: a stack has one location.")
    if text not in {"1", "2", "3"}:
        raise error_with_fix("Write the number of a zone of the location, such as 1.")
    return text


def _resource(what: str, kind: str, command: str) -> Text:
    """A resource's id: Azure accepts its fixed parts in any case, and returns its own case."""
    path = "/".join(_NAME if part == "*" else re.escape(part) for part in kind.split("/"))
    return Text(
        f"the id of {what}: {_AZURE_ID}{kind.replace('*', '…')}",
        f"{_AZURE_ID}{kind.replace('*', 'holdfast')}",
        rf"/subscriptions/{_GUID}/resourceGroups/{_NAME}/providers/Microsoft\.{path}",
        f"Write the output of `az {command} --query id`.",
        re.IGNORECASE,
    )


ObjectId = Annotated[
    TextOrOutput,
    AfterValidator(_object_id),
    Allowed(
        "the object id of a group, a user or a service principal in Entra ID, a GUID",
        "00000000-0000-0000-0000-00000000000a",
    ),
    OR_OUTPUT,
]
Zone = Annotated[
    str, PlainValidator(_zone, json_schema_input_type=int | str), Allowed("a zone: 1, 2 or 3", "1")
]
VmSize = Annotated[str, Allowed("one VM size, such as Standard_D4ds_v5", "Standard_D4ds_v5")]
DiskGib = Annotated[int, Field(ge=30, le=2048)]
IdentityId = Annotated[
    TextOrOutput,
    _resource(
        "a managed identity",
        "ManagedIdentity/userAssignedIdentities/*",
        "identity show --resource-group GROUP --name NAME",
    ),
    OR_OUTPUT,
]
KeyUrl = Annotated[
    str,
    Text(
        "the URL of a key without a version: https://VAULT.vault.azure.net/keys/KEY, or of a managed HSM",
        "https://my-keys.vault.azure.net/keys/checkpoints",
        r"https://[a-zA-Z][a-zA-Z0-9-]{2,23}\.(vault|managedhsm)\.azure\.net/keys/[a-zA-Z0-9-]{1,127}",
        "Write the output of `az keyvault key show --vault-name VAULT --name KEY --query key.kid`, without the version.",
    ),
]
AksClusterName = Annotated[
    str,
    Text(
        "the name of an AKS cluster in resourceGroup",
        "shared",
        r"[0-9A-Za-z]([0-9A-Za-z_-]{0,61}[0-9A-Za-z])?",
        "Write one that `az aks list --query [].name` prints.",
    ),
]
ResourceGroup = Annotated[
    str,
    Text(
        "the name of a resource group",
        "platform",
        r"[\w().-]{0,89}[\w()-]",
        "Write one that `az aks list --query [].resourceGroup` prints.",
    ),
]
SubnetId = Annotated[
    TextOrOutput,
    _resource(
        "a subnet",
        "Network/virtualNetworks/*/subnets/*",
        "network vnet subnet show --resource-group GROUP --vnet-name NETWORK --name SUBNET",
    ),
    OR_OUTPUT,
]
DiskEncryptionSetId = Annotated[
    TextOrOutput,
    _resource(
        "a disk encryption set",
        "Compute/diskEncryptionSets/*",
        "disk-encryption-set show --resource-group GROUP --name NAME",
    ),
    OR_OUTPUT,
]
WorkspaceId = Annotated[
    str,
    _resource(
        "a Log Analytics workspace",
        "OperationalInsights/workspaces/*",
        "monitor log-analytics workspace show --resource-group GROUP --workspace-name NAME",
    ),
]
RegistryId = Annotated[
    str, _resource("a container registry", "ContainerRegistry/registries/*", "acr show --name NAME")
]
DnsZoneId = Annotated[
    str,
    _resource(
        "a private DNS zone",
        f"Network/privateDnsZones/{_BLOB_ZONE}",
        f"network private-dns zone show --resource-group GROUP --name {_BLOB_ZONE}",
    ),
]
ReservationGroupId = Annotated[
    str,
    _resource(
        "a capacity reservation group",
        "Compute/capacityReservationGroups/*",
        "capacity reservation group show --resource-group GROUP --name NAME",
    ),
]

#: A Saturday before the first stack: AKS needs a start date for a window, and a relative one would be a difference in
#: every update.
_FROM: Final = "2026-01-03"


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
    # Channels of AKS that move to the next minor version, or that belong to nodeOs.
    if value in {"stable", "rapid", "node-image"}:
        raise error_with_fix(
            "Write patch, and change `cluster.version` for the next minor version: after an automatic upgrade to it, the "
            "next `pulumi up` would try to downgrade, which AKS rejects. Write nodeOs for the nodes' images."
        )
    return value


class AzureUpgrades(Section):
    """Automatic upgrades in the maintenance window."""

    cluster: Annotated[ClusterChannel, BeforeValidator(_cluster_channel)] = Field(
        default=ClusterChannel.NONE,
        description="`patch` installs Kubernetes patches and drains every node for each",
        examples=["patch"],
    )
    node_os: NodeOsChannel = Field(
        default=NodeOsChannel.SECURITY_PATCH,
        description="how nodes get operating system updates: `NodeImage` drains all nodes each week, `SecurityPatch` those that live patching cannot reach, the others none",
    )


class AzureMaintenanceWindow(Section):
    """The weekly window for automatic upgrades."""

    fixes: ClassVar[Mapping[str, str]] = {"days": "Write day: AKS allows one window a week."}

    day: Weekday = Field(default=Weekday.SATURDAY, description="the day of the week")
    start: WindowStart = Field(default="02:00", description="the start, in UTC")
    hours: WindowHours = Field(default=8, description="the length")
    every_weeks: int = Field(default=1, ge=1, le=4, description="weeks between windows", examples=["2"])
    start_date: Day = Field(
        default=_FROM,
        description="the first date of the window, and the start for `everyWeeks`",
        examples=[f'"{_FROM}"'],
    )


class AzureMaintenanceExclusion(Section):
    """Days without automatic upgrades."""

    start: Day = Field(description="the first day")
    end: Day = Field(description="the last day", examples=['"2027-01-06"'])


class AzureMaintenance(Section):
    """When AKS upgrades the cluster and its nodes."""

    window: AzureMaintenanceWindow = Field(
        default_factory=AzureMaintenanceWindow, description="when AKS may upgrade"
    )
    exclusions: tuple[AzureMaintenanceExclusion, ...] = Field(
        default=(),
        description="dates on which AKS upgrades nothing, the last one included",
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
        description="the CIDRs that may reach the address, beside the nodes' outbound addresses",
    )


class AzureAccess(Section):
    """Access to the API server: at a public address or at a private one. Exactly one of the two."""

    fixes: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("publicAccessCidrs", "authorizedNetworks", "authorizedIPRanges", "cidrs"),
        "Write `public: {cidrs: […]}`.",
    )

    public: AzurePublicAccess | None = Field(
        default=None, description="`{cidrs: […]}`: a public address that accepts these; or"
    )
    private: bool = Field(default=False, description="a private address in the nodes' network")
    public_name: bool = Field(
        default=False, description="with `private: true`, a public DNS name of the private address"
    )


class AzureSystemNodes(Section):
    """The on-demand nodes of the cluster's services and the operators, which belong to no pool."""

    fixes: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("instanceTypes", "vmSizes"), "Write vmSize, a single one: AKS's system pool is a scale set."
    )

    vm_size: VmSize = Field(
        default="Standard_D4ds_v5", description="without GPUs, with at least 4 vCPUs and 4 GiB"
    )
    # AKS needs two nodes in a system pool, and so do the operators, which run two replicas.
    count: int = Field(default=2, ge=2, le=10, description="how many, a fixed number")
    zones: tuple[Zone, ...] = Field(
        default=(), description="by default Azure's choice", examples=["[1, 2, 3]"]
    )
    disk_gib: DiskGib = Field(default=128, alias="diskGiB", description="the system disk")


_SCALING: Final = Allowed(
    "nap, AKS's node auto-provisioning, or fixed, a scale set for each pool; a stack has no autoscaled scale sets beside node "
    "auto-provisioning"
)
_SCALING_TEXT: Final = "what creates nodes ([scaling](#azure-only))"
_LOGIN_TEXT: Final = "the credentials that `kubelogin` uses: the Azure CLI's, a federated token (`workloadidentity`), or a service principal (`spn`)"


class AzureCluster(ClusterSection):
    """The control plane."""

    fixes: ClassVar[Mapping[str, str]] = {
        "kubeconfig": "Leave it out: the program gets a token from kubelogin whenever it needs one.",
        **dict.fromkeys(("publicAccessCidrs", "authorizedNetworks"), "Write access: {public: {cidrs: […]}}."),
        "private": "Write access: {private: true}.",
    }

    scaling: Annotated[Scaling, _SCALING] = Field(default=Scaling.NAP, description=_SCALING_TEXT)
    access: AzureAccess = Field(
        description="what may reach the API server ([Google Cloud](#gcp-only), [Azure](#azure-only))",
        examples=["{public: {cidrs: [203.0.113.0/24]}}"],
    )
    admins: tuple[ObjectId, ...] = Field(
        default=(), description="who administers the cluster, in addition to its creator"
    )
    login: Login = Field(default=Login.AZURE_CLI, description=_LOGIN_TEXT)
    maintenance: AzureMaintenance = Field(
        default_factory=AzureMaintenance,
        description="when AKS may upgrade",
        examples=['{window: {day: saturday, start: "02:00", hours: 8}}'],
    )
    upgrades: AzureUpgrades = Field(
        default_factory=AzureUpgrades,
        description="automatic upgrades",
        examples=["{cluster: patch, nodeOs: SecurityPatch}"],
    )
    system_nodes: AzureSystemNodes = Field(
        default_factory=AzureSystemNodes,
        description="on-demand machines for AKS's services and the operators, tainted `CriticalAddonsOnly`",
        examples=["{count: 2}"],
    )
    disk_encryption_set: DiskEncryptionSetId | None = Field(
        default=None,
        description="the id of a disk encryption set in the same location and subscription that encrypts the nodes' disks, by default "
        "Azure's keys; cannot be changed later",
    )
    log_workspace: WorkspaceId | None = Field(
        default=None,
        description="the id of a Log Analytics workspace that gets the control plane's logs: API server, audit without reads, controller "
        "manager, scheduler, guard, and Karpenter's events (`scaling: nap`) or the cluster autoscaler's. They cost by volume",
    )
    registry: RegistryId | None = Field(
        default=None,
        description="the id of a container registry from which the nodes pull images: their identity gets `AcrPull` on it before the "
        "operators start",
    )


class AzureExistingCluster(ExistingCluster):
    """An existing AKS cluster in the stack's subscription and location."""

    existing: AksClusterName = Field(
        description="an existing cluster that the stack uses instead of a new one ([existing clusters](existing-clusters.md))"
    )
    resource_group: ResourceGroup = Field(description="the resource group of the existing cluster")
    scaling: Annotated[Scaling, _SCALING] = Field(default=Scaling.NAP, description=_SCALING_TEXT)
    login: Login = Field(default=Login.AZURE_CLI, description=_LOGIN_TEXT)


class Outbound(StrEnum):
    """The outbound type of an existing subnet; AKS's own values."""

    NAT_GATEWAY = "userAssignedNATGateway"
    ROUTES = "userDefinedRouting"


class AzureNetworkSection(Section):
    """The fields of both kinds of network: the cluster's own address ranges."""

    pods_cidr: Cidr = Field(default=PODS_CIDR, description="a private block for pods: each node takes a /24")
    services_cidr: Cidr = Field(default=SERVICES_CIDR, description="a private block for Services, /12 to /28")


class AzureNewNetwork(AzureNetworkSection):
    """A new virtual network for the stack, with one subnet behind a NAT gateway."""

    cidr: Cidr = Field(default="10.40.0.0/16", description="a private block for nodes")


class AzureExistingNetwork(AzureNetworkSection):
    """An existing subnet. The stack changes nothing in it."""

    otherwise: ClassVar[str] = (
        "Leave it out: an existing subnet has its own; without subnetId the stack creates a network."
    )

    subnet_id: SubnetId = Field(
        description="the id of an existing subnet, which the stack does not change, except for a role assignment that lets the cluster "
        "create machines in it"
    )
    outbound: Outbound = Field(
        default=Outbound.NAT_GATEWAY,
        description="the subnet's existing outbound path: a NAT gateway, or `userDefinedRouting`, a route table. Cannot be changed later",
    )
    egress_cidrs: tuple[Cidr, ...] = Field(
        default=(),
        max_length=10,
        description="the public addresses of the subnet's outbound traffic; required with `access: {public: …}`, because nodes use the "
        "API server's public address too",
        examples=["[198.51.100.7/32]"],
    )


class AzureClusterNetwork(AzureNetworkSection):
    """The subnet of an existing cluster's system nodes."""


AzureNetworkConfig: TypeAlias = Annotated[
    AzureNewNetwork | AzureExistingNetwork | AzureClusterNetwork,
    Variant(("subnetId", "outbound", "egressCidrs"), AzureExistingNetwork, AzureNewNetwork),
]

#: AKS's value for "up to the on-demand price".
NO_CAP: Final = -1.0

#: The fix where node auto-provisioning is asked for reserved machines.
RESERVED_NEEDS_FIXED: Final = "Write `scaling: fixed` under cluster, where a pool names its capacity reservation group; or another capacity."


class AzureReservation(ReservationSection):
    """A group of capacity reservations; one of them is of the pool's VM size, in one of its zones."""

    group: ReservationGroupId = Field(
        description="the id of a capacity reservation group, on which the cluster's identity gets the role Contributor"
    )


class AzurePool(PoolSection):
    """Nodes of one capacity type: with `scaling: nap` of any of several VM sizes, with `fixed` a scale set of one."""

    fixes: ClassVar[Mapping[str, str]] = {
        **PoolSection.fixes,
        **dict.fromkeys(("instanceTypes", "machineType"), "Write vmSizes."),
        **dict.fromkeys(
            ("spot_max_price", "maxPrice"), "Write spotMaxPrice, on spot pools with `scaling: fixed`."
        ),
        "evictionPolicy": "Leave it out: AKS deletes an evicted spot machine; a deallocated one would still count against the quota.",
    }

    vm_sizes: tuple[str, ...] | None = Field(
        default=None,
        min_length=1,
        description="the VM sizes that the pool may launch; with `scaling: fixed` one, because a scale set has one: for scarce machines "
        "use more tiers",
        examples=["[Standard_D4ds_v5, Standard_D4ads_v5]"],
    )
    families: tuple[str, ...] | None = Field(
        default=None,
        min_length=1,
        description="with `vcpus` instead of `vmSizes`: all VM sizes of these families with these numbers of vCPUs that the location "
        "offers. A family is the name without the number: `Dds_v5` for `Standard_D4ds_v5`, `NCads_A100_v4` for "
        "`Standard_NC24ads_A100_v4`",
        examples=["[Dds_v5, Dads_v5]"],
    )
    vcpus: tuple[int, ...] | None = Field(
        default=None, min_length=1, description="the numbers of vCPUs of the families", examples=["[4, 8]"]
    )
    zones: tuple[Zone, ...] = Field(
        default=(),
        description="the zones of the pool's machines; by default Azure's choice",
        examples=["[1, 2, 3]"],
    )
    disk_gib: DiskGib = Field(
        default=128,
        alias="diskGiB",
        description="the size of the machines' disk, which is encrypted",
        examples=["128"],
    )
    roll_out: bool = Field(default=False, description=ROLL_OUT_TEXT)
    spot_max_price: float | None = Field(
        default=None,
        description="with `scaling: fixed`, on spot pools, USD per hour and machine, with up to five decimals; Azure evicts a machine when "
        "spot costs more. `-1`, the default: up to the on-demand price. Changing it replaces the pool",
    )
    reservation: AzureReservation | None = Field(
        default=None, description="on reserved pools, with `scaling: fixed`"
    )

    @property
    def vm_size(self) -> str:
        """The one VM size of a scale set."""
        return self.vm_sizes[0] if self.vm_sizes else ""

    @property
    def price_cap(self) -> float:
        """The most that a spot machine may cost, USD an hour; NO_CAP for up to the on-demand price."""
        return NO_CAP if self.spot_max_price is None else self.spot_max_price

    def machines(self, location: str) -> tuple[Machine, ...]:
        """The pool's known VM sizes: for a pool by family, those that the location offers."""
        catalogue = machine_catalogue("azure")
        if self.vm_sizes is not None:
            return tuple(catalogue[name] for name in self.vm_sizes if name in catalogue)
        return tuple(select_vm_sizes(self.families or (), self.vcpus or (), location))

    def as_pool(self, location: str) -> Pool:
        """The pool for the rules in `ladder`."""
        return self.pool_of(self.machines(location), self.reservation)


class AzureCheckpointKey(Section):
    """A key of the user's for checkpoints, and the identity that may use it."""

    url: KeyUrl = Field(description="a key without a version")
    identity: IdentityId = Field(
        description="a managed identity that may use it ([how to create both](getting-started-azure.md#before))"
    )

    @property
    def vault(self) -> str:
        """The URL of the vault."""
        return self.url.partition("/keys/")[0]

    @property
    def name(self) -> str:
        """The name of the key."""
        return self.url.partition("/keys/")[2]


class AzurePrivateEndpoint(Section):
    """An address in the nodes' subnet for checkpoints, instead of the subnet's service endpoint."""

    dns_zone: DnsZoneId | None = Field(
        default=None,
        description="a zone that is linked to the network already, which cannot be linked to two",
    )


class AzureCheckpoints(Section):
    """The storage account for checkpoints, with a container for each training namespace."""

    fixes: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("kms", "kmsKey"), "Write key: {url: …, identity: …}. Without it Azure encrypts with its own keys."
    )
    otherwise: ClassVar[str] = "Leave it out: the stack creates the storage account, and names it."

    # Blob Storage keeps soft-deleted blobs for a year at most.
    retain_days: int = Field(default=30, ge=1, le=365, description=RETAIN_TEXT)
    redundancy: Literal["Standard_LRS", "Standard_ZRS"] | None = Field(
        default=None,
        description="copies in three zones (`Standard_ZRS`), the default where the location has zones; or in one place (`Standard_LRS`)",
        examples=["Standard_LRS"],
    )
    allowed_cidrs: tuple[Cidr, ...] = Field(
        default=(),
        max_length=100,
        description="public addresses from which clients may use checkpoints; the nodes' subnet always may, and no other network",
    )
    key: AzureCheckpointKey | None = Field(
        default=None, description="a key of your own; by default Azure's keys encrypt"
    )
    private_endpoint: AzurePrivateEndpoint | None = Field(
        default=None,
        description="`{}`: an address in the nodes' subnet for checkpoints instead of its service endpoint, with a private DNS zone "
        "`privatelink.blob.core.windows.net`; without `allowedCidrs` the account then has no public endpoint",
        examples=["{}"],
    )


class AzureVolume(VolumeSection):
    """A volume of data on Azure."""

    zone: Zone | None = Field(default=None, description=ZONE_TEXT)
    throughput: Literal[40, 125, 250, 500] = Field(default=125, description=THROUGHPUT_TEXT)
    cidr: Cidr | None = Field(
        default=None,
        description="of a `parallel` volume in the stack's network, a private block outside `network.cidr` for its addresses, /27 or "
        "larger: the network gets it, and a subnet of its own",
        examples=["10.60.0.0/26"],
    )
    subnet_id: SubnetId | None = Field(
        default=None,
        description="of a `parallel` volume in an existing network, a subnet of this network for it alone",
    )


class AzurePlatform(CloudDocument):
    """A stack on Azure: its document, location, subscription and tenant; None for those of the credentials."""

    fixes: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(
            ("location", "region"),
            "Write azure-native:location beside holdfast:platform, where the Azure provider reads it.",
        ),
        **dict.fromkeys(
            ("subscription", "subscriptionId"), "Write azure-native:subscriptionId beside holdfast:platform."
        ),
        "tenantId": "Write azure-native:tenantId beside holdfast:platform.",
        "resourceGroup": "Leave it out: the stack creates one, and names it.",
        **dict.fromkeys(("scaling", "access"), "Move it to cluster."),
        "resourcePools": "Write pools.",
    }

    cloud: Literal["azure"] = Field(description="the cloud; it determines which of the fields below exist")
    location: Annotated[
        str,
        AfterValidator(_location),
        Allowed("an Azure location from `az account list-locations --query [].name`", "eastus2"),
    ] = Field(alias=LOCATION, description="the location of the stack")
    subscription_id: Annotated[str, _guid("a subscription", "az account show --query id")] | None = Field(
        default=None, alias=SUBSCRIPTION, description="the subscription, by default that of the credentials"
    )
    tenant_id: Annotated[str, _guid("a tenant of Entra ID", "az account show --query tenantId")] | None = (
        Field(None, alias=TENANT, description="the Entra ID tenant, by default that of the credentials")
    )
    cluster: Annotated[
        AzureCluster | AzureExistingCluster, Variant(("existing",), AzureExistingCluster, AzureCluster)
    ] = Field(
        description="the control plane ([below](#cluster))",
        examples=["{access: {public: {cidrs: [203.0.113.0/24]}}}"],
    )
    network: AzureNetworkConfig = Field(
        default_factory=network_of(AzureNewNetwork, AzureClusterNetwork),
        description="the network ([below](#network))",
        examples=["{cidr: 10.40.0.0/16}"],
    )
    pools: tuple[AzurePool, ...] = Field(
        description=POOLS_TEXT,
        examples=[
            "[{name: cpu, capacity: on-demand, vmSizes: [Standard_D4ds_v5], maxNodes: 20, default: true}]"
        ],
    )
    checkpoints: AzureCheckpoints = Field(
        default_factory=AzureCheckpoints,
        description="the store of checkpoints ([below](#checkpoints))",
        examples=["{retainDays: 30}"],
    )
    storage: Annotated[tuple[AzureVolume, ...], STORAGE_FIELD] = ()  # pyright: ignore[reportIncompatibleVariableOverride] - the model is frozen

    def zone_of(self, volume: VolumeSection) -> str | None:
        """The zone of a volume as nodes' labels write it, `eastus2-1`; None for one in all zones."""
        return None if volume.zone is None else f"{self.location}-{volume.zone}"

    @property
    def has_scale_sets(self) -> bool:
        """Whether its pools are scale sets, not pools of node auto-provisioning."""
        return self.cluster.scaling is Scaling.FIXED

    @property
    def reservation_groups(self) -> tuple[str, ...]:
        """The capacity reservation groups of its pools, each once, in their order."""
        given = (pool.reservation.group for pool in self.pools if pool.reservation is not None)
        return tuple(dict.fromkeys(given))

    def scheduling_pools(self) -> tuple[Pool, ...]:
        """The pools for the rules in `ladder`, in their order."""
        return tuple(pool.as_pool(self.location) for pool in self.pools)

    @property
    def existing_cluster(self) -> AzureExistingCluster | None:
        """The existing cluster; None if the stack creates one."""
        return self.cluster if isinstance(self.cluster, AzureExistingCluster) else None

    @property
    def checkpoint_homes(self) -> tuple[str, ...]:
        """The stacks in whose storage accounts accepted jobs keep their checkpoints, each once, in their order."""
        return tuple(
            dict.fromkeys(each.checkpoints for each in self.accepts_from if each.checkpoints is not None)
        )

    def system_machines(self) -> tuple[Machine, ...]:
        """The machine type of the system nodes; none for an existing cluster."""
        if isinstance(self.cluster, AzureExistingCluster):
            return ()
        return (machine_catalogue("azure")[self.cluster.system_nodes.vm_size],)


def zones_here(location: str) -> tuple[str, ...]:
    """The zones of a location by number; empty if it has none."""
    return tuple(zone.rpartition("-")[2] for zone in zones_of(location))
