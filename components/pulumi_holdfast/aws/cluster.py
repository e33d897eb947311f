"""Builds the EKS cluster of an AWS stack from its configuration, or uses an existing one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pulumi

from pulumi_holdfast.aws.config.sections import AwsExistingCluster, AwsNewNetwork
from pulumi_holdfast.aws.control_plane.addon_versions import addon_versions
from pulumi_holdfast.aws.control_plane.component import EksCluster, EksClusterArgs
from pulumi_holdfast.aws.control_plane.control_plane import ControlPlaneLogs
from pulumi_holdfast.aws.control_plane.existing import ExistingEksCluster, ExistingEksClusterArgs
from pulumi_holdfast.aws.control_plane.system_nodes import SystemNodesArgs
from pulumi_holdfast.config import naming, versions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulumi_holdfast.aws.config.sections import AwsPlatform
    from pulumi_holdfast.aws.control_plane.access import Caller
    from pulumi_holdfast.aws.network import Network
    from pulumi_holdfast.aws.preflight import Account
    from pulumi_holdfast.aws.preflight.existing_cluster import ExistingEks


def cluster_of(
    platform: AwsPlatform,
    account: Account,
    network: Network,
    name: str,
    *,
    tags: Mapping[str, str],
    caller: Caller,
    parent: pulumi.Resource,
) -> EksCluster | ExistingEksCluster:
    """The control plane of the training cluster `parent`; `name` is its physical name, `tags` are those of its system nodes."""
    config = platform.cluster
    if account.cluster is not None:
        return existing_cluster_of(account.cluster, platform.region, caller, parent=parent)
    if isinstance(config, AwsExistingCluster):
        raise TypeError(f"{config.existing} was not looked up; preflight must do it")
    addons = addon_versions(config.version)
    if addons is None:
        raise ValueError(f"Kubernetes {config.version} has no pinned add-ons; validation must reject it")
    return EksCluster(
        naming.part(parent.pulumi_resource_name, "cluster"),
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
                architecture=platform.system_machines()[0].arch,
                release_version=f"{versions.NODE_IMAGE_KUBELET}-{versions.NODE_IMAGE_RELEASE}",
                tags=tags,
            ),
            addons=addons,
            protected=platform.protected,
            public_access_cidrs=config.public_access_cidrs,
            private_access_cidrs=config.private_access_cidrs or _own_cidr(platform),
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
        opts=pulumi.ResourceOptions(parent=parent),
    )


def existing_cluster_of(
    found: ExistingEks, region: str, caller: Caller, *, parent: pulumi.Resource
) -> ExistingEksCluster:
    """The cluster that preflight found, as the components use it."""
    return ExistingEksCluster(
        naming.part(parent.pulumi_resource_name, "cluster"),
        ExistingEksClusterArgs(
            cluster_name=found.name,
            region=region,
            endpoint=found.endpoint,
            certificate_authority=found.certificate_authority,
            issuer=found.issuer,
            security_group_id=found.security_group_id,
            caller=caller,
        ),
        opts=pulumi.ResourceOptions(parent=parent),
    )


def kubernetes_version(platform: AwsPlatform, account: Account) -> str:
    """The version of the cluster: as configured, or as the existing cluster has it."""
    config = platform.cluster
    if isinstance(config, AwsExistingCluster):
        return account.cluster.version if account.cluster is not None else ""
    return config.version


def _own_cidr(platform: AwsPlatform) -> tuple[str, ...]:
    """The block of the stack's own network, whose clients reach the private endpoint by default."""
    network = platform.network
    return (network.cidr,) if isinstance(network, AwsNewNetwork) else ()
