"""Pools on Azure: scale sets or NodePools of node auto-provisioning, and their summaries for the fallback controller."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pulumi
from pulumi import ComponentResource, ResourceOptions
from pulumi_azure_native.containerservice import AgentPool

from pulumi_holdfast.azure.names import agent_pool_name
from pulumi_holdfast.config import naming
from pulumi_holdfast.kubernetes.karpenter_pool import KarpenterPool, KarpenterPoolArgs, NodeClass, node_labels
from pulumi_holdfast.ladder.labels import (
    AKS_CILIUM,
    AKS_DATAPLANE,
    AKS_SCALE_SET_PRIORITY,
    AKS_SPOT_VALUE,
    CAPACITY_TYPE,
    CapacityType,
)
from pulumi_holdfast.ladder.machines import machine_catalogue
from pulumi_holdfast.ladder.machines.market import unused_network_warnings
from pulumi_holdfast.ladder.pools import spot_pool_warnings, weights
from pulumi_holdfast.ladder.reachability.machine_capacity import Provisioner
from pulumi_holdfast.ladder.reachability.pool_summary import PoolSummary, summarize_pool
from pulumi_holdfast.ladder.taints import CILIUM_AGENT_NOT_READY, aks_pool_taints

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pulumi import Input
    from pulumi_azure_native.containerservice import AgentPoolUpgradeSettingsArgsDict

    from pulumi_holdfast.azure.config.sections import AzurePlatform, AzurePool
    from pulumi_holdfast.azure.control_plane.component import AksCluster, ExistingAksCluster
    from pulumi_holdfast.ladder.json import JsonValue
    from pulumi_holdfast.ladder.machines import Machine
    from pulumi_holdfast.ladder.pools import Pool

#: Azure's value for no price limit: a machine is evicted for capacity only, never for its price.
NO_CAP: Final = -1.0

_CAP_DECIMALS: Final = 5

#: AKS cannot change these in place, and the provider does not know it. It does replace a pool for another VM
#: size.
_FIXED: Final = (
    "availabilityZones",
    "capacityReservationGroupID",
    "osDiskSizeGB",
    "scaleSetEvictionPolicy",
    "scaleSetPriority",
    "spotMaxPrice",
    "vnetSubnetID",
)


#: The tag with the digest of a pool's configuration.
CONFIGURATION_TAG: Final = "holdfast-configuration"

_DIGEST_CHARACTERS: Final = 12


@dataclass(frozen=True, kw_only=True)
class ConfigurationDigest:
    """The digests of what replaces a pool when it changes, and of what is updated in place."""

    replaced: str
    updated: str

    @classmethod
    def parse(cls, tag: str | None) -> ConfigurationDigest | None:
        """Return the digest in a tag; None for a pool without one."""
        replaced, dot, updated = (tag or "").partition(".")
        return cls(replaced=replaced, updated=updated) if dot else None

    def __str__(self) -> str:
        """Return the value of the tag."""
        return f"{self.replaced}.{self.updated}"


@dataclass(frozen=True, kw_only=True)
class ExistingPool:
    """An agent pool of the cluster: its current number of nodes and its configuration, None if it is unknown."""

    count: int
    configuration: ConfigurationDigest | None


@dataclass(frozen=True, kw_only=True)
class AksPoolArgs:
    """The pool's facts, its VM size and its zones (`1`, `2`, `3`; none: any).

    `cluster` is the cluster's name in `resource_group`, `subnet_id` the nodes' subnet, `kubernetes_version`
    the nodes' version (a minor version), `disk_gib` the system disk's size. `spot_max_price` is the maximum price of a
    spot machine in USD per hour; changing it replaces the pool. `tags` are put on the machines. `existing` is the
    pool as it is now; None for a new one. `reservation_group` is the ID of the capacity reservation group of a reserved
    pool; changing it replaces the pool.

    Raises ValueError for a pool that AKS would reject.
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
    existing: ExistingPool | None = None
    reservation_group: str | None = None

    def __post_init__(self) -> None:
        for problem in _problems(self):
            raise ValueError(f"pool {self.pool.name}: {problem}")

    @property
    def is_spot(self) -> bool:
        """Whether Azure may evict its machines."""
        return self.pool.capacity is CapacityType.SPOT


class AksPool(ComponentResource):
    """Nodes of one VM size and capacity type that scale with the pods that select them.

    Type token `holdfast:index:AksPool`. Creates an agent pool named by `agent_pool_name`, with no nodes at
    first. Its nodes carry the labels and taints of a Karpenter pool. AKS rejects it beside node
    auto-provisioning.
    """

    def __init__(self, name: str, args: AksPoolArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:AksPool", name, None, opts)
        count = node_count(args)
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
            # AKS requires a number on creation. Every update sends one too, which must be the current one.
            count=count.sent,
            min_count=0,
            max_count=args.pool.max_nodes,
            scale_down_mode="Delete",
            node_labels=pool_labels(args),
            node_taints=pool_taints(args),
            # AKS returns no priority for an on-demand pool; any value would show a difference.
            scale_set_priority="Spot" if args.is_spot else None,
            # A deallocated machine would count against the quota, and the autoscaler would wait for it.
            scale_set_eviction_policy="Delete" if args.is_spot else None,
            spot_max_price=args.spot_max_price if args.is_spot else None,
            capacity_reservation_group_id=args.reservation_group,
            upgrade_settings=upgrade_settings(args),
            tags={**args.tags, CONFIGURATION_TAG: str(configuration_of(args))},
            opts=ResourceOptions(
                parent=self,
                ignore_changes=["count"] if count.is_ignored else None,
                replace_on_changes=list(_FIXED),
                # The name is fixed, so the old pool must be deleted first.
                delete_before_replace=True,
            ),
        )
        self.register_outputs({})


@dataclass(frozen=True, kw_only=True)
class NodeCount:
    """The number of nodes in the inputs of a pool, and whether a change of it alone is no change of the pool."""

    sent: int
    is_ignored: bool


def node_count(args: AksPoolArgs) -> NodeCount:
    """Return the number of nodes to send.

    The autoscaler owns the number, but each update of a pool sends all of its properties. The state has the
    number of the last update or refresh, which AKS rejects or scales to. So a pool whose configuration changes
    is updated with its current number, and replaced by an empty one. The number of an unchanged pool is ignored.
    """
    existing, wanted = args.existing, configuration_of(args)
    if existing is None or existing.configuration == wanted:
        return NodeCount(sent=0 if existing is None else existing.count, is_ignored=True)
    known = existing.configuration
    is_replaced = known is not None and known.replaced != wanted.replaced
    return NodeCount(sent=0 if is_replaced else existing.count, is_ignored=False)


def configuration_of(args: AksPoolArgs) -> ConfigurationDigest:
    """Return the digests of the pool's configuration, which do not change with its number of nodes."""
    return ConfigurationDigest(
        replaced=_digest(
            args.machine.name,
            sorted(args.zones),
            args.disk_gib,
            args.pool.capacity.value,
            args.spot_max_price if args.is_spot else None,
            # Only where there is one: the digests of other pools stay as they are.
            *([] if args.reservation_group is None else [args.reservation_group]),
        ),
        updated=_digest(
            args.pool.max_nodes,
            pool_labels(args),
            pool_taints(args),
            args.kubernetes_version,
            args.tags,
            str(upgrade_settings(args)),
        ),
    )


def _digest(*values: JsonValue) -> str:
    text = json.dumps(values, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGEST_CHARACTERS]


def pool_labels(args: AksPoolArgs) -> Mapping[str, str]:
    """Return the labels of the pool's nodes: those of a Karpenter pool, and for spot AKS's own.

    AKS removes labels that a program does not name when it changes another one, including AKS's own label,
    which its documentation uses to select spot (https://github.com/Azure/AKS/issues/3152).
    """
    spot = {AKS_SCALE_SET_PRIORITY: AKS_SPOT_VALUE} if args.is_spot else {}
    return {**node_labels(args.pool, efa=False), CAPACITY_TYPE: args.pool.capacity.value, **spot}


def pool_taints(args: AksPoolArgs) -> Sequence[str]:
    """Return the taints of the pool's nodes in AKS's form."""
    declared = aks_pool_taints(capacity=args.pool.capacity, has_gpus=args.pool.has_gpus)
    return [f"{taint.key}={taint.value}:{taint.effect}" for taint in declared]


def upgrade_settings(args: AksPoolArgs) -> AgentPoolUpgradeSettingsArgsDict | None:
    """Return how AKS upgrades the nodes; it accepts no setting for spot pools.

    All nodes at once and in place: a job restarts when any of its nodes is drained, so one node at a time
    would cost one restart per node, and there is rarely capacity for surge nodes.
    """
    return None if args.is_spot else {"max_surge": "0", "max_unavailable": "100%"}


def _problems(args: AksPoolArgs) -> Iterator[str]:
    machine, pool, cap = args.machine, args.pool, args.spot_max_price
    if pool.has_gpus != bool(machine.gpus):
        yield f"{machine.name} has {machine.gpus} GPUs, which contradicts the pool"
    if (pool.capacity is CapacityType.RESERVED) != (args.reservation_group is not None):
        yield "a reserved pool, and no other, needs reservation_group: set both or neither"
    if cap != NO_CAP and not args.is_spot:
        yield "only a spot pool can have spot_max_price"
    if cap != NO_CAP and (cap <= 0 or round(cap, _CAP_DECIMALS) != cap):
        yield f"spot_max_price is {cap:g}: set a price above 0 with up to {_CAP_DECIMALS} decimals, or {NO_CAP:g} for no limit"


@dataclass(frozen=True, kw_only=True)
class AksNodeClassArgs:
    """Arguments of `aks_node_class`.

    `disk_gib` is the system disk's size, 30 to 2048; `tags` are put on the machines.
    """

    disk_gib: int
    tags: Mapping[str, str] = field(default_factory=dict[str, str])


def aks_node_class(args: AksNodeClassArgs) -> NodeClass:
    """Return the AKSNodeClass of a pool for node auto-provisioning.

    AKS installs and upgrades the CRD and the controller, so only fields that exist since v1beta1 are used.
    The cluster sets the nodes' subnet and disk encryption. AKS installs GPU drivers and offers only machine
    sizes that have one.

    AKS starts nodes with the taint of Cilium, which its agent removes. Karpenter would buy further nodes for
    pods that do not tolerate a taint it does not know. It counts the agent's resources by the label.
    """
    return NodeClass(
        group="karpenter.azure.com",
        version="v1beta1",
        kind="AKSNodeClass",
        spec={
            # The API server's defaults; left out, they would show as differences.
            "imageFamily": "Ubuntu",
            "osDiskSizeGB": args.disk_gib,
            "tags": args.tags,
        },
        labels={AKS_DATAPLANE: AKS_CILIUM},
        startup_taints=[CILIUM_AGENT_NOT_READY],
    )


@dataclass(frozen=True, kw_only=True)
class PoolDependencies:
    """What pools depend on; `tags` are those of every machine, `existing` the scale sets that exist, by name.

    `cluster_name` is the logical name of their TrainingCluster.
    """

    cluster_name: str
    cluster: AksCluster | ExistingAksCluster
    kubernetes_version: str
    tags: Mapping[str, str]
    existing: Mapping[str, ExistingPool]


def make_pools(
    platform: AzurePlatform, dependencies: PoolDependencies, *, after: pulumi.ResourceOptions
) -> Sequence[pulumi.Resource]:
    """Create every pool, dependent on the resources in `after`.

    Scale sets are created one after the other: AKS locks the virtual network for each, and fails if another one holds
    the lock (https://github.com/Azure/AKS/issues/4522).
    """
    if not platform.has_scale_sets:
        weight = weights(platform.scheduling_pools())
        return [
            _provisioned(pool, platform, dependencies, weight[pool.name], after) for pool in platform.pools
        ]
    made: list[AksPool] = []
    for pool in platform.pools:
        in_turn = pulumi.ResourceOptions.merge(after, pulumi.ResourceOptions(depends_on=made[-1:]))
        made.append(_scale_set(pool, platform, dependencies, in_turn))
    return made


def pool_summaries(platform: AzurePlatform) -> Mapping[str, PoolSummary]:
    """The summary of each pool for the fallback controller, by name, with the taint that AKS adds to spot scale sets."""
    if not platform.has_scale_sets:
        provisioned = [(each, each.as_pool(platform.location)) for each in platform.pools]
        return {
            pool.name: summarize_pool(
                pool,
                config.machines(platform.location),
                pool.taints,
                node_labels(pool, efa=False),
                provisioner=Provisioner.NAP,
                zones=_labelled(config.zones, platform.location),
            )
            for config, pool in provisioned
        }
    found: dict[str, PoolSummary] = {}
    for config in platform.pools:
        pool = config.as_pool(platform.location)
        for machine in config.machines(platform.location):
            taints = aks_pool_taints(capacity=pool.capacity, has_gpus=pool.has_gpus)
            labels = {**node_labels(pool, efa=False), CAPACITY_TYPE: pool.capacity.value}
            zones = _labelled(config.zones, platform.location)
            found[pool.name] = summarize_pool(
                pool, [machine], taints, labels, provisioner=Provisioner.AKS, zones=zones
            )
    return found


def _labelled(zones: Sequence[str], location: str) -> Sequence[str]:
    """Return zones as the label of nodes writes them: `westeurope-1`."""
    return [f"{location}-{zone}" for zone in zones]


def _provisioned(
    config: AzurePool,
    platform: AzurePlatform,
    dependencies: PoolDependencies,
    weight: int,
    after: pulumi.ResourceOptions,
) -> KarpenterPool:
    pool, machines = config.as_pool(platform.location), config.machines(platform.location)
    for warning in (
        *spot_pool_warnings(pool, machines),
        *unused_network_warnings(pool.name, machines, max_nodes=pool.max_nodes),
    ):
        pulumi.log.warn(warning)
    return KarpenterPool(
        naming.pool(dependencies.cluster_name, config.name),
        KarpenterPoolArgs(
            pool=pool,
            machines=machines,
            node_class=aks_node_class(AksNodeClassArgs(disk_gib=config.disk_gib, tags=dependencies.tags)),
            weight=weight,
            zones=_labelled(config.zones, platform.location),
            roll_out=config.roll_out,
        ),
        opts=after,
    )


def _scale_set(
    config: AzurePool, platform: AzurePlatform, dependencies: PoolDependencies, after: pulumi.ResourceOptions
) -> AksPool:
    machine = machine_catalogue("azure")[config.vm_size]
    for warning in unused_network_warnings(config.name, [machine], max_nodes=config.max_nodes):
        pulumi.log.warn(warning)
    cluster = dependencies.cluster
    return AksPool(
        naming.pool(dependencies.cluster_name, config.name),
        AksPoolArgs(
            pool=config.as_pool(platform.location),
            machine=machine,
            zones=config.zones,
            cluster=cluster.cluster_reference,
            resource_group=cluster.resource_group,
            subnet_id=cluster.subnet_id,
            kubernetes_version=dependencies.kubernetes_version,
            disk_gib=config.disk_gib,
            spot_max_price=config.price_cap,
            tags=dependencies.tags,
            existing=dependencies.existing.get(config.name),
            reservation_group=None if config.reservation is None else config.reservation.group,
        ),
        opts=after,
    )
