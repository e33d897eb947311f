"""The configuration of an Azure stack: its document, and the location, subscription and tenant beside it."""

from collections.abc import Mapping
from typing import ClassVar, Literal, TypeAlias

from pydantic import Field

from pulumi_holdfast.azure.config.cluster import AzureClusterConfig, AzureExistingCluster
from pulumi_holdfast.azure.config.fields import (
    DNS_ZONE_ALLOWED,
    IDENTITY_ALLOWED,
    KEY_URL_ALLOWED,
    DnsZoneId,
    IdentityId,
    KeyUrl,
)
from pulumi_holdfast.azure.config.network import AzureNetworkConfig, default_network
from pulumi_holdfast.azure.config.pool import FixedPool, NapPool
from pulumi_holdfast.config.base import Section
from pulumi_holdfast.config.clusters import AcceptsFromField
from pulumi_holdfast.config.fields import CIDR_ALLOWED, Cidr
from pulumi_holdfast.config.stack import CloudDocument
from pulumi_holdfast.ladder.machines import Machine, machine_catalogue
from pulumi_holdfast.ladder.pools import Pool


class AzureCheckpointKey(Section):
    """A key of the user's for checkpoints, and the identity that may use it."""

    fixes: ClassVar[Mapping[str, str]] = {
        "version": "Leave it out: the account uses the newest version of the key.",
        "vault": "Write url, which has the vault's name.",
    }

    url: KeyUrl = Field(
        description=KEY_URL_ALLOWED, examples=["https://my-keys.vault.azure.net/keys/checkpoints"]
    )
    identity: IdentityId = Field(
        description=IDENTITY_ALLOWED,
        examples=[
            "/subscriptions/…/resourceGroups/keys/providers/Microsoft.ManagedIdentity/userAssignedIdentities/checkpoints"
        ],
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
        description=f"{DNS_ZONE_ALLOWED}, which is linked to the nodes' network",
        examples=[
            "/subscriptions/…/resourceGroups/dns/providers/Microsoft.Network/privateDnsZones/privatelink.blob.core.windows.net"
        ],
    )


class AzureCheckpoints(Section):
    """The storage account for checkpoints, with a container for each training namespace."""

    fixes: ClassVar[Mapping[str, str]] = {
        "bucket": "Leave it out: the stack creates the storage account, and names it.",
        "accountName": "Leave it out: the stack creates the storage account, and names it.",
        "container": "Leave it out: each training namespace has a container with its name.",
        "directory": "Leave it out: on Azure, checkpoints are blobs in a container.",
        "sku": "Write redundancy.",
        "kms": "Leave it out: Azure encrypts with its own keys. For a key of your own, write key.",
        "kmsKey": "Write key: {url: …, identity: …}.",
    }

    # Blob Storage keeps soft-deleted blobs for a year at most.
    retain_days: int = Field(
        default=30,
        ge=1,
        le=365,
        description="a whole number of days, 1 to 365, for which overwritten and deleted checkpoints are kept",
        examples=["30"],
    )
    redundancy: Literal["Standard_LRS", "Standard_ZRS"] = Field(
        default="Standard_ZRS",
        description="Standard_ZRS, copies in three zones, or Standard_LRS, copies in one data center",
        examples=["Standard_LRS"],
    )
    allowed_cidrs: tuple[Cidr, ...] = Field(
        default=(),
        max_length=100,
        description=f"a list of up to 100 public blocks, each {CIDR_ALLOWED}, from which clients may use checkpoints, "
        "beside the nodes",
        examples=["[203.0.113.0/24]"],
    )
    key: AzureCheckpointKey | None = Field(
        default=None,
        description="a mapping of url and identity",
        examples=["{url: https://my-keys.vault.azure.net/keys/checkpoints, identity: /subscriptions/…}"],
    )
    private_endpoint: AzurePrivateEndpoint | None = Field(
        default=None,
        description="a mapping of dnsZone, or {} for a zone that the stack creates",
        examples=["{}"],
    )


class AzureDocument(CloudDocument):
    """The document under holdfast:platform, without the pools."""

    fixes: ClassVar[Mapping[str, str]] = {
        "location": "Write azure-native:location beside holdfast:platform, where the Azure provider reads it.",
        "region": "Write azure-native:location beside holdfast:platform.",
        "subscription": "Write azure-native:subscriptionId beside holdfast:platform.",
        "subscriptionId": "Write azure-native:subscriptionId beside holdfast:platform.",
        "tenantId": "Write azure-native:tenantId beside holdfast:platform.",
        "resourceGroup": "Leave it out: the stack creates one, and names it.",
        "zones": "Move it to systemNodes or a pool.",
        "scaling": "Move it to cluster.",
        "access": "Move it to cluster.",
        "resourcePools": "Write pools, each with its vmSizes.",
    }

    cloud: Literal["azure"] = Field(description="azure", examples=["azure"])
    cluster: AzureClusterConfig = Field(
        description="a mapping of access, version, scaling, systemNodes and other fields, or of existing and resourceGroup",
        examples=["{access: {public: {cidrs: [203.0.113.0/24]}}}"],
    )
    network: AzureNetworkConfig = Field(
        default_factory=default_network,
        description="a mapping of cidr, podsCidr and servicesCidr, or of subnetId, outbound and egressCidrs",
        examples=["{cidr: 10.40.0.0/16}"],
    )
    checkpoints: AzureCheckpoints = Field(
        default_factory=AzureCheckpoints,
        description="a mapping of retainDays, redundancy, allowedCidrs and key",
        examples=["{retainDays: 30}"],
    )
    accepts_from: AcceptsFromField = ()


class NapDocument(AzureDocument):
    """The document under holdfast:platform, with pools of node auto-provisioning."""

    pools: tuple[NapPool, ...] = Field(
        description="a list of pools, exactly one of them with default: true",
        examples=[
            "[{name: cpu, capacity: on-demand, vmSizes: [Standard_D4ds_v5], maxNodes: 20, default: true}]"
        ],
    )


class FixedDocument(AzureDocument):
    """The document under holdfast:platform, with a scale set for each pool."""

    pools: tuple[FixedPool, ...] = Field(
        description="a list of pools, exactly one of them with default: true",
        examples=[
            "[{name: cpu, capacity: on-demand, vmSize: Standard_D4ds_v5, maxNodes: 20, default: true}]"
        ],
    )


class AzureStack(AzureDocument):
    """The values beside the document: location, subscription, tenant; the last two None for those of the credentials."""

    location: str
    subscription_id: str | None = None
    tenant_id: str | None = None

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


class NapPlatform(NapDocument, AzureStack):
    """An Azure stack on node auto-provisioning."""

    @property
    def reservation_groups(self) -> tuple[str, ...]:
        """The capacity reservation groups of its pools: none."""
        return ()

    def scheduling_pools(self) -> tuple[Pool, ...]:
        """The pools for the rules in `scheduling`, in their order."""
        return tuple(pool.as_pool(self.location) for pool in self.pools)


class FixedPlatform(FixedDocument, AzureStack):
    """An Azure stack whose pools are scale sets."""

    @property
    def reservation_groups(self) -> tuple[str, ...]:
        """The capacity reservation groups of its pools, each once, in their order."""
        given = (pool.reservation.group for pool in self.pools if pool.reservation is not None)
        return tuple(dict.fromkeys(given))

    def scheduling_pools(self) -> tuple[Pool, ...]:
        """The pools for the rules in `scheduling`, in their order."""
        return tuple(pool.as_pool() for pool in self.pools)


AzurePlatform: TypeAlias = NapPlatform | FixedPlatform
