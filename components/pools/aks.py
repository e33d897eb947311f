"""A pool of AKS without node auto-provisioning: one scale set, kept by the cluster's own autoscaler."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from pulumi import ComponentResource, ResourceOptions
from pulumi_azure_native.containerservice import AgentPool

from holdfast.components.azure_names import agent_pool_name
from holdfast.components.pools.karpenter import NodeClass, node_labels
from holdfast.scheduling.labels import AKS_SCALE_SET_PRIORITY, AKS_SPOT_VALUE, CAPACITY_TYPE, CapacityType
from holdfast.scheduling.taints import aks_pool_taints

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pulumi import Input
    from pulumi_azure_native.containerservice import AgentPoolUpgradeSettingsArgsDict

    from holdfast.scheduling.machines import Machine
    from holdfast.scheduling.pools import Pool


#: What AKS takes for no other end than the on-demand price: a machine goes when Azure wants it back, never for its price.
NO_CAP: Final = -1.0

_CAP_DECIMALS: Final = 5

#: What AKS does not change in place, and the provider does not know of; it replaces a pool for another VM size itself.
_FIXED: Final = (
    "availabilityZones",
    "osDiskSizeGB",
    "scaleSetEvictionPolicy",
    "scaleSetPriority",
    "spotMaxPrice",
    "vnetSubnetID",
)


@dataclass(frozen=True, kw_only=True)
class AksPoolArgs:
    """A pool's facts, its one VM size, and the zones of its nodes (`1`, `2`, `3`; none: wherever there is room).

    `cluster` is the cluster's name in `resource_group`, `subnet_id` the nodes' subnet, `kubernetes_version` (`1.36`)
    that of the nodes. `disk_gib` is the system disk's size. `spot_max_price`, in USD an hour, is the most that a
    spot machine may cost; to change it is to replace the pool. `tags` are put on the machines.

    Raises ValueError where AKS has no such pool.
    """

    pool: Pool
    machine: Machine
    zones: Sequence[str]
    cluster: Input[str]
    resource_group: Input[str]
    subnet_id: Input[str]
    kubernetes_version: str
    disk_gib: int
    spot_max_price: float = NO_CAP
    tags: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        for problem in _problems(self):
            raise ValueError(f"pool {self.pool.name}: {problem}")

    @property
    def is_spot(self) -> bool:
        """Whether its machines are Azure's to take back."""
        return self.pool.capacity is CapacityType.SPOT


class AksPool(ComponentResource):
    """Nodes of one VM size and one capacity type that come and go with the pods which select them.

    Creates an agent pool under the name that `agent_pool_name` makes of the pool's, with no nodes at first. Its nodes
    carry the labels and taints of a Karpenter pool. AKS refuses it beside node auto-provisioning.
    """

    def __init__(self, name: str, args: AksPoolArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:AksPool", name, None, opts)
        AgentPool(
            f"{name}-agent-pool",
            agent_pool_name=agent_pool_name(args.pool.name),
            resource_name_=args.cluster,
            resource_group_name=args.resource_group,
            type="VirtualMachineScaleSets",
            mode="User",
            os_type="Linux",
            os_sku="Ubuntu",
            orchestrator_version=args.kubernetes_version,
            vm_size=args.machine.name,
            os_disk_size_gb=args.disk_gib,
            vnet_subnet_id=args.subnet_id,
            availability_zones=sorted(args.zones) or None,
            enable_auto_scaling=True,
            # AKS wants a number when a pool is made; from then on it is the autoscaler's.
            count=0,
            min_count=0,
            max_count=args.pool.max_nodes,
            scale_down_mode="Delete",
            node_labels=pool_labels(args),
            node_taints=pool_taints(args),
            # Of a pool on demand AKS tells no priority: there is nothing to compare one with.
            scale_set_priority="Spot" if args.is_spot else None,
            # A machine that were kept would count against the quota, and the autoscaler take it for a node to come.
            scale_set_eviction_policy="Delete" if args.is_spot else None,
            spot_max_price=args.spot_max_price if args.is_spot else None,
            upgrade_settings=upgrade_settings(args),
            tags=args.tags,
            opts=ResourceOptions(
                parent=self,
                ignore_changes=["count"],
                replace_on_changes=list(_FIXED),
                # The name is the user's own: its successor can only follow.
                delete_before_replace=True,
            ),
        )
        self.register_outputs({})


def pool_labels(args: AksPoolArgs) -> Mapping[str, str]:
    """The labels of a pool's nodes: those that Karpenter would give them, and for spot the one that AKS adds.

    Labels that a program does not name are taken away when it changes another: AKS's own as well, by which its pages
    tell users to select spot (https://github.com/Azure/AKS/issues/3152).
    """
    spot = {AKS_SCALE_SET_PRIORITY: AKS_SPOT_VALUE} if args.is_spot else {}
    return {**node_labels(args.pool, efa=False), CAPACITY_TYPE: args.pool.capacity.value, **spot}


def pool_taints(args: AksPoolArgs) -> Sequence[str]:
    """The taints of a pool's nodes, as AKS spells them."""
    declared = aks_pool_taints(capacity=args.pool.capacity, has_gpus=args.pool.has_gpus)
    return [f"{taint.key}={taint.value}:{taint.effect}" for taint in declared]


def upgrade_settings(args: AksPoolArgs) -> AgentPoolUpgradeSettingsArgsDict | None:
    """How AKS brings a new version to the nodes; of spot pools it takes no word on that.

    All at once and in place: a job restarts when any of its nodes goes, so one after the other would cost it one
    restart for each, and of machines that train there are no more to be had for a surge.
    """
    return None if args.is_spot else {"max_surge": "0", "max_unavailable": "100%"}


def _problems(args: AksPoolArgs) -> Iterator[str]:
    machine, pool, cap = args.machine, args.pool, args.spot_max_price
    if pool.has_gpus != bool(machine.gpus):
        yield f"{machine.name} has {machine.gpus} GPUs, and the pool says otherwise"
    if cap != NO_CAP and not args.is_spot:
        yield "only a spot machine's price can be capped"
    if cap != NO_CAP and (cap <= 0 or round(cap, _CAP_DECIMALS) != cap):
        yield f"a price cap is above 0 with up to {_CAP_DECIMALS} decimals, or {NO_CAP:g} for the on-demand price"


@dataclass(frozen=True, kw_only=True)
class AksNodeClassArgs:
    """How a pool's machines are started.

    `disk_gib` is the size of the system disk, 30 to 2048; `tags` are put on the machines.
    """

    disk_gib: int
    tags: Mapping[str, str] = field(default_factory=dict[str, str])


def aks_node_class(args: AksNodeClassArgs) -> NodeClass:
    """The AKSNodeClass of a pool.

    It says little: AKS has the CRD and the controller, and brings both up to date when it likes, so that only fields
    stand here which every version since v1beta1 has had. What it leaves out is the cluster's: the nodes' subnet and the
    key their disks are encrypted with. GPU drivers are AKS's, so that only sizes are bought which it has one for.
    """
    return NodeClass(
        group="karpenter.azure.com",
        version="v1beta1",
        kind="AKSNodeClass",
        spec={
            # Both are what the API server would write in itself; unsaid, they would be differences.
            "imageFamily": "Ubuntu",
            "osDiskSizeGB": args.disk_gib,
            "tags": args.tags,
        },
    )
