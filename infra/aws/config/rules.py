"""The rules across fields of an AWS stack."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Final

from holdfast.infra.aws.config.cluster import AwsCluster
from holdfast.infra.aws.config.cluster_rules import cluster_problems
from holdfast.infra.aws.config.machine_rules import known_machines
from holdfast.infra.aws.config.network import MadeNetwork, variant_of
from holdfast.infra.aws.config.network_rules import network_problems
from holdfast.infra.aws.config.pool import AwsPool
from holdfast.infra.aws.config.pool_rules import pool_problems
from holdfast.infra.aws.config.regions import region_problem
from holdfast.infra.aws.config.stack import AwsDocument, AwsPlatform
from holdfast.infra.config.cloud_document import CloudMirror
from holdfast.infra.config.parts import read_part, read_parts
from holdfast.infra.config.pools_and_ladders import pool_and_ladder_problems
from holdfast.infra.config.reading import PLATFORM, read_section

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.scheduling.errors import Problem
    from holdfast.scheduling.json import Json

_CLUSTER: Final = f"{PLATFORM}.cluster"

#: Where families are looked up while the stack's region is not known: it has nearly all of them.
_LARGEST_REGION: Final = "us-east-1"


def read_aws_platform(document: Json, region: str | None) -> AwsPlatform:
    """Read an AWS stack's platform; `region` is what the stack says under `aws:region`.

    Raises ConfigError with every problem.
    """
    read_section(AwsDocument, document, partial(aws_problems, region=region))
    return AwsPlatform.model_validate_json(json.dumps({**document, "region": region}))


def aws_problems(document: Json, region: str | None) -> Iterator[Problem]:
    """Everything that is wrong across the fields of an AWS stack's document, and with its region."""
    wrong_region = region_problem(region)
    yield from (wrong_region,) if wrong_region else ()
    # Zones and machines are a region's: nothing is said of these before there is one.
    here = None if wrong_region else region
    yield from _cluster_and_network(document, here)
    yield from pool_and_ladder_problems(
        document,
        read_parts(AwsPool, document.get("pools")),
        problems_of=lambda pool, at: _pool_problems(pool, document, here, at),
        as_pool=lambda pool: pool.as_pool(here or _LARGEST_REGION),
    )


def _pool_problems(pool: AwsPool, document: Json, region: str | None, at: str) -> Iterator[Problem]:
    if region is None:
        yield from known_machines(pool.instance_types or (), f"{at}.instanceTypes")
        return
    network = read_part(variant_of(document.get("network")), document, "network")
    zones = network.zones if isinstance(network, MadeNetwork) else ()
    yield from pool_problems(
        pool, region=region, network_zones=() if isinstance(zones, int) else zones, at=at
    )


def _cluster_and_network(document: Json, region: str | None) -> Iterator[Problem]:
    cluster = read_part(AwsCluster, document, "cluster")
    if cluster is not None:
        yield from cluster_problems(cluster, region, _CLUSTER)
    network = read_part(variant_of(document.get("network")), document, "network")
    if network is not None:
        mirror = read_part(CloudMirror, document, "mirror")
        yield from network_problems(
            network,
            region=region,
            service_cidr=cluster.service_cidr if cluster else None,
            # A mirror that cannot be read is one all the same.
            has_image_mirror=mirror is None or mirror.images is not None,
            at=f"{PLATFORM}.network",
        )
