"""Queries Azure. No other module of the program does; every query is a read."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Final, TypeAlias

from pulumi_azure_native.authorization import get_client_config
from pulumi_azure_native.containerservice import get_agent_pool, get_managed_cluster

from holdfast.components.azure_names import agent_pool_name
from holdfast.components.pools.aks import CONFIGURATION_TAG, ConfigurationDigest, ExistingPool
from holdfast.infra.azure.config.stack import FixedPlatform
from holdfast.infra.azure.preflight.checks import Subscription
from holdfast.infra.cloud_queries import CloudQueries
from holdfast.infra.config.loader import PLATFORM
from holdfast.infra.naming import aks_cluster_name
from holdfast.scheduling.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holdfast.infra.azure.config.stack import AzurePlatform


def query_subscription(platform: AzurePlatform, stack: str) -> Subscription:
    """The subscription of a stack: from its settings, otherwise from its credentials.

    Raises ConfigError if the query fails. The provider has no function for what a location offers, such as versions of
    Kubernetes, VM sizes and quotas.
    """
    queries = CloudQueries(
        credentials="Azure credentials",
        fix="Log in with `az login`, or set ARM_CLIENT_ID and the related variables; check with `az account show`.",
    )
    client = queries.required("authorization:getClientConfig", get_client_config)
    return Subscription(
        subscription_id=platform.subscription_id or client.subscription_id,
        tenant_id=platform.tenant_id or client.tenant_id,
        deployer=client.object_id,
        signed_in_to=client.tenant_id,
        # An update without their current number of nodes would fail, or remove nodes with jobs.
        pools=queries.required("containerservice:getAgentPool", lambda: _pools(platform, stack)),
    )


#: The end of Azure's error codes for an object that does not exist.
_NOT_FOUND: Final = "NotFound"


def _pools(platform: AzurePlatform, stack: str) -> Mapping[str, ExistingPool]:
    if not isinstance(platform, FixedPlatform):
        return {}
    names = [pool.name for pool in platform.pools]
    found = {name: _pool(aks_cluster_name(stack), name) for name in names}
    return {name: pool for name, pool in found.items() if pool is not None}


def _pool(cluster: str, name: str) -> ExistingPool | None:
    try:
        found = get_agent_pool(
            resource_group_name=cluster, resource_name=cluster, agent_pool_name=agent_pool_name(name)
        )
    except Exception as error:
        # A new pool, or a new stack without a cluster.
        if _NOT_FOUND in str(error):
            return None
        raise
    if found.count is None:
        return None
    tag = (found.tags or {}).get(CONFIGURATION_TAG)
    return ExistingPool(count=found.count, configuration=ConfigurationDigest.parse(tag))


def api_server_of(cluster_name: str, *, by_public_name: bool) -> str | None:
    """The host name of the API server of a stack's cluster; None if there is no cluster yet, or the query fails."""
    try:
        cluster = get_managed_cluster(resource_group_name=cluster_name, resource_name=cluster_name)
    except Exception:  # noqa: BLE001 - the SDK raises nothing narrower, and a new stack has no cluster
        return None
    return (cluster.fqdn if by_public_name else cluster.private_fqdn) or None


#: Returns why a host does not answer, None if it does.
ConnectionCheck: TypeAlias = "Callable[[str], str | None]"

_PORT: Final = 443
_SECONDS: Final = 5.0


def connection_error(host: str) -> str | None:
    """Why a host does not answer; None if it does."""
    try:
        socket.create_connection((host, _PORT), timeout=_SECONDS).close()
    except OSError as error:
        return error.strerror or str(error) or type(error).__name__
    return None


def unreachable_api_server(
    platform: AzurePlatform, stack: str, try_it: ConnectionCheck = connection_error
) -> Problem | None:
    """The problem of an API server that does not answer from here; None if it does, or if there is no cluster yet.

    A private API server answers only in its network: from elsewhere, `pulumi up` would time out on each object.
    """
    access = platform.cluster.access
    if not access.private:
        return None
    host = api_server_of(aks_cluster_name(stack), by_public_name=access.public_name)
    reason = None if host is None else try_it(host)
    if reason is None:
        return None
    return Problem(
        field=f"{PLATFORM}.cluster.access.private",
        value=f"true, but {host} does not answer ({reason})",
        allowed="a client in the cluster's network or one connected to it: a runner in its subnet, a peered network, a VPN",
        fix="Run pulumi there. If only the name does not resolve, link the cluster's private DNS zone to your network, "
        "or write `publicName: true`.",
    )
