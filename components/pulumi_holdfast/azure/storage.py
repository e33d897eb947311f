"""Volumes of data on Azure: containers through Blobfuse, shares of Azure Files, Azure Managed Lustre and the driver that mounts it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulumi import ComponentResource, Input, Output, Resource, ResourceOptions
from pulumi_azure_native.kubernetesconfiguration import Extension
from pulumi_azure_native.network import Subnet
from pulumi_azure_native.resources import ResourceGroup
from pulumi_azure_native.storage import (
    Action,
    DefaultAction,
    EnabledProtocols,
    FileServiceProperties,
    FileShare,
    StorageAccount,
)
from pulumi_azure_native.storagecache import AmlFilesystem, MaintenanceDayOfWeekType

from pulumi_holdfast.azure.checkpoints import CheckpointBucket, storage_account_prefix
from pulumi_holdfast.azure.config.sections import zones_here
from pulumi_holdfast.azure.identities import BLOBFUSE
from pulumi_holdfast.config import naming
from pulumi_holdfast.config.storage import VolumeKind
from pulumi_holdfast.kubernetes.kubernetes_object import tied_to
from pulumi_holdfast.kubernetes.storage import MountedVolume, Storage, storage_of
from pulumi_holdfast.ladder.taints import SYSTEM

if TYPE_CHECKING:
    from pulumi_azure_native.storagecache.outputs import AmlFilesystemClientInfoResponse

    from pulumi_holdfast.azure.config.sections import AzurePlatform, AzureVolume

#: The only services of an account have this name.
_ONLY: Final = "default"

#: The options of Blobfuse for reading data sets: files that were read stay on the node's disk for two minutes after their last use.
_READING: Final = ("-o ro", "-o allow_other", "--use-attr-cache=true", "--file-cache-timeout-in-seconds=120")

#: The name of the file system within Azure Managed Lustre: there is no other.
_FILE_SYSTEM: Final = "lustrefs"

#: The AKS extension with the driver of Azure Managed Lustre, and its version.
_EXTENSION: Final = "microsoft.azuremanagedlustre"
_EXTENSION_VERSION: Final = "0.6.0"

#: On every node, whatever its taints, and with its controller on system nodes.
_EXTENSION_SETTINGS: Final[Mapping[str, str]] = {
    "node.tolerations[0].operator": "Exists",
    "controller.tolerations[0].key": SYSTEM.key,
    "controller.tolerations[0].operator": "Exists",
}


@dataclass(frozen=True, kw_only=True)
class SharedFileSystemArgs:
    """A share called `share` of `size_gib`, which nodes in the subnet `subnet_id` reach; deleted shares are kept for `retain_days`.

    `protected` as for checkpoints.
    """

    location: str
    subnet_id: Input[str]
    share: str
    size_gib: int
    retain_days: int
    protected: bool


class SharedFileSystem(ComponentResource):
    """A file system in all zones (`holdfast:index:SharedFileSystem`): a premium NFS share of Azure Files, encrypted, also in transit.

    Creates a ResourceGroup, a StorageAccount closed to other networks and without shared keys, its FileServiceProperties and the
    FileShare.
    """

    def __init__(self, name: str, args: SharedFileSystemArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:SharedFileSystem", name, None, opts)
        retained = ResourceOptions(parent=self, protect=args.protected, retain_on_delete=args.protected)
        group = ResourceGroup(f"{name}-group", location=args.location, opts=retained)
        account = StorageAccount(
            storage_account_prefix(name),
            resource_group_name=group.name,
            location=args.location,
            kind="FileStorage",
            sku={"name": "Premium_ZRS" if zones_here(args.location) else "Premium_LRS"},
            allow_blob_public_access=False,
            allow_shared_key_access=False,
            is_local_user_enabled=False,
            allow_cross_tenant_replication=False,
            # Refuses clients of NFS that do not encrypt.
            enable_https_traffic_only=True,
            minimum_tls_version="TLS1_2",
            network_rule_set={
                "default_action": DefaultAction.DENY,
                "bypass": "None",
                "virtual_network_rules": [
                    {"virtual_network_resource_id": args.subnet_id, "action": Action.ALLOW}
                ],
            },
            opts=retained,
        )
        service = FileServiceProperties(
            f"{name}-service",
            account_name=account.name,
            resource_group_name=group.name,
            file_services_name=_ONLY,
            share_delete_retention_policy={"enabled": True, "days": args.retain_days},
            opts=retained,
        )
        share = FileShare(
            f"{name}-share",
            account_name=account.name,
            resource_group_name=group.name,
            share_name=args.share,
            share_quota=args.size_gib,
            enabled_protocols=EnabledProtocols.NFS,
            root_squash="NoRootSquash",
            opts=ResourceOptions.merge(retained, ResourceOptions(depends_on=[service])),
        )
        self.resource_group = group.name
        self.account_name = tied_to(account.name, [share])
        self.register_outputs({})


@dataclass(frozen=True, kw_only=True)
class ParallelFileSystemArgs:
    """A file system called `label` of `size_gib` with `throughput` MB/s for each TiB, in one zone; None where the location has none.

    It is in the subnet `subnet_id`; or, with a block `cidr`, in one of its own of the stack's `network` in `resource_group`.
    `protected` as for checkpoints.
    """

    location: str
    resource_group: Input[str]
    label: str
    zone: str | None
    network: Input[str]
    subnet_id: Input[str]
    cidr: str | None
    size_gib: int
    throughput: int
    protected: bool


class ParallelFileSystem(ComponentResource):
    """A file system in one zone (`holdfast:index:ParallelFileSystem`): Azure Managed Lustre, encrypted.

    Creates its Subnet, if it has a block for one, a ResourceGroup, and the AmlFilesystem.
    """

    def __init__(self, name: str, args: ParallelFileSystemArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:ParallelFileSystem", name, None, opts)
        retained = ResourceOptions(parent=self, protect=args.protected, retain_on_delete=args.protected)
        subnet_id = args.subnet_id
        if args.cidr is not None:
            subnet_id = Subnet(
                f"{name}-subnet",
                subnet_name=args.label,
                resource_group_name=args.resource_group,
                virtual_network_name=args.network,
                address_prefix=args.cidr,
                opts=ResourceOptions(parent=self),
            ).id
        group = ResourceGroup(f"{name}-group", location=args.location, opts=retained)
        system = AmlFilesystem(
            f"{name}-system",
            aml_filesystem_name=args.label,
            resource_group_name=group.name,
            location=args.location,
            sku={"name": f"AMLFS-Durable-Premium-{args.throughput}"},
            storage_capacity_ti_b=args.size_gib / 1024,
            filesystem_subnet=subnet_id,
            zones=None if args.zone is None else [args.zone],
            # Required; the file system is not available for some minutes of it.
            maintenance_window={"day_of_week": MaintenanceDayOfWeekType.SATURDAY, "time_of_day_utc": "02:00"},
            opts=retained,
        )
        self.address = system.client_info.apply(_address)
        self.register_outputs({})


def _address(found: AmlFilesystemClientInfoResponse) -> str:
    return found.mgs_address


@dataclass(frozen=True, kw_only=True)
class LustreDriverArgs:
    """The cluster and its resource group."""

    cluster: Input[str]
    resource_group: Input[str]


class LustreDriver(ComponentResource):
    """The CSI driver of Azure Managed Lustre (`holdfast:index:LustreDriver`). Creates the Extension of the cluster."""

    def __init__(self, name: str, args: LustreDriverArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:LustreDriver", name, None, opts)
        Extension(
            f"{name}-extension",
            extension_name="azurelustre",
            extension_type=_EXTENSION,
            version=_EXTENSION_VERSION,
            # A new version of its client restarts nodes' drivers while jobs have the file system mounted.
            auto_upgrade_minor_version=False,
            cluster_name=args.cluster,
            cluster_resource_name="managedClusters",
            cluster_rp="Microsoft.ContainerService",
            resource_group_name=args.resource_group,
            scope={"cluster": {"release_namespace": "kube-system"}},
            configuration_settings=dict(_EXTENSION_SETTINGS),
            opts=ResourceOptions(parent=self),
        )
        self.register_outputs({})


def make_storage(
    platform: AzurePlatform,
    *,
    label: str,
    resource_group: Input[str],
    subnet_id: Input[str],
    bucket: Callable[[str, Sequence[str], bool], CheckpointBucket],
    driver: LustreDriverArgs | None,
    parent: Resource,
) -> Storage:
    """Create the volumes of the training cluster `parent`; their names in Azure start with `label`.

    `subnet_id` is the subnet of nodes; a subnet in its network is created in `resource_group`. `bucket` creates a store like that of
    checkpoints, with these containers, protected or not. `driver` is the cluster that gets the driver of Lustre, None for one that
    its owner gives it.
    """
    cluster, inside = parent.pulumi_resource_name, ResourceOptions(parent=parent)
    buckets: dict[str, CheckpointBucket] = {}
    systems: dict[str, SharedFileSystem | ParallelFileSystem] = {}
    resources: list[Resource] = []
    for volume in platform.storage:
        name, protected = naming.volume(cluster, volume.name), platform.protects(volume)
        if volume.kind is VolumeKind.BUCKET:
            buckets[volume.name] = bucket(name, [volume.name], protected)
        elif volume.kind is VolumeKind.SHARED:
            systems[volume.name] = SharedFileSystem(
                name,
                SharedFileSystemArgs(
                    location=platform.location,
                    subnet_id=subnet_id,
                    share=volume.name,
                    size_gib=volume.size_gib or 0,
                    retain_days=platform.checkpoints.retain_days,
                    protected=protected,
                ),
                opts=inside,
            )
        else:
            systems[volume.name] = ParallelFileSystem(
                name,
                ParallelFileSystemArgs(
                    location=platform.location,
                    resource_group=resource_group,
                    label=f"{label}-{volume.name}",
                    zone=volume.zone,
                    # The name that the stack gives its network, once there is one.
                    network=Output.from_input(subnet_id).apply(lambda _: label),
                    subnet_id=subnet_id if volume.subnet_id is None else volume.subnet_id,
                    cidr=volume.cidr,
                    size_gib=volume.size_gib or 0,
                    throughput=volume.throughput,
                    protected=protected,
                ),
                opts=inside,
            )
    if driver is not None and any(volume.kind is VolumeKind.PARALLEL for volume in platform.storage):
        resources.append(LustreDriver(naming.part(cluster, "lustre-driver"), driver, opts=inside))

    def mounted(volume: AzureVolume, namespace: str) -> MountedVolume:
        zone = platform.zone_of(volume)
        return _mounted(volume, namespace, zone, buckets.get(volume.name), systems.get(volume.name))

    containers = {volume: each.container_id(volume) for volume, each in buckets.items()}
    return storage_of(platform.storage, mounted, containers, [*systems.values(), *resources])


def _mounted(
    volume: AzureVolume,
    namespace: str,
    zone: str | None,
    bucket: CheckpointBucket | None,
    system: SharedFileSystem | ParallelFileSystem | None,
) -> MountedVolume:
    # A driver keeps what it stages by the handle: two volumes with one handle would be one.
    handle = f"{namespace}.{volume.name}"
    if bucket is not None:
        return MountedVolume(
            name=volume.name,
            driver=BLOBFUSE,
            handle=handle,
            attributes={
                "protocol": "fuse2",
                "resourceGroup": bucket.resource_group,
                "storageAccount": bucket.account_name,
                "containerName": volume.name,
            },
            options=_READING,
            read_only=True,
        )
    if isinstance(system, SharedFileSystem):
        return MountedVolume(
            name=volume.name,
            driver="file.csi.azure.com",
            handle=handle,
            attributes={
                "protocol": "nfs",
                "resourceGroup": system.resource_group,
                "storageAccount": system.account_name,
                "shareName": volume.name,
                "encryptInTransit": "true",
            },
            options=("nconnect=4", "noresvport", "actimeo=30"),
            size_gib=volume.size_gib or 0,
        )
    return MountedVolume(
        name=volume.name,
        driver="azurelustre.csi.azure.com",
        handle=handle,
        attributes={"mgs-ip-address": "" if system is None else system.address, "fs-name": _FILE_SYSTEM},
        options=("noatime", "flock"),
        size_gib=volume.size_gib or 0,
        zone=zone,
    )
