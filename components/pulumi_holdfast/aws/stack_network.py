"""Builds the network of an AWS stack: a new one, one without internet access, an existing one, or the cluster's."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from pulumi_holdfast.aws.config.sections import AwsClusterNetwork, AwsExistingNetwork, Nat
from pulumi_holdfast.aws.isolated_network import AwsIsolatedNetwork, AwsIsolatedNetworkArgs
from pulumi_holdfast.aws.network import AwsNetwork, AwsNetworkArgs, ExistingNetwork
from pulumi_holdfast.aws.preflight.checks import zones_of_network
from pulumi_holdfast.aws.preflight.existing_cluster import subnets_of
from pulumi_holdfast.config import naming
from pulumi_holdfast.ladder.machines import zones_of

if TYPE_CHECKING:
    from pulumi_holdfast.aws.config.sections import AwsPlatform
    from pulumi_holdfast.aws.network import Network
    from pulumi_holdfast.aws.preflight import Account


def network_of(platform: AwsPlatform, account: Account, label: str, *, parent: pulumi.Resource) -> Network:
    """The network of the cluster `parent`; its names in the console start with `label`."""
    config = platform.network
    if account.cluster is not None:
        found = account.cluster
        return ExistingNetwork(vpc_id=found.vpc_id, private_subnet_ids=subnets_of(platform, found))
    if isinstance(config, AwsClusterNetwork):
        raise TypeError("the network of an existing cluster was not looked up; preflight must do it")
    if isinstance(config, AwsExistingNetwork):
        return ExistingNetwork(vpc_id=config.vpc_id, private_subnet_ids=config.private_subnet_ids)
    zones = zones_of_network(config, account, zones_of(platform.region))
    name = naming.part(parent.pulumi_resource_name, "network")
    inside = pulumi.ResourceOptions(parent=parent)
    if config.isolated:
        return AwsIsolatedNetwork(
            name,
            AwsIsolatedNetworkArgs(cidr=config.cidr, zones=zones, region=platform.region, label=label),
            opts=inside,
        )
    return AwsNetwork(
        name,
        AwsNetworkArgs(
            cidr=config.cidr,
            zones=zones,
            region=platform.region,
            nat=(config.nat or Nat.SINGLE).value,
            label=label,
        ),
        opts=inside,
    )
