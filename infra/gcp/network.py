"""Builds the network of a GCP stack: a new one or an existing one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.components.network.gcp import ExistingGcpNetwork, GcpNetwork, GcpNetworkArgs
from holdfast.infra.gcp.config.network import GcpExistingNetwork

if TYPE_CHECKING:
    from holdfast.components.network.gcp import VpcNativeNetwork
    from holdfast.infra.gcp.config.stack import GcpPlatform


def network_of(platform: GcpPlatform, label: str) -> VpcNativeNetwork:
    """The stack's network; its names in the project start with `label`."""
    asked = platform.network
    if isinstance(asked, GcpExistingNetwork):
        return ExistingGcpNetwork(
            network=asked.network,
            subnetwork=asked.subnetwork,
            pods_range=asked.pods_range,
            services_range=asked.services_range,
        )
    return GcpNetwork(
        "network",
        GcpNetworkArgs(
            region=platform.region,
            nodes_cidr=asked.nodes_cidr,
            pods_cidr=asked.pods_cidr,
            services_cidr=asked.services_cidr,
            label=label,
        ),
    )
