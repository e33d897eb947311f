"""Valid AWS components: an EKS cluster, and every component with its variants.

A stack is composed of the components that are listed here by their argument classes; all others are created
inside them.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from pulumi_holdfast.aws.checkpoints import CheckpointBucket, CheckpointBucketArgs
from pulumi_holdfast.aws.control_plane.access import (
    GroupMembers,
    GroupMembersArgs,
    NodeAccess,
    NodeAccessArgs,
    TrustedIssuer,
    TrustedIssuerArgs,
)
from pulumi_holdfast.aws.control_plane.addon_versions import (
    KUBERNETES_VERSIONS,
    AddonVersions,
    addon_versions,
)
from pulumi_holdfast.aws.control_plane.component import (
    EksCluster,
    EksClusterArgs,
    ExistingEksCluster,
    ExistingEksClusterArgs,
)
from pulumi_holdfast.aws.control_plane.system_nodes import SystemNodesArgs
from pulumi_holdfast.aws.identities import (
    CheckpointAccess,
    CheckpointAccessArgs,
    DatasetAccess,
    DatasetAccessArgs,
)
from pulumi_holdfast.aws.karpenter.component import EksKarpenter, EksKarpenterArgs
from pulumi_holdfast.aws.karpenter.iam_roles import spot_service_linked_role
from pulumi_holdfast.aws.managed_prometheus import ManagedPrometheus, ManagedPrometheusArgs
from pulumi_holdfast.aws.network import AwsIsolatedNetwork, AwsIsolatedNetworkArgs, AwsNetwork, AwsNetworkArgs
from pulumi_holdfast.aws.policy_documents import Place
from pulumi_holdfast.aws.pools import EfaFabric, EfaFabricArgs
from pulumi_holdfast.aws.pull_through_cache import CachedRegistry, PullThroughCache, PullThroughCacheArgs
from pulumi_holdfast.aws.storage import (
    ParallelFileSystem,
    ParallelFileSystemArgs,
    SharedFileSystem,
    SharedFileSystemArgs,
    StorageDrivers,
    StorageDriversArgs,
)
from pulumi_holdfast.config.storage import VolumeKind
from tests.support.fakes.pulumi_engine import Recorded, Recording, record, recorded_once

KUBERNETES = KUBERNETES_VERSIONS[-1]
ADMIN = "arn:aws:iam::123456789012:role/platform"


def versions() -> AddonVersions:
    """The add-ons of the cluster's Kubernetes version."""
    found = addon_versions(KUBERNETES)
    assert found is not None, f"there are add-ons for {KUBERNETES}"
    return found


def cluster_args() -> EksClusterArgs:
    """A deletable cluster in two existing subnets."""
    return EksClusterArgs(
        cluster_name="holdfast-dev",
        version=KUBERNETES,
        account="123456789012",
        region="us-east-1",
        partition="aws",
        private_subnet_ids=["subnet-1", "subnet-2"],
        system_nodes=SystemNodesArgs(instance_types=["m7i.large", "m6i.large"]),
        addons=versions(),
        protected=False,
        public_access_cidrs=["203.0.113.0/24"],
        admins=[ADMIN],
    )


def recorded_cluster(
    change: Callable[[EksClusterArgs], EksClusterArgs] = lambda args: args, *, preview: bool = False
) -> Recording:
    """What a cluster registers; `change` replaces its valid arguments."""
    args = change(cluster_args())
    return recorded_once(
        (repr(args), preview), lambda: record(lambda: EksCluster("cluster", args), preview=preview)
    )


REGION: Final = "eu-west-1"
ACCOUNT: Final = "123456789012"
ZONES: Final = ("eu-west-1a", "eu-west-1b")
CLUSTER: Final = "holdfast-dev"

KARPENTER: Final = EksKarpenterArgs(
    cluster_name=CLUSTER,
    account=ACCOUNT,
    region=REGION,
    partition="aws",
    charts=None,
    images=None,
    version="1.14.1",
    image_digest="",
)


def _cluster() -> object:
    versions = addon_versions(KUBERNETES_VERSIONS[-1])
    assert versions is not None, "the newest version has add-ons"
    return EksCluster(
        "cluster",
        EksClusterArgs(
            cluster_name=CLUSTER,
            version=KUBERNETES_VERSIONS[-1],
            account=ACCOUNT,
            region=REGION,
            partition="aws",
            private_subnet_ids=("subnet-1", "subnet-2"),
            system_nodes=SystemNodesArgs(instance_types=("m7i.large",)),
            addons=versions,
            protected=True,
            public_access_cidrs=("203.0.113.0/24",),
            private_access_cidrs=("10.0.0.0/8",),
            admins=(f"arn:aws:iam::{ACCOUNT}:role/admin",),
        ),
    )


def _network() -> object:
    return AwsNetwork("network", AwsNetworkArgs(cidr="10.40.0.0/16", zones=ZONES, region=REGION))


def _isolated_network() -> object:
    return AwsIsolatedNetwork(
        "network", AwsIsolatedNetworkArgs(cidr="10.40.0.0/16", zones=ZONES, region=REGION)
    )


def _bucket(*, kms: bool) -> object:
    return CheckpointBucket(
        "checkpoints", CheckpointBucketArgs(namespaces=("vision",), retain_days=30, kms=kms, protected=kms)
    )


def _checkpoint_access(key: str | None) -> object:
    return CheckpointAccess(
        "access",
        CheckpointAccessArgs(
            cluster_name=CLUSTER,
            namespace="vision",
            bucket_arn="arn:aws:s3:::checkpoints-0a1b2c3",
            key_arn=key,
        ),
    )


def _pull_through_cache() -> object:
    return PullThroughCache(
        "caches",
        PullThroughCacheArgs(
            place=Place(account=ACCOUNT, region=REGION, partition="aws"),
            registries=(CachedRegistry(prefix="quay", upstream="quay.io"),),
            node_role="karpenter-node-role",
        ),
    )


def _shared_file_system() -> object:
    return SharedFileSystem(
        "home",
        SharedFileSystemArgs(
            vpc_id="vpc-1", subnet_ids=("subnet-1",), nodes="sg-1", namespaces=("vision",), protected=True
        ),
    )


def _parallel_file_system() -> object:
    return ParallelFileSystem(
        "scratch",
        ParallelFileSystemArgs(
            vpc_id="vpc-1",
            subnet_id="subnet-1",
            nodes="sg-1",
            size_gib=1200,
            throughput=125,
            imports="datasets",
            protected=False,
        ),
    )


#: Name → what creates it. Arguments that change what is created have an entry of their own.
WAYS: Final[dict[str, Callable[[], object]]] = {
    "cluster": _cluster,
    "existing-cluster": lambda: ExistingEksCluster(
        "cluster",
        ExistingEksClusterArgs(
            cluster_name=CLUSTER,
            region="us-west-2",
            endpoint="https://e",
            certificate_authority="YQ==",
            issuer="https://i",
            security_group_id="sg-1",
        ),
    ),
    "trusted-issuer": lambda: TrustedIssuer(
        "issuer",
        TrustedIssuerArgs(cluster_name=CLUSTER, cluster="home", issuer="https://i", audience="https://a"),
    ),
    "node-access": lambda: NodeAccess("nodes", NodeAccessArgs(cluster_name=CLUSTER, role_arn="arn")),
    "group-members": lambda: GroupMembers(
        "access", GroupMembersArgs(cluster_name=CLUSTER, groups={ADMIN: ["holdfast:vision:submit"]})
    ),
    "network": _network,
    "isolated-network": _isolated_network,
    "karpenter": lambda: EksKarpenter("karpenter", KARPENTER),
    "isolated-karpenter": lambda: EksKarpenter("karpenter", replace(KARPENTER, isolated=True)),
    "managed-prometheus": lambda: ManagedPrometheus(
        "metrics",
        ManagedPrometheusArgs(
            cluster_name=CLUSTER,
            cluster_arn=f"arn:aws:eks:us-east-1:123456789012:cluster/{CLUSTER}",
            subnet_ids=["subnet-1", "subnet-2"],
            security_group_id="sg-1",
        ),
    ),
    "fabric": lambda: EfaFabric("fabric", EfaFabricArgs(vpc_id="vpc-1")),
    "spot-role": lambda: spot_service_linked_role("spot", account="123456789012", existing_arn=None),
    "pull-through-cache": _pull_through_cache,
    "bucket": lambda: _bucket(kms=False),
    "bucket-with-key": lambda: _bucket(kms=True),
    "dataset-access": lambda: DatasetAccess(
        "access", DatasetAccessArgs(role="trainer", bucket_arn="arn:aws:s3:::datasets")
    ),
    "storage-drivers": lambda: StorageDrivers(
        "drivers",
        StorageDriversArgs(cluster_name=CLUSTER, kinds=tuple(VolumeKind), versions=vars(versions())),
    ),
    "shared-file-system": _shared_file_system,
    "parallel-file-system": _parallel_file_system,
    "checkpoint-access": lambda: _checkpoint_access(None),
    "checkpoint-access-with-key": lambda: _checkpoint_access(f"arn:aws:kms:{REGION}:{ACCOUNT}:key/one"),
}


def everything_in_aws() -> Iterator[tuple[str, Recorded]]:
    """Each resource of each variant, with the variant's name."""
    for way, build in WAYS.items():
        yield from ((way, resource) for resource in record(build))
