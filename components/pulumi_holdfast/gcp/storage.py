"""Volumes of data on Google Cloud: buckets through Cloud Storage FUSE, Filestore, and Managed Lustre."""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from pulumi import ComponentResource, Input, Output, Resource, ResourceOptions
from pulumi_gcp import compute, filestore, lustre, servicenetworking

from pulumi_holdfast.config import naming
from pulumi_holdfast.config.storage import VolumeKind
from pulumi_holdfast.gcp.checkpoints import CheckpointBucket, CheckpointBucketArgs
from pulumi_holdfast.gcp.config.sections import GcpNewNetwork, Recovery
from pulumi_holdfast.kubernetes.storage import MountedVolume, Storage, storage_of

if TYPE_CHECKING:
    from pulumi_holdfast.gcp.config.sections import GcpPlatform, GcpVolume

#: The options of Cloud Storage FUSE for reading data sets: folders without objects of their own, and caches of metadata, which new
#: objects pass after ten minutes, and of files, on the node's disk.
_READING: Final = (
    "implicit-dirs",
    "metadata-cache:ttl-secs:600",
    "metadata-cache:stat-cache-max-size-mb:128",
    "metadata-cache:type-cache-max-size-mb:64",
    "file-cache:max-size-mb:20480",
    "file-cache:cache-file-for-range-read:true",
    "file-cache:enable-parallel-downloads:true",
)

#: The name of the one share of an instance.
_SHARE: Final = "data"

#: The length of the prefix of addresses for services of Google in the stack's network: Managed Lustre takes a /23 at least.
_PREFIX: Final = 20
_LUSTRE_PORTS: Final = ("988", "6988")


@dataclass(frozen=True, kw_only=True)
class SharedFileSystemArgs:
    """A file system called `label` of `size_gib` in a region, on a network by its id; `key` None: Google's own. `protected` as for checkpoints."""

    project: str
    region: str
    label: str
    network_id: Input[str]
    size_gib: int
    key: Input[str] | None
    protected: bool


class SharedFileSystem(ComponentResource):
    """A file system in all zones (`holdfast:index:SharedFileSystem`): Filestore's regional tier, encrypted. Creates the Instance."""

    def __init__(self, name: str, args: SharedFileSystemArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:SharedFileSystem", name, None, opts)
        system = filestore.Instance(
            f"{name}-system",
            name=args.label,
            project=args.project,
            location=args.region,
            tier="REGIONAL",
            file_shares={"name": _SHARE, "capacity_gb": args.size_gib},
            networks=[{"network": args.network_id, "modes": ["MODE_IPV4"], "connect_mode": "DIRECT_PEERING"}],
            kms_key_name=args.key,
            deletion_protection_enabled=args.protected,
            opts=ResourceOptions(parent=self, protect=args.protected, retain_on_delete=args.protected),
        )
        self.handle = Output.concat("modeInstance/", args.region, "/", system.name, "/", _SHARE)
        self.address = system.networks.apply(lambda found: (found[0].ip_addresses or [""])[0])
        self.register_outputs({})


@dataclass(frozen=True, kw_only=True)
class ServiceAddressesArgs:
    """`network_id` is the network of the stack, `label` the prefix of names."""

    project: str
    network_id: Input[str]
    label: str


class ServiceAddresses(ComponentResource):
    """A range of a network for services of Google, and their peering (`holdfast:index:ServiceAddresses`).

    Creates the GlobalAddress, the Connection, and the Firewall rule that lets servers of Lustre call their clients.
    """

    def __init__(self, name: str, args: ServiceAddressesArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:ServiceAddresses", name, None, opts)
        addresses = compute.GlobalAddress(
            f"{name}-range",
            name=f"{args.label}-services",
            project=args.project,
            network=args.network_id,
            purpose="VPC_PEERING",
            address_type="INTERNAL",
            prefix_length=_PREFIX,
            opts=ResourceOptions(parent=self),
        )
        servicenetworking.Connection(
            f"{name}-peering",
            network=args.network_id,
            service="servicenetworking.googleapis.com",
            reserved_peering_ranges=[addresses.name],
            opts=ResourceOptions(parent=self),
        )
        compute.Firewall(
            f"{name}-lustre",
            name=f"{args.label}-lustre",
            project=args.project,
            description="The servers of Managed Lustre call their clients",
            network=args.network_id,
            direction="INGRESS",
            source_ranges=[Output.concat(addresses.address, f"/{_PREFIX}")],
            allows=[{"protocol": "tcp", "ports": list(_LUSTRE_PORTS)}],
            opts=ResourceOptions(parent=self),
        )
        self.register_outputs({})


def file_system_name(volume: str) -> str:
    """Return the name of a volume within Lustre, of at most 8 letters and digits: no node mounts two of one name."""
    return f"fs{sha256(volume.encode()).hexdigest()[:6]}"


@dataclass(frozen=True, kw_only=True)
class ParallelFileSystemArgs:
    """A file system called `label`, in Lustre `file_system`, of `size_gib` with `throughput` MB/s for each TiB, in one zone.

    `key` None: Google's own. `protected` as for checkpoints. The network has a peering with services of Google.
    """

    project: str
    zone: str
    label: str
    file_system: str
    network_id: Input[str]
    size_gib: int
    throughput: int
    key: Input[str] | None
    protected: bool


class ParallelFileSystem(ComponentResource):
    """A file system in one zone (`holdfast:index:ParallelFileSystem`): Managed Lustre, encrypted. Creates the Instance."""

    def __init__(self, name: str, args: ParallelFileSystemArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:ParallelFileSystem", name, None, opts)
        system = lustre.Instance(
            f"{name}-system",
            instance_id=args.label,
            project=args.project,
            location=args.zone,
            filesystem=args.file_system,
            capacity_gib=str(args.size_gib),
            per_unit_storage_throughput=str(args.throughput),
            network=args.network_id,
            kms_key=args.key,
            opts=ResourceOptions(parent=self, protect=args.protected, retain_on_delete=args.protected),
        )
        self.handle = Output.concat(args.project, "/", args.zone, "/", system.instance_id)
        # `10.1.2.3@tcp:/name`
        self.address = system.mount_point.apply(lambda found: found.partition("@")[0])
        self.register_outputs({})


def make_storage(
    platform: GcpPlatform, *, label: str, network_id: Input[str] | None, parent: Resource
) -> Storage:
    """Create the volumes of the training cluster `parent`; their names in the project start with `label`.

    `network_id` is the network of the cluster; None for an existing cluster, which has buckets alone.
    """
    cluster, key = parent.pulumi_resource_name, platform.checkpoints.kms_key
    buckets: dict[str, Output[str]] = {}
    systems: dict[str, SharedFileSystem | ParallelFileSystem] = {}
    inside, peered = ResourceOptions(parent=parent), ResourceOptions(parent=parent)
    if isinstance(platform.network, GcpNewNetwork) and any(
        volume.kind is VolumeKind.PARALLEL for volume in platform.storage
    ):
        addresses = ServiceAddresses(
            naming.part(cluster, "services"),
            ServiceAddressesArgs(project=platform.project, network_id=network_id or "", label=label),
            opts=inside,
        )
        peered = ResourceOptions(parent=parent, depends_on=[addresses])
    for volume in platform.storage:
        name, full = naming.volume(cluster, volume.name), f"{label}-{volume.name}"
        protected = platform.protects(volume)
        if volume.kind is VolumeKind.SHARED:
            systems[volume.name] = SharedFileSystem(
                name,
                SharedFileSystemArgs(
                    project=platform.project,
                    region=platform.region,
                    label=full,
                    network_id=network_id or "",
                    size_gib=volume.size_gib or 0,
                    key=key,
                    protected=protected,
                ),
                opts=inside,
            )
        elif volume.kind is VolumeKind.PARALLEL:
            systems[volume.name] = ParallelFileSystem(
                name,
                ParallelFileSystemArgs(
                    project=platform.project,
                    zone=volume.zone or "",
                    label=full,
                    file_system=file_system_name(volume.name),
                    network_id=network_id or "",
                    size_gib=volume.size_gib or 0,
                    throughput=volume.throughput,
                    key=key,
                    protected=protected,
                ),
                opts=peered,
            )
        else:
            buckets[volume.name] = (
                _bucket(name, platform, protected=protected, opts=inside)
                if volume.existing is None
                else Output.from_input(volume.existing)
            )

    def mounted(volume: GcpVolume, _: str) -> MountedVolume:
        return _mounted(volume, buckets.get(volume.name), systems.get(volume.name))

    return storage_of(platform.storage, mounted, buckets, [*systems.values()])


def _bucket(name: str, platform: GcpPlatform, *, protected: bool, opts: ResourceOptions) -> Output[str]:
    """A bucket with the retention of checkpoints, and Google's key: the grant on the stack's key is made for checkpoints."""
    section = platform.checkpoints
    return CheckpointBucket(
        name,
        CheckpointBucketArgs(
            project=platform.project,
            location=platform.region,
            namespaces=(),
            retain_days=section.retain_days,
            protected=protected,
            versioned=section.recovery is Recovery.VERSIONING,
            hierarchical=section.hierarchical,
        ),
        opts=opts,
    ).bucket_name


def _mounted(
    volume: GcpVolume, bucket: Output[str] | None, system: SharedFileSystem | ParallelFileSystem | None
) -> MountedVolume:
    if isinstance(system, SharedFileSystem):
        return MountedVolume(
            name=volume.name,
            driver="filestore.csi.storage.gke.io",
            handle=system.handle,
            attributes={"ip": system.address, "volume": _SHARE},
            size_gib=volume.size_gib or 0,
        )
    if system is not None:
        return MountedVolume(
            name=volume.name,
            driver="lustre.csi.storage.gke.io",
            handle=system.handle,
            attributes={"ip": system.address, "filesystem": file_system_name(volume.name)},
            size_gib=volume.size_gib or 0,
            zone=volume.zone,
        )
    return MountedVolume(
        name=volume.name,
        driver="gcsfuse.csi.storage.gke.io",
        handle="" if bucket is None else bucket,
        options=_READING,
        read_only=True,
    )
