"""The control plane of a GKE cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from pulumi import ComponentResource, ResourceOptions
from pulumi_gcp.container import Cluster
from pulumi_gcp.kms import CryptoKeyIAMMember

from holdfast.components.cluster.gke.system_nodes import OAUTH_SCOPES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi import Input
    from pulumi_gcp.container import (
        ClusterMaintenancePolicyArgsDict,
        ClusterMaintenancePolicyMaintenanceExclusionArgsDict,
        ClusterNodeConfigArgsDict,
    )

    from holdfast.components.cluster.gke.access import ControlPlaneAccess
    from holdfast.components.network.gcp import VpcNativeNetwork


_ROLE: Final = "roles/cloudkms.cryptoKeyEncrypterDecrypter"


@dataclass(frozen=True, kw_only=True)
class DatabaseKey:
    """A key of the user's own, and the number of the project that the cluster is in.

    `key` is `projects/<project>/locations/<region>/keyRings/<ring>/cryptoKeys/<key>`, in the cluster's region.
    """

    key: str
    project_number: str


class DatabaseKeyAccess(ComponentResource):
    """Lets GKE encrypt and decrypt with a key.

    Creates the grant to GKE's service agent of the project, which must be there before the cluster. It stays when the
    stack goes: another cluster of the project has it by the same grant, and is lost without it.
    """

    key: str

    def __init__(self, name: str, args: DatabaseKey, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:DatabaseKeyAccess", name, None, opts)
        CryptoKeyIAMMember(
            f"{name}-grant",
            crypto_key_id=args.key,
            role=_ROLE,
            member=f"serviceAccount:service-{args.project_number}@container-engine-robot.iam.gserviceaccount.com",
            opts=ResourceOptions(parent=self, retain_on_delete=True),
        )
        self.key = args.key
        self.register_outputs({})


Scope: TypeAlias = Literal["NO_UPGRADES", "NO_MINOR_UPGRADES", "NO_MINOR_OR_NODE_UPGRADES"]


@dataclass(frozen=True, kw_only=True)
class MaintenanceExclusion:
    """A time in which GKE leaves upgrades of a scope undone.

    `start` and `end` are moments in UTC, `2026-01-01T00:00:00Z`, written down and never "now": a start that moves is a
    difference at each `up`. `end` None: until the cluster's version is supported no longer, which GKE knows and which
    moves with each minor version.
    """

    name: str
    start: str
    end: str | None = None
    scope: Scope = "NO_MINOR_OR_NODE_UPGRADES"

    def as_exclusion(self) -> ClusterMaintenancePolicyMaintenanceExclusionArgsDict:
        """The exclusion as GKE spells it: with an end, or with a behaviour instead."""
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
    """The hours in which GKE upgrades of its own accord, and what it leaves undone even then.

    `start` and `end` are the first such time, in UTC: `2026-01-03T00:00:00Z`. `recurrence` is when it comes again, as
    RFC 5545 spells it (`FREQ=WEEKLY;BYDAY=SA,SU`). GKE wants 48 hours in any 32 days, four or more at a time.
    """

    start: str
    end: str
    recurrence: str
    exclusions: Sequence[MaintenanceExclusion] = ()

    def as_policy(self) -> ClusterMaintenancePolicyArgsDict:
        """The policy of a cluster."""
        return {
            "recurring_window": {
                "start_time": self.start,
                "end_time": self.end,
                "recurrence": self.recurrence,
            },
            "maintenance_exclusions": [exclusion.as_exclusion() for exclusion in self.exclusions],
        }


#: They say what GKE's first pool is made of, which is gone before anybody uses the cluster. GKE goes on to show another
#: pool's there, and a difference would replace the cluster with everything in it.
_OF_THE_FIRST_POOL: Final = ("initialNodeCount", "nodeConfig")


@dataclass(frozen=True, kw_only=True)
class GkeControlPlaneArgs:
    """`location` is a region, or a zone for a control plane in that zone alone; `zones` are where nodes are.

    `database_key` is the full name of a key that GKE's service agent may use. `protected`: the cluster cannot be
    deleted.
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
    database_key: str | None
    protected: bool


class GkeControlPlane(ComponentResource):
    """The API server and all behind it, without a node.

    Creates the cluster. GKE makes one only with a pool of nodes, which is removed at once: it has the nodes' own service
    account too, since Compute Engine's default one may be disabled, or may edit the project.
    """

    cluster: Cluster

    def __init__(self, name: str, args: GkeControlPlaneArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:GkeControlPlane", name, None, opts)
        self.cluster = Cluster(
            f"{name}-gke",
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
            workload_identity_config={"workload_pool": f"{args.project}.svc.id.goog"},
            database_encryption=(
                None if args.database_key is None else {"state": "ENCRYPTED", "key_name": args.database_key}
            ),
            # Nodes are taken away when they are empty. The other profile moves pods together to empty more of them,
            # and a training pod that is moved is a training pod that is lost.
            cluster_autoscaling={"enabled": False, "autoscaling_profile": "BALANCED"},
            enable_shielded_nodes=True,
            initial_node_count=1,
            remove_default_node_pool=True,
            node_config=_first_pool(args.node_service_account),
            # The pools are resources of their own; listed here, each of them would be a difference of the cluster.
            skip_node_pool_refresh=True,
            deletion_protection=args.protected,
            opts=ResourceOptions(
                parent=self,
                protect=True if args.protected else None,
                ignore_changes=list(_OF_THE_FIRST_POOL),
            ),
        )
        self.register_outputs({"name": self.cluster.name})


def _further_zones(location: str, zones: Sequence[str]) -> list[str] | None:
    """Zones of the nodes: a control plane in one zone has nodes there in any case, and GKE leaves that one away."""
    return [zone for zone in zones if zone != location] or None


def _first_pool(service_account: Input[str]) -> ClusterNodeConfigArgsDict:
    return {
        "service_account": service_account,
        "oauth_scopes": list(OAUTH_SCOPES),
        # A new project has 500 GB of SSD in a region, of which three default disks would take 300.
        "disk_type": "pd-standard",
        "disk_size_gb": 30,
        # An organization's policy may forbid machines without, if they only live for a minute.
        "shielded_instance_config": {"enable_secure_boot": True, "enable_integrity_monitoring": True},
        "workload_metadata_config": {"mode": "GKE_METADATA"},
    }
