"""Builds the network of an AWS stack: a new one, a new one without internet access, or an existing one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.components.network.aws import AwsNetwork, AwsNetworkArgs, ExistingNetwork
from holdfast.components.network.aws_isolated import AwsIsolatedNetwork, AwsIsolatedNetworkArgs
from holdfast.infra.aws.config.network import AwsExistingNetwork, Nat
from holdfast.infra.aws.preflight.checks import zones_of_network
from holdfast.scheduling.machines import zones_of

if TYPE_CHECKING:
    from holdfast.components.network.aws import Network
    from holdfast.infra.aws.config.stack import AwsPlatform
    from holdfast.infra.aws.preflight import Account


def network_of(platform: AwsPlatform, account: Account, label: str) -> Network:
    """The stack's network; its names in the console start with `label`."""
    asked = platform.network
    if isinstance(asked, AwsExistingNetwork):
        return ExistingNetwork(vpc_id=asked.vpc_id, private_subnet_ids=asked.private_subnet_ids)
    zones = zones_of_network(asked, account, zones_of(platform.region))
    if asked.isolated:
        return AwsIsolatedNetwork(
            "network",
            AwsIsolatedNetworkArgs(cidr=asked.cidr, zones=zones, region=platform.region, label=label),
        )
    return AwsNetwork(
        "network",
        AwsNetworkArgs(
            cidr=asked.cidr,
            zones=zones,
            region=platform.region,
            nat=(asked.nat or Nat.SINGLE).value,
            label=label,
        ),
    )
