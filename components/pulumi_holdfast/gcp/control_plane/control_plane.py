"""The control plane of a GKE cluster, its maintenance windows and its database encryption key."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from pulumi import ResourceOptions
from pulumi_gcp.container import Cluster
from pulumi_gcp.kms import CryptoKeyIAMMember

from pulumi_holdfast.gcp.control_plane.system_nodes import OAUTH_SCOPES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi import Input, Resource
    from pulumi_gcp.container import (
        ClusterAddonsConfigArgsDict,
        ClusterMaintenancePolicyArgsDict,
        ClusterMaintenancePolicyMaintenanceExclusionArgsDict,
        ClusterNodeConfigArgsDict,
    )

    from pulumi_holdfast.gcp.control_plane.access import ControlPlaneAccess
    from pulumi_holdfast.gcp.network import VpcNativeNetwork


_ROLE: Final = "roles/cloudkms.cryptoKeyEncrypterDecrypter"


@dataclass(frozen=True, kw_only=True)
class DatabaseKey:
    """A customer-managed key, and the number of the cluster's project.

    `key` is `projects/<project>/locations/<region>/keyRings/<ring>/cryptoKeys/<key>`, in the cluster's
    region.
    """

    key: Input[str]
    project_number: str


def database_key_grant(name: str, key: DatabaseKey, *, parent: Resource) -> CryptoKeyIAMMember:
    """Let the project's GKE service agent encrypt and decrypt with a key, before the cluster exists.

    The grant stays when the stack is destroyed: another cluster of the project may depend on the same one.
    """
    return CryptoKeyIAMMember(
        name,
        crypto_key_id=key.key,
        role=_ROLE,
        member=f"serviceAccount:service-{key.project_number}@container-engine-robot.iam.gserviceaccount.com",
        opts=ResourceOptions(parent=parent, retain_on_delete=True),
    )


#: A driver of GKE for volumes that only some stacks have.
StorageDriver: TypeAlias = Literal["filestore", "lustre"]

Scope: TypeAlias = Literal["NO_UPGRADES", "NO_MINOR_UPGRADES", "NO_MINOR_OR_NODE_UPGRADES"]


@dataclass(frozen=True, kw_only=True)
class MaintenanceExclusion:
    """A time in which GKE performs no upgrades of a scope.

    `start` and `end` are times in UTC (`2026-01-01T00:00:00Z`). They are constants because "now" would show a
    difference at each `up`. `end` None: until the end of support of the cluster's minor version, which GKE
    determines.
    """

    name: str
    start: str
    end: str | None = None
    scope: Scope = "NO_MINOR_OR_NODE_UPGRADES"

    def as_exclusion(self) -> ClusterMaintenancePolicyMaintenanceExclusionArgsDict:
        """Return GKE's maintenance exclusion, with an end time or an end-time behavior."""
        if self.end is None:
            return {
                "exclusion_name": self.name,
                "start_time": self.start,
                "exclusion_options": {"scope": self.scope, "end_time_behavior": "UNTIL_END_OF_SUPPORT"},
            }
        return {
            "exclusion_name": self.name,
            "start_time": self.start,
            "end_time": self.end,
            "exclusion_options": {"scope": self.scope},
        }


@dataclass(frozen=True, kw_only=True)
class Maintenance:
    """The hours in which GKE performs automatic upgrades, and the exclusions.

    `start` and `end` are the first window in UTC (`2026-01-03T00:00:00Z`), `recurrence` is its RFC 5545 rule
    (`FREQ=WEEKLY;BYDAY=SA,SU`). GKE requires 48 hours in any 32 days, in windows of at least four hours.
    """

    start: str
    end: str
    recurrence: str
    exclusions: Sequence[MaintenanceExclusion] = ()

    def as_policy(self) -> ClusterMaintenancePolicyArgsDict:
        """Return the cluster's maintenance policy."""
        return {
            "recurring_window": {
                "start_time": self.start,
                "end_time": self.end,
                "recurrence": self.recurrence,
            },
            "maintenance_exclusions": [exclusion.as_exclusion() for exclusion in self.exclusions],
        }


#: They describe GKE's initial pool, which is removed at once. GKE later returns another pool's values, and
#: the difference would replace the cluster with everything in it.
_OF_THE_FIRST_POOL: Final = ("initialNodeCount", "nodeConfig")


@dataclass(frozen=True, kw_only=True)
class GkeControlPlaneArgs:
    """`location` is a region, or a zone for a zonal control plane; `zones` are the zones of nodes.

    `database_key` is the full name of a key that GKE's service agent may use. If `protected`, the cluster
    cannot be deleted. `managed_prometheus` turns on the collection of metrics, False leaves it to GKE.
    `drivers` are those for volumes beside buckets and disks.
    """

    cluster_name: str
    project: str
    location: str
    zones: Sequence[str]
    network: VpcNativeNetwork
    version: str
    channel: str
    maintenance: Maintenance
    access: ControlPlaneAccess
    node_service_account: Input[str]
    database_key: Input[str] | None
    protected: bool
    managed_prometheus: bool
    drivers: Sequence[StorageDriver] = ()


def gke_control_plane(
    name: str, args: GkeControlPlaneArgs, *, parent: Resource, depends_on: Sequence[Resource] = ()
) -> Cluster:
    """Create the API server, without nodes.

    GKE requires an initial pool, which is removed at once. It uses the nodes' service account, because Compute Engine's default
    one may be disabled or may edit the project.
    """
    return Cluster(
        name,
        name=args.cluster_name,
        project=args.project,
        location=args.location,
        node_locations=_further_zones(args.location, args.zones),
        min_master_version=args.version,
        release_channel={"channel": args.channel},
        maintenance_policy=args.maintenance.as_policy(),
        network=args.network.network_id,
        subnetwork=args.network.subnetwork_id,
        networking_mode="VPC_NATIVE",
        ip_allocation_policy={
            "cluster_secondary_range_name": args.network.pods_range,
            "services_secondary_range_name": args.network.services_range,
        },
        datapath_provider="ADVANCED_DATAPATH",
        private_cluster_config=args.access.as_private_cluster(),
        control_plane_endpoints_config=args.access.as_endpoints(),
        master_authorized_networks_config=args.access.as_authorized_networks(),
        addons_config=_addons(args.drivers),
        workload_identity_config={"workload_pool": f"{args.project}.svc.id.goog"},
        database_encryption=(
            None if args.database_key is None else {"state": "ENCRYPTED", "key_name": args.database_key}
        ),
        monitoring_config={"managed_prometheus": {"enabled": True}} if args.managed_prometheus else None,
        # Removes empty nodes only. The other profile moves pods to empty more nodes, and a training pod
        # that is moved loses its progress.
        cluster_autoscaling={"enabled": False, "autoscaling_profile": "BALANCED"},
        enable_shielded_nodes=True,
        initial_node_count=1,
        remove_default_node_pool=True,
        node_config=_first_pool(args.node_service_account),
        # The pools are separate resources; listed here as well, they would show as differences of the
        # cluster.
        skip_node_pool_refresh=True,
        deletion_protection=args.protected,
        opts=ResourceOptions(
            parent=parent,
            depends_on=depends_on,
            protect=True if args.protected else None,
            ignore_changes=list(_OF_THE_FIRST_POOL),
        ),
    )


def _addons(drivers: Sequence[StorageDriver]) -> ClusterAddonsConfigArgsDict:
    """Return the drivers of volumes: pods mount buckets with the first; without theirs other volumes stay pending."""
    addons: ClusterAddonsConfigArgsDict = {"gcs_fuse_csi_driver_config": {"enabled": True}}
    if "filestore" in drivers:
        addons["gcp_filestore_csi_driver_config"] = {"enabled": True}
    if "lustre" in drivers:
        addons["lustre_csi_driver_config"] = {"enabled": True}
    return addons


def _further_zones(location: str, zones: Sequence[str]) -> list[str] | None:
    """Return the nodes' zones without the location of a zonal control plane, which GKE implies."""
    return [zone for zone in zones if zone != location] or None


def _first_pool(service_account: Input[str]) -> ClusterNodeConfigArgsDict:
    return {
        "service_account": service_account,
        "oauth_scopes": list(OAUTH_SCOPES),
        # A new project has a quota of 500 GB of SSD per region, of which three default disks would take 300.
        "disk_type": "pd-standard",
        "disk_size_gb": 30,
        # An organization policy may require it, also for machines that exist for a minute.
        "shielded_instance_config": {"enable_secure_boot": True, "enable_integrity_monitoring": True},
        "workload_metadata_config": {"mode": "GKE_METADATA"},
    }
