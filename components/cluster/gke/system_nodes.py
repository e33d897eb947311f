"""The on-demand nodes that carry cluster services, operators and whatever asks for nothing."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulumi import ComponentResource, ResourceOptions
from pulumi_gcp.container import NodePool
from pulumi_gcp.projects import IAMMember
from pulumi_gcp.serviceaccount import Account

from holdfast.components.ordering import tied_to
from holdfast.scheduling.labels import SYSTEM, SYSTEM_VALUE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi import Input, Output


#: What Google takes as a service account's id.
_LONGEST_ID: Final = 30

#: To write logs and metrics, which is the least that GKE asks of a node; and to pull the images of the project.
#: Pods get nothing of it: what they ask for a token is GKE's metadata server, which knows them by their own account.
_ROLES: Final[Mapping[str, str]] = {
    "logs-and-metrics": "roles/container.defaultNodeServiceAccount",
    "images": "roles/artifactregistry.reader",
}


def account_id(cluster_name: str) -> str:
    """The id of the nodes' service account: the cluster's name with `-nodes`, cut and told apart where it is long."""
    whole = f"{cluster_name}-nodes"
    if len(whole) <= _LONGEST_ID:
        return whole
    mark = hashlib.sha256(cluster_name.encode()).hexdigest()[:6]
    return f"{cluster_name[: _LONGEST_ID - len(mark) - 1].rstrip('-')}-{mark}"


@dataclass(frozen=True, kw_only=True)
class NodeIdentityArgs:
    """The cluster, and the project it is in."""

    cluster_name: str
    project: str


class NodeIdentity(ComponentResource):
    """The service account of all nodes of a cluster: never Compute Engine's default one, which may edit the project.

    Creates the account and its two roles. `email` is tied to the roles: nodes that have it find it able to write logs
    and to pull images, to their end.
    """

    email: Output[str]

    def __init__(self, name: str, args: NodeIdentityArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:NodeIdentity", name, None, opts)
        account = Account(
            f"{name}-account",
            account_id=account_id(args.cluster_name),
            project=args.project,
            display_name=f"Nodes of the GKE cluster {args.cluster_name}",
            opts=ResourceOptions(parent=self),
        )
        roles = [
            IAMMember(
                f"{name}-{what}",
                project=args.project,
                role=role,
                member=account.email.apply(lambda email: f"serviceAccount:{email}"),
                opts=ResourceOptions(parent=self),
            )
            for what, role in _ROLES.items()
        ]
        self.email = tied_to(account.email, roles)
        self.register_outputs({"email": self.email})


#: What a node may do its service account's roles say; a narrower scope would only take from them.
OAUTH_SCOPES: Final = ("https://www.googleapis.com/auth/cloud-platform",)


@dataclass(frozen=True, kw_only=True)
class SystemNodesArgs:
    """`machine_type` has no GPU; in each zone there are `per_zone` nodes, and up to `spare_per_zone` more when need be."""

    machine_type: str
    per_zone: int = 1
    spare_per_zone: int = 2
    disk_gib: int = 50


@dataclass(frozen=True, kw_only=True)
class SystemPoolArgs:
    """The nodes, and the cluster they join: its project, its location and its name as the cluster gives it."""

    nodes: SystemNodesArgs
    project: str
    location: str
    zones: Sequence[str]
    cluster: Input[str]
    service_account: Input[str]


class SystemPool(ComponentResource):
    """The pool without GPUs that every other pool comes after: GKE taints GPU nodes only where there is one.

    Creates the node pool. It has no taint, though EKS's has: GKE's own services (DNS, metrics, the agents of logs)
    tolerate none that a chart would, and Ray's heads live here as well. Operators select these nodes by their label;
    what asks for nothing is let in, and brings another node where there is no room.

    `pool` is the node pool.
    """

    pool: NodePool

    def __init__(self, name: str, args: SystemPoolArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:SystemPool", name, None, opts)
        nodes = args.nodes
        # Without a name of ours: a pool that has to be replaced is there before the old one goes.
        self.pool = NodePool(
            f"{name}-nodes",
            project=args.project,
            location=args.location,
            cluster=args.cluster,
            node_locations=list(args.zones),
            initial_node_count=nodes.per_zone,
            autoscaling={
                "min_node_count": nodes.per_zone,
                "max_node_count": nodes.per_zone + nodes.spare_per_zone,
                "location_policy": "BALANCED",
            },
            # On a release channel both are a must.
            management={"auto_repair": True, "auto_upgrade": True},
            # Operators move to a new node before theirs goes.
            upgrade_settings={"strategy": "SURGE", "max_surge": 1, "max_unavailable": 0},
            network_config={"enable_private_nodes": True},
            node_config={
                "machine_type": nodes.machine_type,
                "image_type": "COS_CONTAINERD",
                "disk_type": "pd-balanced",
                "disk_size_gb": nodes.disk_gib,
                "service_account": args.service_account,
                "oauth_scopes": list(OAUTH_SCOPES),
                "labels": {SYSTEM: SYSTEM_VALUE},
                "metadata": {"disable-legacy-endpoints": "true"},
                "shielded_instance_config": {
                    "enable_secure_boot": True,
                    "enable_integrity_monitoring": True,
                },
                # Pods reach the metadata server of GKE, which gives them their own identity, and never the node's.
                "workload_metadata_config": {"mode": "GKE_METADATA"},
            },
            # Read once, and a replacement when it changes: how many nodes there are is the autoscaler's business.
            opts=ResourceOptions(parent=self, ignore_changes=["initialNodeCount"]),
        )
        self.register_outputs({"pool": self.pool.name})
