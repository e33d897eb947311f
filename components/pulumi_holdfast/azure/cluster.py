"""Builds the AKS cluster of an Azure stack from its configuration, with its network, or uses an existing one."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pulumi

from pulumi_holdfast.azure.config.sections import AzureExistingCluster
from pulumi_holdfast.azure.control_plane.access import PrivateAccess, PublicAccess
from pulumi_holdfast.azure.control_plane.component import AksCluster, AksClusterArgs
from pulumi_holdfast.azure.control_plane.control_plane import (
    Maintenance,
    NoUpgrades,
    SystemNodesArgs,
    Upgrades,
)
from pulumi_holdfast.azure.control_plane.existing import ExistingAksCluster, ExistingAksClusterArgs
from pulumi_holdfast.azure.stack_network import network_of
from pulumi_holdfast.config.naming import aks_node_group, part

if TYPE_CHECKING:
    from pulumi import Input

    from pulumi_holdfast.azure.config.sections import AzureAccess, AzureMaintenance, AzurePlatform
    from pulumi_holdfast.azure.control_plane.access import ApiServerAccess
    from pulumi_holdfast.azure.control_plane.control_plane import Day
    from pulumi_holdfast.azure.preflight import Subscription


def cluster_of(
    platform: AzurePlatform,
    subscription: Subscription,
    resource_group: Input[str],
    name: str,
    *,
    parent: pulumi.Resource,
) -> AksCluster | ExistingAksCluster:
    """The control plane of the training cluster `parent`: a new one called `name` in its network, or the existing one."""
    config = platform.cluster
    if isinstance(config, AzureExistingCluster):
        return _existing(config, subscription, parent)
    network, system = network_of(platform, resource_group, name, parent=parent), config.system_nodes
    return AksCluster(
        part(parent.pulumi_resource_name, "cluster"),
        AksClusterArgs(
            cluster_name=name,
            location=platform.location,
            subscription_id=subscription.subscription_id,
            tenant_id=subscription.tenant_id,
            resource_group=resource_group,
            node_resource_group=aks_node_group(name),
            version=config.version,
            scaling=config.scaling.value,
            network=network,
            access=_access(config.access),
            deployer=subscription.deployer,
            admins=config.admins,
            login=config.login.value,
            maintenance=_maintenance(config.maintenance),
            upgrades=Upgrades(cluster=config.upgrades.cluster.value, node_os=config.upgrades.node_os.value),
            system_nodes=SystemNodesArgs(
                vm_size=system.vm_size, count=system.count, zones=system.zones, disk_gib=system.disk_gib
            ),
            protected=platform.protected,
            pods_cidr=platform.network.pods_cidr,
            services_cidr=platform.network.services_cidr,
            disk_encryption_set_id=config.disk_encryption_set,
            log_workspace_id=config.log_workspace,
            registry_id=config.registry,
            reservation_group_ids=platform.reservation_groups,
        ),
        opts=pulumi.ResourceOptions(parent=parent),
    )


def _existing(
    config: AzureExistingCluster, subscription: Subscription, parent: pulumi.Resource
) -> ExistingAksCluster:
    found = subscription.cluster
    if found is None:
        raise TypeError(f"{config.existing} was not looked up; preflight must do it")
    return ExistingAksCluster(
        part(parent.pulumi_resource_name, "cluster"),
        ExistingAksClusterArgs(
            cluster_name=found.name,
            resource_group=found.resource_group,
            tenant_id=subscription.tenant_id,
            uid=found.uid,
            issuer=found.issuer,
            api_server=found.api_server,
            subnet_id=found.subnet_id,
            login=config.login.value,
        ),
        opts=pulumi.ResourceOptions(parent=parent),
    )


def kubernetes_version(platform: AzurePlatform, subscription: Subscription) -> str:
    """The version of the cluster: as configured, or as the existing cluster has it."""
    config = platform.cluster
    if isinstance(config, AzureExistingCluster):
        return subscription.cluster.version if subscription.cluster is not None else ""
    return config.version


def _access(config: AzureAccess) -> ApiServerAccess:
    if config.public is not None:
        return PublicAccess(cidrs=config.public.cidrs)
    return PrivateAccess(public_name=config.public_name)


def _maintenance(config: AzureMaintenance) -> Maintenance:
    window = config.window
    return Maintenance(
        day=cast("Day", window.day.value.capitalize()),
        start=window.start,
        hours=window.hours,
        start_date=window.start_date,
        every_weeks=window.every_weeks,
        exclusions=[NoUpgrades(start=each.start, end=each.end) for each in config.exclusions],
    )
