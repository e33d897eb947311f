"""Builds the network of an AWS stack: a new one, one without internet access, an existing one, or the cluster's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.components.network.aws import AwsNetwork, AwsNetworkArgs, ExistingNetwork
from holdfast.components.network.aws_isolated import AwsIsolatedNetwork, AwsIsolatedNetworkArgs
from holdfast.infra.aws.config.sections import AwsClusterNetwork, AwsExistingNetwork, Nat
from holdfast.infra.aws.preflight.checks import zones_of_network
from holdfast.infra.aws.preflight.existing_cluster import subnets_of
from holdfast.scheduling.machines import zones_of

if TYPE_CHECKING:
    from holdfast.components.network.aws import Network
    from holdfast.infra.aws.config.sections import AwsPlatform
    from holdfast.infra.aws.preflight import Account


def network_of(platform: AwsPlatform, account: Account, label: str) -> Network:
    """The stack's network; its names in the console start with `label`."""
    config = platform.network
    if account.cluster is not None:
        found = account.cluster
        return ExistingNetwork(vpc_id=found.vpc_id, private_subnet_ids=subnets_of(platform, found))
    if isinstance(config, AwsClusterNetwork):
        raise TypeError("the network of an existing cluster was not looked up; preflight must do it")
    if isinstance(config, AwsExistingNetwork):
        return ExistingNetwork(vpc_id=config.vpc_id, private_subnet_ids=config.private_subnet_ids)
    zones = zones_of_network(config, account, zones_of(platform.region))
    if config.isolated:
        return AwsIsolatedNetwork(
            "network",
            AwsIsolatedNetworkArgs(cidr=config.cidr, zones=zones, region=platform.region, label=label),
        )
    return AwsNetwork(
        "network",
        AwsNetworkArgs(
            cidr=config.cidr,
            zones=zones,
            region=platform.region,
            nat=(config.nat or Nat.SINGLE).value,
            label=label,
        ),
    )
