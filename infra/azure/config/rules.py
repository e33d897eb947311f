"""The rules across fields of an Azure stack."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from holdfast.infra.azure.config.checkpoint_rules import checkpoint_problems, container_problems
from holdfast.infra.azure.config.cluster import AzureCluster, Scaling
from holdfast.infra.azure.config.cluster_rules import cluster_problems
from holdfast.infra.azure.config.locations import location_problem, subscription_problem, tenant_problem
from holdfast.infra.azure.config.network import variant_of
from holdfast.infra.azure.config.network_rules import network_problems
from holdfast.infra.azure.config.pool import AzurePoolSection, FixedPool, NapPool
from holdfast.infra.azure.config.pool_rules import fixed_pool_problems, nap_pool_problems, scale_set_names
from holdfast.infra.azure.config.stack import (
    AzureCheckpoints,
    FixedDocument,
    FixedPlatform,
    NapDocument,
    NapPlatform,
)
from holdfast.infra.config import rules
from holdfast.infra.config.parts import read_part, read_parts
from holdfast.infra.config.platform import NamespaceSection
from holdfast.infra.config.pools_and_ladders import NAMESPACES, pool_and_ladder_problems
from holdfast.infra.config.reading import PLATFORM, read_section

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.infra.azure.config.stack import AzurePlatform
    from holdfast.scheduling.errors import Problem
    from holdfast.scheduling.json import Json

_A_DEFAULT_NAP_POOL: Final = (
    "`{name: cpu, capacity: on-demand, vmSizes: [Standard_D4ds_v5], maxNodes: 20, default: true}`"
)
_A_DEFAULT_FIXED_POOL: Final = (
    "`{name: cpu, capacity: on-demand, vmSize: Standard_D4ds_v5, maxNodes: 20, default: true}`"
)

#: Namespaces that AKS makes, for commands that it runs and for policies.
_OF_AKS: Final = ("aks-", "gatekeeper-")

#: Where families are looked up while the stack's location is not known: it has nearly all of them.
_LARGEST_LOCATION: Final = "eastus"


def read_azure_platform(
    document: Json, *, location: str | None, subscription_id: str | None, tenant_id: str | None
) -> AzurePlatform:
    """Read an Azure stack's platform.

    `location`, `subscription_id` and `tenant_id` are what the stack says under `azure-native:location`,
    `azure-native:subscriptionId` and `azure-native:tenantId`. Raises ConfigError with every problem.
    """
    beside = {"location": location, "subscriptionId": subscription_id, "tenantId": tenant_id}
    wrong = partial(azure_problems, location=location, subscription_id=subscription_id, tenant_id=tenant_id)
    if is_fixed(document):
        read_section(FixedDocument, document, wrong)
        return FixedPlatform.model_validate_json(json.dumps({**document, **beside}))
    read_section(NapDocument, document, wrong)
    return NapPlatform.model_validate_json(json.dumps({**document, **beside}))


def is_fixed(document: Json) -> bool:
    """Whether the pools of a document are meant for scale sets, and not for node auto-provisioning."""
    cluster, pools = document.get("cluster"), document.get("pools")
    scaling = cluster.get("scaling", Scaling.NAP.value) if isinstance(cluster, Mapping) else None
    if scaling in list(Scaling):
        return scaling == Scaling.FIXED.value
    # A slip in this one word, or above it, must not make every pool look wrong.
    written = pools if isinstance(pools, list | tuple) else ()
    return any(isinstance(pool, Mapping) and "vmSize" in pool for pool in written)


def azure_problems(
    document: Json, *, location: str | None, subscription_id: str | None, tenant_id: str | None
) -> Iterator[Problem]:
    """Everything that is wrong across the fields of an Azure stack's document, and with what stands beside it."""
    wrong_location = location_problem(location)
    wrong_subscription = subscription_problem(subscription_id)
    wrong = (wrong_location, wrong_subscription, tenant_problem(tenant_id))
    yield from (problem for problem in wrong if problem is not None)
    # Zones and machines are a location's: nothing is said of these before there is one.
    here = None if wrong_location else location
    cluster = read_part(AzureCluster, document, "cluster")
    if cluster is not None:
        yield from cluster_problems(
            cluster,
            location=here,
            subscription=None if wrong_subscription else subscription_id,
            at=f"{PLATFORM}.cluster",
        )
    yield from _network(document, cluster)
    checkpoints = read_part(AzureCheckpoints, document, "checkpoints")
    if checkpoints is not None:
        yield from checkpoint_problems(checkpoints, here, f"{PLATFORM}.checkpoints")
    yield from _pools(document, here)
    namespaces = read_parts(NamespaceSection, document.get("namespaces")).names
    yield from container_problems(namespaces)
    yield from rules.names_of_a_cloud(namespaces, _OF_AKS, "AKS", NAMESPACES)


def _network(document: Json, cluster: AzureCluster | None) -> Iterator[Problem]:
    network = read_part(variant_of(document.get("network")), document, "network")
    if network is None:
        return
    model: type[AzurePoolSection] = FixedPool if is_fixed(document) else NapPool
    pools = read_parts(model, document.get("pools")).items.values()
    # An upgrade has a system node more before one goes.
    system = cluster.system_nodes.count + 1 if cluster else 0
    yield from network_problems(
        network,
        access=cluster.access if cluster else None,
        most_nodes=sum(pool.max_nodes for pool in pools) + system,
        at=f"{PLATFORM}.network",
    )


def _pools(document: Json, location: str | None) -> Iterator[Problem]:
    if is_fixed(document):
        fixed = read_parts(FixedPool, document.get("pools"))
        yield from scale_set_names(fixed.names)
        yield from pool_and_ladder_problems(
            document,
            fixed,
            problems_of=lambda pool, at: fixed_pool_problems(pool, location, at),
            as_pool=FixedPool.as_pool,
            a_default_pool=_A_DEFAULT_FIXED_POOL,
        )
        return
    yield from pool_and_ladder_problems(
        document,
        read_parts(NapPool, document.get("pools")),
        problems_of=lambda pool, at: nap_pool_problems(pool, location, at),
        as_pool=lambda pool: pool.as_pool(location or _LARGEST_LOCATION),
        a_default_pool=_A_DEFAULT_NAP_POOL,
    )
