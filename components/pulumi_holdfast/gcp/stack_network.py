"""Builds the network of a GCP stack: a new one or an existing one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulumi_holdfast.gcp.config.sections import GcpClusterNetwork, GcpExistingNetwork
from pulumi_holdfast.gcp.network import ExistingGcpNetwork, GcpNetwork, GcpNetworkArgs

if TYPE_CHECKING:
    from pulumi_holdfast.gcp.config.sections import GcpPlatform
    from pulumi_holdfast.gcp.network import VpcNativeNetwork


def network_of(platform: GcpPlatform, label: str) -> VpcNativeNetwork:
    """The stack's network; its names in the project start with `label`."""
    config = platform.network
    if isinstance(config, GcpClusterNetwork):
        raise TypeError("an existing cluster has a network")
    if isinstance(config, GcpExistingNetwork):
        return ExistingGcpNetwork(
            network=config.network,
            subnetwork=config.subnetwork,
            pods_range=config.pods_range,
            services_range=config.services_range,
        )
    return GcpNetwork(
        "network",
        GcpNetworkArgs(
            region=platform.region,
            nodes_cidr=config.cidr,
            pods_cidr=config.pods_cidr,
            services_cidr=config.services_cidr,
            label=label,
        ),
    )
