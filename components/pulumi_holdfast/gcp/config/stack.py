"""The configuration of a GCP stack: its document, and the project and region beside it."""

from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar, Literal

from pydantic import Field

from pulumi_holdfast.config.base import Section
from pulumi_holdfast.config.clusters import AcceptsFromField
from pulumi_holdfast.config.stack import CloudDocument, RetainDays
from pulumi_holdfast.gcp.config.cluster import GcpClusterConfig, GcpExistingCluster
from pulumi_holdfast.gcp.config.fields import KEY_ALLOWED, KeyName
from pulumi_holdfast.gcp.config.network import GcpNetworkConfig, default_network
from pulumi_holdfast.gcp.config.pool import GcpPool
from pulumi_holdfast.ladder.machines import Machine, machine_catalogue
from pulumi_holdfast.ladder.pools import Pool


class Recovery(StrEnum):
    """How overwritten and deleted checkpoints are kept."""

    SOFT_DELETE = "soft-delete"
    VERSIONING = "versioning"


class GcpCheckpoints(Section):
    """The Cloud Storage bucket for checkpoints, in the stack's region."""

    fixes: ClassVar[Mapping[str, str]] = {
        "bucket": "Leave it out: the stack creates the bucket, and names it.",
        "directory": "Leave it out: on GCP, checkpoints are objects in a bucket.",
        "location": "Leave it out: the bucket is in the stack's region, where reads are free.",
        "kms": "Write kmsKey, the name of a key; without it, Google's keys encrypt.",
        "versioning": "Write recovery: versioning.",
        "softDelete": "Write recovery: soft-delete.",
    }

    retain_days: RetainDays = 30
    recovery: Recovery = Field(
        default=Recovery.SOFT_DELETE,
        description="soft-delete or versioning, one of the two",
        examples=["soft-delete"],
    )
    hierarchical: bool = Field(
        default=False,
        description="true for a hierarchical namespace with folders, false for a flat one",
        examples=["true"],
    )
    kms_key: KeyName | None = Field(
        default=None,
        description=KEY_ALLOWED,
        examples=["projects/my-project/locations/us-central1/keyRings/holdfast/cryptoKeys/checkpoints"],
    )


class GcpDocument(CloudDocument):
    """The document under holdfast:platform."""

    fixes: ClassVar[Mapping[str, str]] = {
        "project": "Write gcp:project beside holdfast:platform, where the GCP provider reads it.",
        "account": "Write gcp:project beside holdfast:platform.",
        "region": "Write gcp:region beside holdfast:platform, where the GCP provider reads it.",
        "zones": "Move it to cluster or a pool.",
        "environment": "Leave it out: the names of the jobs' identities contain the stack's name.",
        "resourcePools": "Write pools, each with its machineType.",
    }

    cloud: Literal["gcp"] = Field(description="gcp", examples=["gcp"])
    cluster: GcpClusterConfig = Field(
        description="a mapping of access, version, channel, systemNodes and other fields, or of existing",
        examples=["{access: {authorizedNetworks: [203.0.113.0/24]}}"],
    )
    network: GcpNetworkConfig = Field(
        default_factory=default_network,
        description="a mapping of nodesCidr, podsCidr and servicesCidr, or of network, subnetwork and their ranges",
        examples=["{nodesCidr: 10.40.0.0/20, podsCidr: 10.44.0.0/14}"],
    )
    pools: tuple[GcpPool, ...] = Field(
        description="a list of pools, exactly one of them with default: true",
        examples=[
            "[{name: cpu, capacity: on-demand, machineType: n2-standard-4, maxNodes: 20, default: true}]"
        ],
    )
    checkpoints: GcpCheckpoints = Field(
        default_factory=GcpCheckpoints,
        description="a mapping of retainDays, recovery, hierarchical and kmsKey",
        examples=["{retainDays: 30}"],
    )
    accepts_from: AcceptsFromField = ()


class GcpPlatform(GcpDocument):
    """A GCP stack: its document, project and region."""

    project: str
    region: str

    @property
    def location(self) -> str:
        """The location of the control plane: a region or a zone."""
        return self.cluster.location or self.region

    @property
    def existing_cluster(self) -> str | None:
        """The name of the existing cluster; None if the stack creates one."""
        return self.cluster.existing if isinstance(self.cluster, GcpExistingCluster) else None

    def system_machines(self) -> tuple[Machine, ...]:
        """The machine type of the system nodes; none for an existing cluster."""
        if isinstance(self.cluster, GcpExistingCluster):
            return ()
        return (machine_catalogue("gcp")[self.cluster.system_nodes.machine_type],)

    def classes(self) -> Mapping[str, tuple[Pool, ...]]:
        """The pools of each ComputeClass by its name, in the order in which GKE tries them."""
        names = dict.fromkeys(pool.compute_class for pool in self.pools if pool.compute_class is not None)
        return {
            name: tuple(pool.as_pool() for pool in self.pools if pool.compute_class == name) for name in names
        }

    def scheduling_pools(self) -> tuple[Pool, ...]:
        """The pools for the rules in `scheduling`, in their order."""
        return tuple(pool.as_pool() for pool in self.pools)
