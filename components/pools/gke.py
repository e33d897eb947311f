"""A pool of GKE: one node pool, kept by the cluster's own autoscaler."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from pulumi import ComponentResource, ResourceOptions
from pulumi_gcp.container import NodePool

from holdfast.components.pools.gke_node_config import node_config
from holdfast.scheduling.labels import CapacityType
from holdfast.scheduling.machines import can_be_placed_compactly

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pulumi import Input
    from pulumi_gcp.container import NodePoolUpgradeSettingsArgsDict

    from holdfast.scheduling.machines import Machine
    from holdfast.scheduling.pools import Pool

#: `surge`: node by node in place, for machines of which there are no more to be had. `blue-green`: a second set of nodes
#: is bought first, and all pods move at once.
Upgrades: TypeAlias = Literal["surge", "blue-green"]

#: The seconds that GKE lets a preempted node have.
GracefulShutdown: TypeAlias = Literal[0, 30, 120]

#: Which of the drivers that belong to the node's image.
GpuDriver: TypeAlias = Literal["default", "latest"]

_LONGEST_NAME: Final = 40


@dataclass(frozen=True, kw_only=True)
class GkePoolArgs:
    """A pool's facts, its one machine type (with the GPUs attached to it), and the zones of its nodes (one or more).

    `cluster` is the cluster's name, `location` its region or zone, `node_service_account` the e-mail of the account that
    the nodes have. `disk_gib` is the boot disk's size. `compact_placement`: in one zone, close to each other; to change it,
    or the zone then, is to replace the pool. `graceful_shutdown_seconds`: what a preempted node has, the
    cluster's own pods included; on demand it means nothing. `compute_class`: the ComputeClass by which pods reach the pool.

    Raises ValueError where GKE has no such pool.
    """

    pool: Pool
    machine: Machine
    zones: Sequence[str]
    cluster: Input[str]
    project: str
    location: str
    node_service_account: Input[str]
    upgrades: Upgrades
    disk_gib: int
    compact_placement: bool = False
    graceful_shutdown_seconds: GracefulShutdown = 30
    gpu_driver: GpuDriver = "default"
    compute_class: str | None = None

    def __post_init__(self) -> None:
        for problem in _problems(self):
            raise ValueError(f"pool {self.pool.name}: {problem}")


class GkePool(ComponentResource):
    """Nodes of one machine type and one capacity type that come and go with the pods which select them.

    Creates a node pool under the pool's name, with no nodes at first and no more than `max_nodes` in all its zones. Its
    spot nodes are tainted here; GPU nodes are tainted by GKE, if the cluster has a pool without GPUs by then: make it
    after the cluster's system pool.
    """

    def __init__(self, name: str, args: GkePoolArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:GkePool", name, None, opts)
        is_spot = args.pool.capacity is CapacityType.SPOT
        NodePool(
            f"{name}-node-pool",
            name=args.pool.name,
            cluster=args.cluster,
            project=args.project,
            location=args.location,
            node_locations=sorted(args.zones),
            initial_node_count=0,
            # The number of nodes is the autoscaler's: it is not looked up, so that it never shows as a change.
            ignore_node_count_changes=True,
            autoscaling={
                "total_min_node_count": 0,
                "total_max_node_count": args.pool.max_nodes,
                # Spot nodes come from wherever there are some, the others evenly from all zones.
                "location_policy": "ANY" if is_spot else "BALANCED",
            },
            management={"auto_repair": True, "auto_upgrade": True},
            upgrade_settings=upgrade_settings(args.upgrades),
            network_config={"enable_private_nodes": True},
            node_config=node_config(args),
            placement_policy={"type": "COMPACT"} if args.compact_placement else None,
            opts=ResourceOptions(
                parent=self,
                # GKE keeps the number that a pool was last resized to by hand here, and the provider would replace it.
                ignore_changes=["initialNodeCount"],
                # The name is the user's own: its successor can only follow.
                delete_before_replace=True,
                replace_on_changes=["nodeLocations"] if args.compact_placement else None,
            ),
        )
        self.register_outputs({})


def upgrade_settings(upgrades: Upgrades) -> NodePoolUpgradeSettingsArgsDict:
    """How GKE brings a new version to the nodes.

    Disruption budgets hold it up for an hour at most: a job that trains sees an upgrade as one more preemption.
    """
    if upgrades == "surge":
        return {"strategy": "SURGE", "max_surge": 0, "max_unavailable": 1}
    return {
        "strategy": "BLUE_GREEN",
        "blue_green_settings": {
            # A job restarts when any of its nodes goes: batch after batch would cost it one restart for each.
            "standard_rollout_policy": {"batch_percentage": 1.0, "batch_soak_duration": "0s"},
            "node_pool_soak_duration": "0s",
        },
    }


def _problems(args: GkePoolArgs) -> Iterator[str]:
    machine, pool = args.machine, args.pool
    if len(pool.name) > _LONGEST_NAME:
        yield f"GKE's names for node pools have at most {_LONGEST_NAME} characters"
    if not args.zones:
        yield "it needs a zone"
    if pool.has_gpus != bool(machine.gpus):
        yield f"{machine.name} has {machine.gpus} GPUs, and the pool says otherwise"
    if args.compact_placement and len(args.zones) != 1:
        yield "machines close to each other are in exactly one zone"
    if args.compact_placement and not can_be_placed_compactly(machine):
        yield f"machines of {machine.name} cannot be placed close to each other"
