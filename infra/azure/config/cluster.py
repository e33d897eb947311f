"""An AKS cluster's configuration: how it scales, who reaches it, when it is upgraded, what its operators run on."""

from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar

from pydantic import Field

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
from holdfast.infra.azure.config.maintenance import AzureMaintenance, AzureUpgrades
from holdfast.infra.config.addresses import CIDR_ALLOWED, Cidr
from holdfast.infra.config.section import Section


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
