"""The control plane of an AKS cluster, its system pool, upgrades and maintenance windows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from pulumi import ComponentResource, ResourceOptions
from pulumi_azure_native.containerservice import (
    MaintenanceConfiguration,
    ManagedCluster,
    ResourceIdentityType,
)

from pulumi_holdfast.azure.control_plane.access import dns_service_ip
from pulumi_holdfast.ladder.labels import SYSTEM, SYSTEM_VALUE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi import Input, Resource
    from pulumi_azure_native.containerservice import (
        ContainerServiceNetworkProfileArgsDict,
        MaintenanceWindowArgsDict,
        ManagedClusterAgentPoolProfileArgsDict,
        ManagedClusterAutoUpgradeProfileArgsDict,
        ManagedClusterNodeProvisioningProfileArgsDict,
    )

    from pulumi_holdfast.azure.control_plane.access import ApiServerAccess
    from pulumi_holdfast.azure.network import NodeSubnet, Outbound


#: At most 12 lower-case letters and digits.
SYSTEM_POOL: Final = "system"
#: AKS's services and the operators tolerate it; jobs do not.
SYSTEM_TAINT: Final = "CriticalAddonsOnly=true:NoSchedule"

_FEWEST: Final = 2


@dataclass(frozen=True, kw_only=True)
class SystemNodesArgs:
    """The system nodes: `count` nodes (two or more) without GPUs in `zones` (`1`, `2`, `3`).

    Without zones AKS decides. `vm_size` has four vCPUs or more and is not of the B series, as AKS requires.
    `tags` are put on the machines. Raises ValueError for a lower count.
    """

    vm_size: str
    count: int = _FEWEST
    zones: Sequence[str] = ()
    disk_gib: int = 128
    tags: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        if self.count < _FEWEST:
            raise ValueError(f"count is {self.count}: a system pool needs {_FEWEST} nodes or more")

    def as_profile(self, *, version: str, subnet_id: Input[str]) -> ManagedClusterAgentPoolProfileArgsDict:
        """Return the pool as part of the cluster, which AKS requires.

        Its size is fixed: AKS rejects an autoscaled pool beside node auto-provisioning.
        """
        profile: ManagedClusterAgentPoolProfileArgsDict = {
            "name": SYSTEM_POOL,
            "mode": "System",
            "type": "VirtualMachineScaleSets",
            "os_type": "Linux",
            "vm_size": self.vm_size,
            "count": self.count,
            # Set so that the nodes follow the control plane to another version; otherwise AKS leaves them.
            "orchestrator_version": version,
            "os_disk_size_gb": self.disk_gib,
            "vnet_subnet_id": subnet_id,
            "node_labels": {SYSTEM: SYSTEM_VALUE},
            "node_taints": [SYSTEM_TAINT],
            # Operators move to a new node before the old one is removed.
            "upgrade_settings": {"max_surge": "1"},
        }
        if self.tags:
            # The cluster's tags do not reach its machines and their disks; these do.
            profile["tags"] = {**self.tags}
        if self.zones:
            profile["availability_zones"] = [*self.zones]
        return profile


#: AKS's other channels move to the next minor version. The stack's version would then be a downgrade at the
#: next `up`, which AKS rejects.
ClusterChannel: TypeAlias = Literal["none", "patch"]
NodeOsChannel: TypeAlias = Literal["None", "Unmanaged", "SecurityPatch", "NodeImage"]


@dataclass(frozen=True, kw_only=True)
class Upgrades:
    """The upgrade channels of Kubernetes and of the nodes' operating system.

    `cluster`: `patch` drains every node for each patch version; `none` upgrades only when the stack's version
    changes. `node_os`: `NodeImage` drains every node each week, `SecurityPatch` only if a patch cannot be
    applied live, `Unmanaged` never: Ubuntu patches itself at night.
    """

    cluster: ClusterChannel = "none"
    node_os: NodeOsChannel = "SecurityPatch"

    def as_profile(self) -> ManagedClusterAutoUpgradeProfileArgsDict:
        """Return AKS's upgrade profile."""
        return {"upgrade_channel": self.cluster, "node_os_upgrade_channel": self.node_os}


Day: TypeAlias = Literal["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]

#: AKS's names of the three maintenance configurations: Kubernetes versions, node images (which node
#: auto-provisioning respects too) and AKS's weekly releases of control plane and add-ons.
_SCHEDULES: Final[Mapping[str, str]] = {
    "version": "aksManagedAutoUpgradeSchedule",
    "node-os": "aksManagedNodeOSUpgradeSchedule",
    "releases": "default",
}

#: AKS accepts 4 to 24 hours.
_HOURS: Final = range(4, 25)


@dataclass(frozen=True, kw_only=True)
class NoUpgrades:
    """The first and the last day without upgrades (`2026-12-20`)."""

    start: str
    end: str


@dataclass(frozen=True, kw_only=True)
class Maintenance:
    """The weekly hours in which AKS performs automatic upgrades.

    `start` is a time in UTC (`02:00`), `hours` the length (4 to 24), `every_weeks` the interval. `start_date`
    is the first day (`2026-01-03`); it is a constant because "now" would show a difference at each `up`.
    Raises ValueError for another length.
    """

    day: Day
    start: str
    hours: int
    start_date: str
    every_weeks: int = 1
    exclusions: Sequence[NoUpgrades] = ()

    def __post_init__(self) -> None:
        if self.hours not in _HOURS:
            raise ValueError(f"hours is {self.hours}: AKS allows {_HOURS.start} to {_HOURS.stop - 1}")

    def as_window(self) -> MaintenanceWindowArgsDict:
        """Return AKS's maintenance window."""
        window: MaintenanceWindowArgsDict = {
            # The only schedule that all three configurations support.
            "schedule": {"weekly": {"day_of_week": self.day, "interval_weeks": self.every_weeks}},
            "start_time": self.start,
            "utc_offset": "+00:00",
            "duration_hours": self.hours,
            "start_date": self.start_date,
        }
        if self.exclusions:
            window["not_allowed_dates"] = [{"start": one.start, "end": one.end} for one in self.exclusions]
        return window


@dataclass(frozen=True, kw_only=True)
class MaintenanceScheduleArgs:
    """The window, and the cluster's resource group and name."""

    maintenance: Maintenance
    resource_group: Input[str]
    cluster: Input[str]


class MaintenanceSchedule(ComponentResource):
    """One window for all automatic upgrades of a cluster (`holdfast:index:MaintenanceSchedule`).

    Creates a MaintenanceConfiguration for Kubernetes versions, one for node images and one for AKS's
    releases. Without the second one node auto-provisioning applies new images at any time.
    """

    def __init__(self, name: str, args: MaintenanceScheduleArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:MaintenanceSchedule", name, None, opts)
        for what, schedule in _SCHEDULES.items():
            MaintenanceConfiguration(
                f"{name}-{what}",
                config_name=schedule,
                resource_group_name=args.resource_group,
                resource_name_=args.cluster,
                maintenance_window=args.maintenance.as_window(),
                opts=ResourceOptions(parent=self),
            )
        self.register_outputs({})


#: `nap`: node auto-provisioning, AKS's managed Karpenter. `fixed`: one scale set for each pool. AKS does not
#: allow autoscaled pools beside node auto-provisioning.
Scaling: TypeAlias = Literal["nap", "fixed"]

#: The longest DNS prefix of the API server's name that AKS accepts.
_LONGEST_PREFIX: Final = 54


@dataclass(frozen=True, kw_only=True)
class AksControlPlaneArgs:
    """As in `AksClusterArgs`; `identity_id` may use the subnet and the disk encryption set."""

    cluster_name: str
    location: str
    tenant_id: str
    resource_group: Input[str]
    node_resource_group: str
    version: str
    scaling: Scaling
    network: NodeSubnet
    pods_cidr: str
    services_cidr: str
    access: ApiServerAccess
    identity_id: Input[str]
    upgrades: Upgrades
    system_nodes: SystemNodesArgs
    disk_encryption_set_id: Input[str] | None
    protected: bool
    managed_prometheus: bool
    mounts_blobs: bool = False


def aks_control_plane(
    name: str, args: AksControlPlaneArgs, *, parent: Resource, depends_on: Sequence[Resource] = ()
) -> ManagedCluster:
    """Create the managed control plane with the system pool.

    Only the system pool is part of it: AKS creates no cluster without one. No property is ignored; otherwise a change of another
    property would restore deleted pools.
    """
    return ManagedCluster(
        name,
        resource_name_=args.cluster_name,
        resource_group_name=args.resource_group,
        location=args.location,
        node_resource_group=args.node_resource_group,
        dns_prefix=args.cluster_name[:_LONGEST_PREFIX].rstrip("-"),
        kubernetes_version=args.version,
        # The free tier has a smaller API server that throttles clients of larger clusters.
        sku={"name": "Base", "tier": "Standard"},
        identity={"type": ResourceIdentityType.USER_ASSIGNED, "user_assigned_identities": [args.identity_id]},
        # Access requires an Entra ID identity with an Azure role; there is no static credential to leak.
        disable_local_accounts=True,
        enable_rbac=True,
        aad_profile={"managed": True, "enable_azure_rbac": True, "tenant_id": args.tenant_id},
        # Required for the workload identity of pods.
        oidc_issuer_profile={"enabled": True},
        security_profile={"workload_identity": {"enabled": True}},
        api_server_access_profile=args.access.as_profile(args.network.egress_cidrs),
        network_profile=_network(args.network.outbound, args.pods_cidr, args.services_cidr),
        storage_profile={"blob_csi_driver": {"enabled": True}} if args.mounts_blobs else None,
        node_provisioning_profile=_node_provisioning(args.scaling),
        auto_upgrade_profile=args.upgrades.as_profile(),
        agent_pool_profiles=[
            args.system_nodes.as_profile(version=args.version, subnet_id=args.network.subnet_id)
        ],
        disk_encryption_set_id=args.disk_encryption_set_id,
        azure_monitor_profile={"metrics": {"enabled": True}} if args.managed_prometheus else None,
        opts=ResourceOptions(parent=parent, depends_on=depends_on, protect=True if args.protected else None),
    )


def _network(outbound: Outbound, pods: str, services: str) -> ContainerServiceNetworkProfileArgsDict:
    return {
        "network_plugin": "azure",
        "network_plugin_mode": "overlay",
        "network_dataplane": "cilium",
        "network_policy": "cilium",
        # AKS's default, but node auto-provisioning requires it to be explicit (Azure/AKS #4759).
        "ip_families": ["IPv4"],
        "load_balancer_sku": "standard",
        "outbound_type": outbound,
        "pod_cidr": pods,
        "service_cidr": services,
        "dns_service_ip": dns_service_ip(services),
    }


def _node_provisioning(scaling: Scaling) -> ManagedClusterNodeProvisioningProfileArgsDict:
    # AKS's default NodePools would add nodes beside the pools, without their limits and taints. Turning them
    # off later deletes them and drains their nodes.
    return {"mode": "Auto", "default_node_pools": "None"} if scaling == "nap" else {"mode": "Manual"}
