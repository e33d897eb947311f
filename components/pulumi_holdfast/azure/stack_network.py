"""Builds the network of an Azure stack: a new one or an existing one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from pulumi_holdfast.azure.config.sections import AzureClusterNetwork, AzureExistingNetwork
from pulumi_holdfast.azure.network import AzureNetwork, AzureNetworkArgs, ExistingAzureNetwork
from pulumi_holdfast.config import naming

if TYPE_CHECKING:
    from pulumi import Input

    from pulumi_holdfast.azure.config.sections import AzurePlatform
    from pulumi_holdfast.azure.network import NodeSubnet


def network_of(
    platform: AzurePlatform, resource_group: Input[str], label: str, *, parent: pulumi.Resource
) -> NodeSubnet:
    """The network of the cluster `parent`; its names in the resource group start with `label`."""
    config = platform.network
    if isinstance(config, AzureClusterNetwork):
        raise TypeError("an existing cluster has a network")
    if isinstance(config, AzureExistingNetwork):
        return ExistingAzureNetwork(
            subnet_id=config.subnet_id, outbound=config.outbound.value, egress_cidrs=config.egress_cidrs
        )
    return AzureNetwork(
        naming.part(parent.pulumi_resource_name, "network"),
        AzureNetworkArgs(
            location=platform.location, resource_group=resource_group, cidr=config.cidr, label=label
        ),
        opts=pulumi.ResourceOptions(parent=parent),
    )
