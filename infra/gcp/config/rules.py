"""The rules across fields of a GCP stack."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Final

from holdfast.infra.config import rules
from holdfast.infra.config.parts import Parts, read_part, read_parts
from holdfast.infra.config.platform import NamespaceSection
from holdfast.infra.config.pools_and_ladders import NAMESPACES, pool_and_ladder_problems
from holdfast.infra.config.reading import PLATFORM, read_section
from holdfast.infra.gcp.config.checkpoint_rules import checkpoint_problems
from holdfast.infra.gcp.config.class_rules import class_problems
from holdfast.infra.gcp.config.cluster import GcpCluster
from holdfast.infra.gcp.config.cluster_rules import cluster_problems
from holdfast.infra.gcp.config.network import variant_of
from holdfast.infra.gcp.config.network_rules import network_problems
from holdfast.infra.gcp.config.pool import GcpPool, Upgrades
from holdfast.infra.gcp.config.pool_rules import pool_problems
from holdfast.infra.gcp.config.regions import project_problem, region_problem
from holdfast.infra.gcp.config.stack import GcpCheckpoints, GcpDocument, GcpPlatform

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.scheduling.errors import Problem
    from holdfast.scheduling.json import Json

_A_DEFAULT_POOL: Final = (
    "`{name: cpu, capacity: on-demand, machineType: n2-standard-4, maxNodes: 20, default: true}`"
)

#: A control plane of a region has its nodes in three zones unless others are named.
_ZONES_OF_A_REGION: Final = 3

#: Namespaces that GKE makes, or keeps for itself.
_OF_GKE: Final = ("gke-", "gmp-")


def read_gcp_platform(document: Json, *, project: str | None, region: str | None) -> GcpPlatform:
    """Read a GCP stack's platform; `project` and `region` are what the stack says under `gcp:project`, `gcp:region`.

    Raises ConfigError with every problem.
    """
    read_section(GcpDocument, document, partial(gcp_problems, project=project, region=region))
    return GcpPlatform.model_validate_json(json.dumps({**document, "project": project, "region": region}))


def gcp_problems(document: Json, *, project: str | None, region: str | None) -> Iterator[Problem]:
    """Everything that is wrong across the fields of a GCP stack's document, and with its project and region."""
    wrong_project, wrong_region = project_problem(project), region_problem(region)
    yield from (problem for problem in (wrong_project, wrong_region) if problem is not None)
    # Zones and keys are a region's: nothing is said of these before there is one.
    here = None if wrong_region else region
    pools = read_parts(GcpPool, document.get("pools"))
    cluster = read_part(GcpCluster, document, "cluster")
    if cluster is not None:
        yield from cluster_problems(cluster, here, f"{PLATFORM}.cluster")
    network = read_part(variant_of(document.get("network")), document, "network")
    if network is not None:
        yield from network_problems(
            network, region=here, most_nodes=_most_nodes(cluster, pools), at=f"{PLATFORM}.network"
        )
    checkpoints = read_part(GcpCheckpoints, document, "checkpoints")
    if checkpoints is not None:
        yield from checkpoint_problems(checkpoints, here, f"{PLATFORM}.checkpoints")
    yield from pool_and_ladder_problems(
        document,
        pools,
        problems_of=lambda pool, at: pool_problems(pool, here, at),
        as_pool=GcpPool.as_pool,
        a_default_pool=_A_DEFAULT_POOL,
    )
    yield from class_problems(document, pools.items)
    namespaces = read_parts(NamespaceSection, document.get("namespaces")).names
    yield from rules.names_of_a_cloud(namespaces, _OF_GKE, "GKE", NAMESPACES)


def _most_nodes(cluster: GcpCluster | None, pools: Parts[GcpPool]) -> int:
    """How many nodes there may be at once, as far as the configuration can be read."""
    # Blue-green upgrades make a second set beside the first.
    of_pools = sum(
        pool.max_nodes * (2 if pool.upgrades is Upgrades.BLUE_GREEN else 1) for pool in pools.items.values()
    )
    if cluster is None:
        return of_pools
    system = cluster.system_nodes
    zones = len(cluster.zones) if cluster.zones else _ZONES_OF_A_REGION
    return of_pools + (system.per_zone + system.spare_per_zone) * zones
