"""Volumes of data on AWS: buckets through Mountpoint for S3, EFS, FSx for Lustre, and the drivers that mount them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pulumi
from pulumi import ComponentResource, Input, Output, ResourceOptions
from pulumi_aws import ec2, efs, fsx, vpc
from pulumi_aws.eks import Addon

from pulumi_holdfast.aws.checkpoints import CheckpointBucket, CheckpointBucketArgs
from pulumi_holdfast.aws.config.sections import AwsCluster, AwsNewNetwork
from pulumi_holdfast.aws.control_plane.addon_versions import addon_versions
from pulumi_holdfast.aws.control_plane.addons import ON_SYSTEM_NODES, addon_args
from pulumi_holdfast.aws.policy_documents import Statement, document
from pulumi_holdfast.config import naming
from pulumi_holdfast.config.loader import PLATFORM
from pulumi_holdfast.config.storage import VolumeKind
from pulumi_holdfast.kubernetes.storage import MountedVolume, Storage, storage_of
from pulumi_holdfast.ladder.errors import ConfigError, Problem

if TYPE_CHECKING:
    from pulumi_holdfast.aws.config.sections import AwsPlatform, AwsVolume
    from pulumi_holdfast.aws.network import Network
    from pulumi_holdfast.aws.preflight.checks import Account
    from pulumi_holdfast.ladder.json import Json

#: The add-on of the driver for each kind of volume, its field in AddonVersions, and its configuration: on every node, whatever its
#: taints, and with its controller on system nodes.
_DRIVERS: Final[Mapping[VolumeKind, tuple[str, str, Json]]] = {
    VolumeKind.BUCKET: (
        "aws-mountpoint-s3-csi-driver",
        "s3_csi",
        {"node": {"tolerateAllTaints": True}, "controller": ON_SYSTEM_NODES},
    ),
    VolumeKind.SHARED: (
        "aws-efs-csi-driver",
        "efs_csi",
        {"node": {"tolerations": [{"operator": "Exists"}]}, "controller": ON_SYSTEM_NODES},
    ),
    VolumeKind.PARALLEL: (
        "aws-fsx-csi-driver",
        "fsx_csi",
        {"node": {"tolerateAllTaints": True}, "controller": ON_SYSTEM_NODES},
    ),
}

#: The ports of NFS, and of Lustre between its servers and to its clients and back.
_NFS: Final = ((2049, 2049),)
_LUSTRE: Final = ((988, 988), (1018, 1023))

#: What the one bucket of a store of data belongs to.
_DATA: Final = "data"

#: The owner of all files of a shared file system: without one, jobs of different users could not change each other's files.
_OWNER: Final = 1000


def mount_policy(file_system_arn: str, access_points: Sequence[str]) -> str:
    """Return the policy of a shared file system: clients mount it by one of its access points, and with TLS."""
    return document(
        Statement(
            sid="MountAndWrite",
            principals={"AWS": ["*"]},
            actions=["elasticfilesystem:ClientMount", "elasticfilesystem:ClientWrite"],
            resources=[file_system_arn],
            conditions={
                "Bool": {"aws:SecureTransport": "true", "elasticfilesystem:AccessedViaMountTarget": "true"},
                "ArnEquals": {"elasticfilesystem:AccessPointArn": list(access_points)},
            },
        )
    )


@dataclass(frozen=True, kw_only=True)
class StorageDriversArgs:
    """`kinds` are those of the stack's volumes, `versions` the versions of add-ons by the fields of AddonVersions."""

    cluster_name: Input[str]
    kinds: Sequence[VolumeKind]
    versions: Mapping[str, str]


class StorageDrivers(ComponentResource):
    """The CSI drivers for volumes of data (`holdfast:index:StorageDrivers`).

    Creates an add-on for each kind. None has a role: the stack makes what they mount, and pods use buckets with their own identity.
    """

    def __init__(self, name: str, args: StorageDriversArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:StorageDrivers", name, None, opts)
        for kind in sorted(args.kinds):
            addon, version, configuration = _DRIVERS[kind]
            Addon(
                f"{name}-{kind.value}",
                addon_args(args.cluster_name, addon, args.versions[version], configuration),
                opts=ResourceOptions(parent=self),
            )
        self.register_outputs({})


@dataclass(frozen=True, kw_only=True)
class FileSystemPortsArgs:
    """`ports` are ranges of TCP ports, `nodes` the security group of the nodes. `both_ways`: the file system calls its clients, too."""

    vpc_id: Input[str]
    nodes: Input[str]
    ports: Sequence[tuple[int, int]]
    both_ways: bool = False


class FileSystemPorts(ComponentResource):
    """The security group of a file system (`holdfast:index:FileSystemPorts`).

    Creates a group that nodes alone reach, at some ports; with `both_ways` its members reach each other, and the nodes.
    """

    group_id: Output[str]

    def __init__(self, name: str, args: FileSystemPortsArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:FileSystemPorts", name, None, opts)
        group = ec2.SecurityGroup(
            f"{name}-group",
            vpc_id=args.vpc_id,
            description="A file system for training data",
            opts=ResourceOptions(parent=self),
        )
        self.group_id = group.id
        ways: dict[str, tuple[Input[str], Input[str]]] = {"from-nodes": (group.id, args.nodes)}
        if args.both_ways:
            ways |= {"inside": (group.id, group.id), "to-nodes": (args.nodes, group.id)}
            for peer, peer_id in (("nodes", args.nodes), ("inside", group.id)):
                vpc.SecurityGroupEgressRule(
                    f"{name}-out-{peer}",
                    security_group_id=group.id,
                    referenced_security_group_id=peer_id,
                    ip_protocol="-1",
                    opts=ResourceOptions(parent=self),
                )
        for way, (to_group, from_group) in ways.items():
            for first, last in args.ports:
                vpc.SecurityGroupIngressRule(
                    f"{name}-{way}-{first}",
                    security_group_id=to_group,
                    referenced_security_group_id=from_group,
                    ip_protocol="tcp",
                    from_port=first,
                    to_port=last,
                    opts=ResourceOptions(parent=self),
                )
        self.register_outputs({})


@dataclass(frozen=True, kw_only=True)
class SharedFileSystemArgs:
    """`subnet_ids` has one subnet of each zone, `nodes` is the security group of nodes; each of `namespaces` mounts it. `protected` as for checkpoints."""

    vpc_id: Input[str]
    subnet_ids: Sequence[Input[str]]
    nodes: Input[str]
    namespaces: Sequence[str]
    protected: bool


class SharedFileSystem(ComponentResource):
    """A file system in all zones (`holdfast:index:SharedFileSystem`): EFS, encrypted, elastic in size and throughput.

    Creates the FileSystem, a MountTarget in each zone, the security group of these, an AccessPoint for each namespace, all with the
    same root, and the policy that allows no other way in. `handles` are the volumes' ids for the driver, by namespace.
    """

    handles: Mapping[str, Output[str]]

    def __init__(self, name: str, args: SharedFileSystemArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:SharedFileSystem", name, None, opts)
        retained = ResourceOptions(parent=self, protect=args.protected, retain_on_delete=args.protected)
        system = efs.FileSystem(f"{name}-system", encrypted=True, throughput_mode="elastic", opts=retained)
        ports = FileSystemPorts(
            f"{name}-ports",
            FileSystemPortsArgs(vpc_id=args.vpc_id, nodes=args.nodes, ports=_NFS),
            opts=ResourceOptions(parent=self),
        )
        targets = [
            efs.MountTarget(
                f"{name}-target-{number}",
                file_system_id=system.id,
                subnet_id=subnet,
                security_groups=[ports.group_id],
                opts=ResourceOptions(parent=self),
            )
            for number, subnet in enumerate(args.subnet_ids)
        ]
        points = {
            namespace: efs.AccessPoint(
                f"{name}-{namespace}",
                file_system_id=system.id,
                posix_user={"uid": _OWNER, "gid": _OWNER},
                root_directory={
                    "path": "/data",
                    "creation_info": {"owner_uid": _OWNER, "owner_gid": _OWNER, "permissions": "0770"},
                },
                # A pod that mounts by it before there is a mount target waits for minutes.
                opts=ResourceOptions(parent=self, depends_on=targets),
            )
            for namespace in args.namespaces
        }
        efs.FileSystemPolicy(
            f"{name}-policy",
            file_system_id=system.id,
            policy=Output.all(system.arn, *(point.arn for point in points.values())).apply(
                lambda known: mount_policy(known[0], known[1:])
            ),
            opts=retained,
        )
        self.handles = {
            namespace: Output.concat(system.id, "::", point.id) for namespace, point in points.items()
        }
        self.register_outputs({})


@dataclass(frozen=True, kw_only=True)
class ParallelFileSystemArgs:
    """A file system of `size_gib` with `throughput` MB/s for each TiB in one subnet; `nodes` is the security group of nodes.

    `imports` is the name of the bucket whose objects are its files, None for none. `protected` as for checkpoints.
    """

    vpc_id: Input[str]
    subnet_id: Input[str]
    nodes: Input[str]
    size_gib: int
    throughput: int
    imports: Input[str] | None
    protected: bool


class ParallelFileSystem(ComponentResource):
    """A file system in one zone (`holdfast:index:ParallelFileSystem`): FSx for Lustre on SSDs, encrypted, compressed.

    Creates the LustreFileSystem, its security group, and with `imports` the DataRepositoryAssociation that follows the bucket.
    """

    def __init__(self, name: str, args: ParallelFileSystemArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:ParallelFileSystem", name, None, opts)
        # It is in the network: what is retained with it are the ports by which it is reached.
        retained = ResourceOptions(parent=self, protect=args.protected, retain_on_delete=args.protected)
        ports = FileSystemPorts(
            f"{name}-ports",
            FileSystemPortsArgs(vpc_id=args.vpc_id, nodes=args.nodes, ports=_LUSTRE, both_ways=True),
            opts=ResourceOptions(parent=self),
        )
        system = fsx.LustreFileSystem(
            f"{name}-system",
            deployment_type="PERSISTENT_2",
            storage_type="SSD",
            storage_capacity=args.size_gib,
            per_unit_storage_throughput=args.throughput,
            file_system_type_version="2.15",
            data_compression_type="LZ4",
            subnet_ids=args.subnet_id,
            security_group_ids=[ports.group_id],
            opts=ResourceOptions.merge(retained, ResourceOptions(depends_on=[ports])),
        )
        if args.imports is not None:
            fsx.DataRepositoryAssociation(
                f"{name}-imports",
                file_system_id=system.id,
                file_system_path="/",
                data_repository_path=Output.concat("s3://", args.imports),
                batch_import_meta_data_on_create=True,
                s3={"auto_import_policy": {"events": ["NEW", "CHANGED", "DELETED"]}},
                opts=ResourceOptions(parent=self),
            )
        self.system_id = system.id
        self.dns_name = system.dns_name
        self.mount_name = system.mount_name
        self.register_outputs({})


def make_storage(
    platform: AwsPlatform,
    account: Account,
    network: Network,
    *,
    cluster_name: Input[str],
    nodes: Input[str],
    after: ResourceOptions,
    parent: pulumi.Resource,
) -> Storage:
    """Create the volumes of the training cluster `parent`, and their drivers in a cluster that the stack creates.

    `nodes` is the security group of nodes.
    """
    cluster, inside = parent.pulumi_resource_name, ResourceOptions(parent=parent)
    buckets: dict[str, Output[str]] = {}
    systems: dict[str, SharedFileSystem | ParallelFileSystem] = {}
    # Buckets before the file systems that import them.
    for volume in sorted(platform.storage, key=lambda each: each.kind):
        name, protected = naming.volume(cluster, volume.name), platform.protects(volume)
        if volume.kind is VolumeKind.SHARED:
            systems[volume.name] = SharedFileSystem(
                name,
                SharedFileSystemArgs(
                    vpc_id=network.vpc_id,
                    subnet_ids=_known_subnets(network),
                    nodes=nodes,
                    namespaces=volume.namespaces,
                    protected=protected,
                ),
                opts=inside,
            )
        elif volume.kind is VolumeKind.PARALLEL:
            systems[volume.name] = ParallelFileSystem(
                name,
                ParallelFileSystemArgs(
                    vpc_id=network.vpc_id,
                    subnet_id=_subnet_of(volume, platform, account, network),
                    nodes=nodes,
                    size_gib=volume.size_gib or 0,
                    throughput=volume.throughput,
                    imports=None if volume.imports is None else buckets[volume.imports],
                    protected=protected,
                ),
                opts=inside,
            )
        elif volume.existing is not None:
            buckets[volume.name] = Output.from_input(volume.existing)
        else:
            args = CheckpointBucketArgs(
                namespaces=(_DATA,),
                retain_days=platform.checkpoints.retain_days,
                # A file system that imports it reads it as a service of AWS, which a key of the stack does not admit.
                kms=False,
                protected=protected,
            )
            buckets[volume.name] = CheckpointBucket(name, args, opts=inside).bucket_name(_DATA)
    resources: list[pulumi.Resource] = [*systems.values()]
    if isinstance(platform.cluster, AwsCluster):
        versions = addon_versions(platform.cluster.version, platform.cluster.addons)
        drivers = StorageDrivers(
            naming.part(cluster, "storage-drivers"),
            StorageDriversArgs(
                cluster_name=cluster_name,
                kinds=list({volume.kind for volume in platform.storage}),
                versions={} if versions is None else vars(versions),
            ),
            opts=after,
        )
        resources.append(drivers)

    def mounted(volume: AwsVolume, namespace: str) -> MountedVolume:
        return _mounted(volume, namespace, platform, buckets.get(volume.name), systems.get(volume.name))

    arns = {
        volume: Output.concat(f"arn:{platform.partition}:s3:::", bucket) for volume, bucket in buckets.items()
    }
    return storage_of(platform.storage, mounted, arns, resources)


def _mounted(
    volume: AwsVolume,
    namespace: str,
    platform: AwsPlatform,
    bucket: Output[str] | None,
    system: SharedFileSystem | ParallelFileSystem | None,
) -> MountedVolume:
    if isinstance(system, SharedFileSystem):
        return MountedVolume(
            name=volume.name, driver="efs.csi.aws.com", handle=system.handles[namespace], options=("tls",)
        )
    if system is not None:
        return MountedVolume(
            name=volume.name,
            driver="fsx.csi.aws.com",
            handle=system.system_id,
            attributes={"dnsname": system.dns_name, "mountname": system.mount_name},
            options=("flock",),
            size_gib=volume.size_gib or 0,
            zone=volume.zone,
        )
    return MountedVolume(
        name=volume.name,
        driver="s3.csi.aws.com",
        handle=f"{namespace}.{volume.name}",
        # With the identity of the pod: the driver has none.
        attributes={
            "bucketName": "" if bucket is None else bucket,
            "authenticationSource": "pod",
            "stsRegion": platform.region,
        },
        options=("read-only", f"region {platform.region}"),
        read_only=True,
    )


def _known_subnets(network: Network) -> Sequence[Input[str]]:
    subnets = network.private_subnet_ids
    if isinstance(subnets, Sequence) and not isinstance(subnets, str):
        return subnets
    allowed = "known subnets: a shared volume has a mount target in each"
    raise ConfigError(
        (Problem(f"{PLATFORM}.network.privateSubnetIds", "an Output", allowed, "Write their ids."),)
    )


def _subnet_of(volume: AwsVolume, platform: AwsPlatform, account: Account, network: Network) -> Input[str]:
    """The subnet of a volume's zone: in a network of the stack one of those that it has, otherwise the configured one."""
    config = platform.network
    if not isinstance(config, AwsNewNetwork):
        return volume.subnet_id or ""
    zones = config.zone_names(account.zones or ())
    if volume.zone not in zones:
        allowed = f"one of {', '.join(zones)}, the zones of the stack's network"
        problem = Problem(
            f"{PLATFORM}.storage.{volume.name}.zone", f'"{volume.zone}"', allowed, "Write one of them."
        )
        raise ConfigError((problem,))
    return _known_subnets(network)[zones.index(volume.zone)]
