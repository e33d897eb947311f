"""The control plane of a GKE cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulumi import ComponentResource, ResourceOptions
from pulumi_gcp.container import Cluster

from holdfast.components.cluster.gke.system_pool import OAUTH_SCOPES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi import Input
    from pulumi_gcp.container import ClusterNodeConfigArgsDict

    from holdfast.components.cluster.gke.access import ControlPlaneAccess
    from holdfast.components.cluster.gke.maintenance import Maintenance
    from holdfast.components.network.gcp import VpcNativeNetwork

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
