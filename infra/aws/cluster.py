"""Builds the EKS cluster of an AWS stack from its configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.components.cluster.eks.addon_versions import addon_versions
from holdfast.components.cluster.eks.component import EksCluster, EksClusterArgs
from holdfast.components.cluster.eks.control_plane import ControlPlaneLogs
from holdfast.components.cluster.eks.system_nodes import SystemNodesArgs
from holdfast.infra import versions
from holdfast.infra.aws.config.network import AwsNewNetwork

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.components.cluster.eks.access import Caller
    from holdfast.components.network.aws import Network
    from holdfast.infra.aws.config.stack import AwsPlatform
    from holdfast.infra.aws.preflight import Account


def cluster_of(
    platform: AwsPlatform,
    account: Account,
    network: Network,
    name: str,
    *,
    tags: Mapping[str, str],
    caller: Caller,
) -> EksCluster:
    """The stack's cluster; `name` is its physical name, `tags` are those of its system nodes."""
    config = platform.cluster
    addons = addon_versions(config.version)
    if addons is None:
        raise ValueError(f"Kubernetes {config.version} has no pinned add-ons; validation must reject it")
    return EksCluster(
        "cluster",
        EksClusterArgs(
            cluster_name=name,
            version=config.version,
            account=account.id,
            region=platform.region,
            partition=platform.partition,
            private_subnet_ids=network.private_subnet_ids,
            system_nodes=SystemNodesArgs(
                instance_types=config.system_nodes.instance_types,
                count=config.system_nodes.count,
                architecture=platform.system_architecture,
                release_version=f"{versions.NODE_IMAGE_KUBELET}-{versions.NODE_IMAGE_RELEASE}",
                tags=tags,
            ),
            addons=addons,
            protected=platform.protected,
            public_access_cidrs=config.public_access_cidrs,
            private_access_cidrs=_private_access(platform),
            admins=config.admins,
            service_cidr=config.service_cidr,
            logs=ControlPlaneLogs(
                types=tuple(config.logs.types),
                retention_days=config.logs.retain_days,
                group_exists=account.existing.log_group,
            ),
            secrets_key=config.secrets_key,
            upgrade_policy=config.upgrade_policy.value.upper(),
            caller=caller,
        ),
    )


def _private_access(platform: AwsPlatform) -> tuple[str, ...]:
    """The blocks with access to the private endpoint: those configured, otherwise the stack's own network."""
    named, network = platform.cluster.private_access_cidrs, platform.network
    return named or ((network.cidr,) if isinstance(network, AwsNewNetwork) else ())
