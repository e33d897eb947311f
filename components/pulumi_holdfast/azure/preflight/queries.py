"""Queries Azure. Beside existing_cluster.py, no other module of the program does; every query is a read."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Final, TypeAlias, cast
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from pulumi_azure_native.authorization import get_client_config, get_client_token
from pulumi_azure_native.containerservice import get_agent_pool, get_managed_cluster

from pulumi_holdfast.azure.config.sections import AzureExistingCluster
from pulumi_holdfast.azure.names import agent_pool_name
from pulumi_holdfast.azure.pools import CONFIGURATION_TAG, ConfigurationDigest, ExistingPool
from pulumi_holdfast.azure.preflight.checks import Subscription, preflight_problems, preflight_warnings
from pulumi_holdfast.azure.preflight.existing_cluster import existing_aks
from pulumi_holdfast.azure.preflight.quotas import MANAGEMENT, location_limits
from pulumi_holdfast.azure.preflight.subnet import existing_subnet, service_endpoints
from pulumi_holdfast.config.loader import PLATFORM
from pulumi_holdfast.config.naming import aks_cluster_name
from pulumi_holdfast.config.preflight import CloudQueries, refuse_or_warn
from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.json import mapping

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pulumi

    from pulumi_holdfast.azure.config.sections import AzurePlatform
    from pulumi_holdfast.azure.preflight.quotas import Get
    from pulumi_holdfast.ladder.json import Json, JsonValue


def _queries(parent: pulumi.Resource) -> CloudQueries:
    return CloudQueries(
        credentials="Azure credentials",
        fix="Log in with `az login`, or set ARM_CLIENT_ID and the related variables; check with `az account show`.",
        parent=parent,
    )


def provider_account(parent: pulumi.Resource) -> tuple[str, str]:
    """The subscription and the tenant of the Azure provider of a component. Raises ConfigError if it has none."""
    queries = _queries(parent)
    found = queries.required("authorization:getClientConfig", lambda: get_client_config(opts=queries.options))
    return found.subscription_id, found.tenant_id


def query_subscription(platform: AzurePlatform, stack: str, *, parent: pulumi.Resource) -> Subscription:
    """The subscription of a stack: from its settings, otherwise from its credentials.

    Raises ConfigError if a query fails that the stack needs.
    """
    queries = _queries(parent)
    options = queries.options
    client = queries.required("authorization:getClientConfig", lambda: get_client_config(opts=options))
    subscription_id = platform.subscription_id or client.subscription_id
    cluster = existing_aks(platform, queries)
    subnet_id = existing_subnet(platform, cluster)
    return Subscription(
        subscription_id=subscription_id,
        tenant_id=platform.tenant_id or client.tenant_id,
        deployer=client.object_id,
        signed_in_to=client.tenant_id,
        # An update without their current number of nodes would fail, or remove nodes with jobs.
        pools=queries.required("containerservice:getAgentPool", lambda: _pools(platform, stack, options)),
        cluster=cluster,
        limits=queries.optional(
            "Microsoft.Compute/locations/usages/read and Microsoft.Compute/skus/read",
            lambda: location_limits(subscription_id, platform.location, _resource_manager(options)),
        ),
        subnet_services=None
        if subnet_id is None
        else queries.optional(
            "Microsoft.Network/virtualNetworks/subnets/read",
            lambda: service_endpoints(subnet_id, _resource_manager(options)),
        ),
        failed_queries=queries.failed,
    )


#: Seconds for one answer of Azure Resource Manager.
_PATIENCE: Final = 30.0


def _resource_manager(options: pulumi.InvokeOptions) -> Get:
    """Gets what the provider has no function for, with its token."""
    token = get_client_token(opts=options).token
    if not token:
        raise LookupError("the provider has no token for Azure Resource Manager")
    return getter(token)


def getter(token: str) -> Get:
    """Gets URLs of Azure Resource Manager with a token, which goes nowhere else."""

    def get(url: str) -> Json:
        if not url.startswith(f"{MANAGEMENT}/"):
            raise LookupError(f"{url} is not a URL of Azure Resource Manager, for which the token is")
        request = Request(url, headers={"Authorization": f"Bearer {token}", "Accept": "application/json"})  # noqa: S310 - checked above
        try:
            with urlopen(request, timeout=_PATIENCE) as answer:  # noqa: S310 - checked above
                return mapping(cast("JsonValue", json.load(answer)))
        except HTTPError as error:
            raise LookupError(f"{error.code} {error.read().decode(errors='replace')}") from None

    return get


#: The end of Azure's error codes for an object that does not exist.
_NOT_FOUND: Final = "NotFound"


def _pools(platform: AzurePlatform, stack: str, options: pulumi.InvokeOptions) -> Mapping[str, ExistingPool]:
    if not platform.has_scale_sets:
        return {}
    own, existing = aks_cluster_name(stack), platform.existing_cluster
    group, cluster = (own, own) if existing is None else (existing.resource_group, existing.existing)
    found = {pool.name: _pool(group, cluster, pool.name, options) for pool in platform.pools}
    return {name: pool for name, pool in found.items() if pool is not None}


def _pool(group: str, cluster: str, name: str, options: pulumi.InvokeOptions) -> ExistingPool | None:
    try:
        found = get_agent_pool(
            resource_group_name=group,
            resource_name=cluster,
            agent_pool_name=agent_pool_name(name),
            opts=options,
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
    if isinstance(platform.cluster, AzureExistingCluster):
        return None
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


def check_subscription(platform: AzurePlatform, stack: str, *, parent: pulumi.Resource) -> Subscription:
    """Query the subscription with the provider of the component `parent`, and check that it can hold the stack.

    Logs warnings to the engine; raises ConfigError with every problem.
    """
    subscription = query_subscription(platform, stack, parent=parent)
    refuse_or_warn(preflight_problems(platform, subscription), preflight_warnings(platform, subscription))
    return subscription
