"""The control plane of an AKS cluster, with the nodes that it cannot be made without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from pulumi import ComponentResource, ResourceOptions
from pulumi_azure_native.containerservice import (
    MaintenanceConfiguration,
    ManagedCluster,
    ResourceIdentityType,
)

from holdfast.components.cluster.aks.access import dns_service_ip
from holdfast.scheduling.labels import SYSTEM, SYSTEM_VALUE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi import Input
    from pulumi_azure_native.containerservice import (
        ContainerServiceNetworkProfileArgsDict,
        MaintenanceWindowArgsDict,
        ManagedClusterAgentPoolProfileArgsDict,
        ManagedClusterAutoUpgradeProfileArgsDict,
        ManagedClusterNodeProvisioningProfileArgsDict,
    )

    from holdfast.components.cluster.aks.access import ApiServerAccess
    from holdfast.components.network.azure import NodeSubnet, Outbound


#: AKS takes up to 12 small letters and digits.
SYSTEM_POOL: Final = "system"
#: AKS's own services tolerate it, as our operators do; what a job brings does not.
SYSTEM_TAINT: Final = "CriticalAddonsOnly=true:NoSchedule"

_FEWEST: Final = 2


@dataclass(frozen=True, kw_only=True)
class SystemNodesArgs:
    """Nodes without GPUs: `count` of them, two or more, spread over `zones` (`1`, `2`, `3`; none: AKS's choice).

    `vm_size` has four vCPUs or more and is not of the B series: AKS takes no other. Raises ValueError for fewer nodes.
    """

    vm_size: str
    count: int = _FEWEST
    zones: Sequence[str] = ()
    disk_gib: int = 128

    def __post_init__(self) -> None:
        """Refuse a pool that is gone with one machine."""
        if self.count < _FEWEST:
            raise ValueError(f"count is {self.count}: a system pool has {_FEWEST} nodes or more")

    def as_profile(self, *, version: str, subnet_id: Input[str]) -> ManagedClusterAgentPoolProfileArgsDict:
        """The pool as a cluster's own, which AKS cannot be made without.

        Of a fixed size: with node auto-provisioning AKS refuses a pool that grows by itself.
        """
        profile: ManagedClusterAgentPoolProfileArgsDict = {
            "name": SYSTEM_POOL,
            "mode": "System",
            "type": "VirtualMachineScaleSets",
            "os_type": "Linux",
            "vm_size": self.vm_size,
            "count": self.count,
            # Named, so that the nodes follow the control plane to another version; AKS leaves them otherwise.
            "orchestrator_version": version,
            "os_disk_size_gb": self.disk_gib,
            "vnet_subnet_id": subnet_id,
            "node_labels": {SYSTEM: SYSTEM_VALUE},
            "node_taints": [SYSTEM_TAINT],
            # Operators move to a new node before theirs goes.
            "upgrade_settings": {"max_surge": "1"},
        }
        if self.zones:
            profile["availability_zones"] = [*self.zones]
        return profile


#: AKS has channels that go on to the next minor version. With one of them the stack's own version would be a downgrade at
#: the next `up`, which AKS refuses.
ClusterChannel: TypeAlias = Literal["none", "patch"]
NodeOsChannel: TypeAlias = Literal["None", "Unmanaged", "SecurityPatch", "NodeImage"]


@dataclass(frozen=True, kw_only=True)
class Upgrades:
    """The channels of the Kubernetes version and of the nodes' operating system.

    `cluster`: `patch` drains every node for each patch; `none` waits until the stack's version is written anew.
    `node_os`: `NodeImage` drains every node each week, `SecurityPatch` only where a patch cannot be applied to a node
    that runs, `Unmanaged` never, with Ubuntu patching itself at night and nobody watching.
    """

    cluster: ClusterChannel = "none"
    node_os: NodeOsChannel = "SecurityPatch"

    def as_profile(self) -> ManagedClusterAutoUpgradeProfileArgsDict:
        """The channels as AKS spells them."""
        return {"upgrade_channel": self.cluster, "node_os_upgrade_channel": self.node_os}


Day: TypeAlias = Literal["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"]

#: What AKS calls the three: the version of Kubernetes, the nodes' operating system (which node auto-provisioning looks
#: at too, before it takes up a new image), and AKS's own weekly releases of the control plane and of add-ons.
_SCHEDULES: Final[Mapping[str, str]] = {
    "version": "aksManagedAutoUpgradeSchedule",
    "node-os": "aksManagedNodeOSUpgradeSchedule",
    "releases": "default",
}

#: AKS takes 4 to 24.
_HOURS: Final = range(4, 25)


@dataclass(frozen=True, kw_only=True)
class NoUpgrades:
    """Days on which nothing is upgraded: the first and the last one, `2026-12-20`."""

    start: str
    end: str


@dataclass(frozen=True, kw_only=True)
class Maintenance:
    """The hours of the week in which AKS upgrades of its own accord.

    `start` is a time of day in UTC (`02:00`), `hours` from 4 to 24, `every_weeks` how many weeks there are from one such
    day to the next. `start_date` is the day from which on it holds (`2026-01-03`): written down and never "now", which
    would be a difference at each `up`. Raises ValueError for other hours.
    """

    day: Day
    start: str
    hours: int
    start_date: str
    every_weeks: int = 1
    exclusions: Sequence[NoUpgrades] = ()

    def __post_init__(self) -> None:
        """Refuse what AKS refuses a quarter of an hour later, when the cluster is there."""
        if self.hours not in _HOURS:
            raise ValueError(f"hours is {self.hours}: AKS takes from {_HOURS.start} to {_HOURS.stop - 1}")

    def as_window(self) -> MaintenanceWindowArgsDict:
        """The window as AKS spells it."""
        window: MaintenanceWindowArgsDict = {
            # The only schedule that all three kinds take.
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
    """The hours, and the cluster: its resource group and its name as Azure gives it."""

    maintenance: Maintenance
    resource_group: Input[str]
    cluster: Input[str]


class MaintenanceSchedule(ComponentResource):
    """One window for all that AKS does to a cluster unasked.

    Creates a MaintenanceConfiguration for Kubernetes versions, one for the nodes' operating system and one for AKS's own
    releases. Without the second node auto-provisioning takes up new images when AKS sees fit.
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


#: `nap`: node auto-provisioning, AKS's own Karpenter. `fixed`: scale sets, one for each pool. AKS forbids pools that grow by
#: themselves beside node auto-provisioning.
Scaling: TypeAlias = Literal["nap", "fixed"]

#: What AKS takes at the beginning of the API server's name.
_LONGEST_PREFIX: Final = 54


@dataclass(frozen=True, kw_only=True)
class AksControlPlaneArgs:
    """As for the whole cluster; `identity_id` is that of an identity which may use the subnet and the disks' key."""

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
    disk_encryption_set_id: str | None
    protected: bool


class AksControlPlane(ComponentResource):
    """The API server and all behind it, and the system nodes.

    Creates the ManagedCluster. The system pool is the only one that is part of it: AKS makes no cluster without, and takes
    no further one into it later. Nothing of it is ignored, or a change of something else would bring back pools that are
    gone.
    """

    cluster: ManagedCluster

    def __init__(self, name: str, args: AksControlPlaneArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:AksControlPlane", name, None, opts)
        self.cluster = ManagedCluster(
            f"{name}-aks",
            resource_name_=args.cluster_name,
            resource_group_name=args.resource_group,
            location=args.location,
            node_resource_group=args.node_resource_group,
            dns_prefix=args.cluster_name[:_LONGEST_PREFIX].rstrip("-"),
            kubernetes_version=args.version,
            # Without a service level the API server is smaller too, and its clients are held back before the nodes are many.
            sku={"name": "Base", "tier": "Standard"},
            identity={
                "type": ResourceIdentityType.USER_ASSIGNED,
                "user_assigned_identities": [args.identity_id],
            },
            # Whoever gets in is somebody in Entra ID, with a role of Azure's: there is no credential to lose.
            disable_local_accounts=True,
            enable_rbac=True,
            aad_profile={"managed": True, "enable_azure_rbac": True, "tenant_id": args.tenant_id},
            # Pods are somebody in Entra ID too.
            oidc_issuer_profile={"enabled": True},
            security_profile={"workload_identity": {"enabled": True}},
            api_server_access_profile=args.access.as_profile(args.network.egress_cidrs),
            network_profile=_network(args.network.outbound, args.pods_cidr, args.services_cidr),
            node_provisioning_profile=_node_provisioning(args.scaling),
            auto_upgrade_profile=args.upgrades.as_profile(),
            agent_pool_profiles=[
                args.system_nodes.as_profile(version=args.version, subnet_id=args.network.subnet_id)
            ],
            disk_encryption_set_id=args.disk_encryption_set_id,
            opts=ResourceOptions(parent=self, protect=True if args.protected else None),
        )
        self.register_outputs({"name": self.cluster.name})


def _network(outbound: Outbound, pods: str, services: str) -> ContainerServiceNetworkProfileArgsDict:
    return {
        "network_plugin": "azure",
        "network_plugin_mode": "overlay",
        "network_dataplane": "cilium",
        "network_policy": "cilium",
        # AKS's default, and yet unless it is written node auto-provisioning cannot be had (Azure/AKS #4759).
        "ip_families": ["IPv4"],
        "load_balancer_sku": "standard",
        "outbound_type": outbound,
        "pod_cidr": pods,
        "service_cidr": services,
        "dns_service_ip": dns_service_ip(services),
    }


def _node_provisioning(scaling: Scaling) -> ManagedClusterNodeProvisioningProfileArgsDict:
    # AKS's own NodePools would be a way to nodes beside the pools, without their limits and taints. To switch them off
    # later deletes them, and drains all their nodes.
    return {"mode": "Auto", "default_node_pools": "None"} if scaling == "nap" else {"mode": "Manual"}
