"""Builders for what the autoscaler sees: pods that wait, nodes, pools."""

from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.rehearsal.clouds.gcp.nodes import CLUSTER, NODE_POOL
from pulumi_holdfast.rehearsal.clouds.state import CloudObject
from pulumi_holdfast.rehearsal.cluster_autoscaler.scale_up import NodeInfo, Option, PodNeeds

NOW = datetime(2026, 11, 21, 9, 0, 0, tzinfo=UTC)


def needs(name: str = "p", *, cpu: float = 1, **overrides: Any) -> PodNeeds:
    """A pod that asks for nothing but some CPU."""
    fields: dict[str, Any] = {
        "namespace": "vision",
        "name": name,
        "uid": name,
        "requests": {"cpu": Fraction(cpu), "pods": Fraction(1)},
        "selector": {},
        "terms": (),
        "tolerations": (),
        "unschedulable_since": NOW,
        **overrides,
    }
    return PodNeeds(**fields)


def room(name: str = "n", *, cpu: float = 4, **overrides: Any) -> NodeInfo:
    """A node with nothing on it."""
    fields: dict[str, Any] = {
        "name": name,
        "labels": {},
        "taints": (),
        "free": {"cpu": Fraction(cpu), "pods": Fraction(110)},
        "since": NOW,
        **overrides,
    }
    return NodeInfo(**fields)


def offer(pool: str = "cpu", *, zone: str = "a", **overrides: Any) -> Option:
    """A pool of machines with four CPUs, of which four may be bought."""
    fields: dict[str, Any] = {
        "pool": pool,
        "zone": zone,
        "room": room(f"{pool} in {zone}", since=None),
        "hourly_price": 1.0,
        "nodes": 0,
        "spare": 4,
        "spreads": False,
        **overrides,
    }
    return Option(**fields)


def node_pool(name: str = "cpu", *, digest: str = "d1", **inputs: JsonValue) -> CloudObject:
    """A node pool of four-core machines in two zones, autoscaled from none to four."""
    given: Json = {
        "name": name,
        "cluster": "prod",
        "location": "europe-west4",
        "nodeLocations": ["europe-west4-a", "europe-west4-b"],
        "nodeConfig": {"machineType": "e2-standard-4"},
        "autoscaling": {"totalMinNodeCount": 0, "totalMaxNodeCount": 4},
        **inputs,
    }
    path = f"projects/p/locations/europe-west4/clusters/prod/nodePools/{name}"
    return CloudObject(
        type=NODE_POOL, id=path, urn="u", inputs=given, computed={"project": "p"}, digest=digest
    )


def cluster(name: str = "prod", **inputs: JsonValue) -> CloudObject:
    """A cluster of a region, in zones of its own choice."""
    given: Json = {"name": name, "location": "europe-west4", **inputs}
    return CloudObject(type=CLUSTER, id=f"clusters/{name}", urn="c", inputs=given, digest="c1")
