"""The system nodes of a GKE cluster, and the service account of all its nodes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pulumi import ComponentResource, Input, Output, Resource, ResourceOptions
from pulumi_gcp.container import NodePool
from pulumi_gcp.projects import IAMMember
from pulumi_gcp.serviceaccount import Account

from pulumi_holdfast.kubernetes.kubernetes_object import tied_to
from pulumi_holdfast.ladder.labels import SYSTEM, SYSTEM_VALUE

#: The longest ID of a service account.
_LONGEST_ID: Final = 30

#: To write logs and metrics, the minimum that GKE requires for nodes, and to pull the project's images. Pods
#: do not get these: GKE's metadata server gives them tokens of their own service account.
_ROLES: Final[Mapping[str, str]] = {
    "logs-and-metrics": "roles/container.defaultNodeServiceAccount",
    "images": "roles/artifactregistry.reader",
}


def account_id(cluster_name: str) -> str:
    """Return the ID of the nodes' service account: `<cluster>-nodes`, with a digest if it is too long."""
    whole = f"{cluster_name}-nodes"
    if len(whole) <= _LONGEST_ID:
        return whole
    mark = hashlib.sha256(cluster_name.encode()).hexdigest()[:6]
    return f"{cluster_name[: _LONGEST_ID - len(mark) - 1].rstrip('-')}-{mark}"


@dataclass(frozen=True, kw_only=True)
class NodeIdentityArgs:
    """The cluster's name and project."""

    cluster_name: str
    project: str


class NodeIdentity(ComponentResource):
    """The service account of all nodes of a cluster (`holdfast:index:NodeIdentity`).

    Creates the account and its two roles, instead of Compute Engine's default account, which may edit the
    project. `email` depends on the roles: nodes can write logs and pull images as long as they exist.
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


#: The service account's roles define the permissions; a narrower scope would only reduce them.
OAUTH_SCOPES: Final = ("https://www.googleapis.com/auth/cloud-platform",)


@dataclass(frozen=True, kw_only=True)
class SystemNodesArgs:
    """`machine_type` has no GPU. Each zone has `per_zone` nodes and up to `spare_per_zone` more if needed.

    With `image_streaming` containers start while their images are still being pulled from Artifact Registry.
    """

    machine_type: str
    per_zone: int = 1
    spare_per_zone: int = 2
    disk_gib: int = 50
    image_streaming: bool = True


@dataclass(frozen=True, kw_only=True)
class SystemPoolArgs:
    """The nodes and their cluster: its project, location and name."""

    nodes: SystemNodesArgs
    project: str
    location: str
    zones: Sequence[str]
    cluster: Input[str]
    service_account: Input[str]


def system_pool(name: str, args: SystemPoolArgs, *, parent: Resource) -> NodePool:
    """Create the pool without GPUs, before all others: GKE taints GPU nodes only if the cluster has a pool without GPUs.

    Unlike on EKS it has no taint: GKE's own services (DNS, metrics, log agents) would not tolerate it, and Ray heads run here too.
    Operators select these nodes by their label. Pods without a selector run here and add a node if there is no room.
    """
    nodes = args.nodes
    # With a generated name, a replacement is created before the old pool is deleted.
    return NodePool(
        name,
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
        # A release channel requires both.
        management={"auto_repair": True, "auto_upgrade": True},
        # Operators move to a new node before the old one is removed.
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
            "gcfs_config": {"enabled": nodes.image_streaming},
            "metadata": {"disable-legacy-endpoints": "true"},
            "shielded_instance_config": {"enable_secure_boot": True, "enable_integrity_monitoring": True},
            # Pods reach GKE's metadata server, which gives them their own identity, not the node's.
            "workload_metadata_config": {"mode": "GKE_METADATA"},
        },
        # GKE reads it on creation only, and a change would replace the pool; the autoscaler sets the
        # number of nodes.
        opts=ResourceOptions(parent=parent, ignore_changes=["initialNodeCount"]),
    )
