"""Programs on GKE: node pools beside and inside the cluster, queued provisioning, Autopilot, fixed-size GPU blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.policies.rules.verdicts import Word
from holdfast.scheduling.labels import POOL
from tests.support.builders.stack_resources import compute_class, resource
from tests.unit.policies.strangers.programs import (
    END,
    LEAVES,
    ON_DEMAND_TIER,
    REACH,
    SPOT_TIER,
    Stranger,
    training,
)

if TYPE_CHECKING:
    from holdfast.policies.resources import StackResource, Value

CLUSTER = "gcp:container/cluster:Cluster"
WIDE: Value = {"name": "wide", "pods": 4, "cpu": "20", "memory": "64Gi", "gpus": 8}


def pool(name: str, *, nodes: float = 4.0, machine: str = "a2-highgpu-8g", **config: Value) -> Value:
    """The fields of a node pool with the pool label."""
    return {
        "name": name,
        "cluster": "east",
        "nodeLocations": ["us-central1-a"],
        "nodeConfig": {"machineType": machine, "labels": {POOL: name}, **config},
        "autoscaling": {"totalMaxNodeCount": nodes},
    }


def node_pool(
    name: str, *, nodes: float = 4.0, machine: str = "a2-highgpu-8g", **config: Value
) -> StackResource:
    """A node pool of its own."""
    props = pool(name, nodes=nodes, machine=machine, **config)
    assert isinstance(props, dict), "it is an object"
    return resource("gcp:container/nodePool:NodePool", name, props)


SPOT, ON_DEMAND = node_pool("spot", spot=True), node_pool("on-demand")
INLINE = resource(CLUSTER, "east", {"nodePools": [pool("spot", spot=True), pool("on-demand")]})

STRANGERS = (
    Stranger(name="spot and on-demand A100s", reading="Both take the job; GKE's autoscaler is modeled.", word=Word.ASSUMED, resources=[*training(), SPOT, ON_DEMAND]),
    Stranger(name="pools inside the cluster", reading="They are pools as any other.", word=Word.ASSUMED, resources=[INLINE, *training()]),
    Stranger(name="preemptible machines last", reading="Preemptible machines are spot.", word=Word.BROKEN, resources=[*training(SPOT_TIER, {"pool": "old"}), SPOT, node_pool("old", preemptible=True), ON_DEMAND], stops=frozenset({END})),
    Stranger(name="queued provisioning last", reading="Flex-start nodes end after a week.", word=Word.BROKEN, resources=[*training(SPOT_TIER, {"pool": "queued"}), SPOT, node_pool("queued", flexStart=True), ON_DEMAND], stops=frozenset({END})),
    Stranger(name="a block of two machines for a gang of four", reading="The fixed block holds half of the gang.", word=Word.BROKEN, resources=[*training(shapes=[WIDE]), SPOT, node_pool("on-demand", nodes=2.0)], stops=frozenset({REACH})),
    Stranger(name="Autopilot with a ladder", reading="Autopilot has no pools, so nothing shows those of the ladder.", word=Word.NOT_JUDGED, resources=[resource(CLUSTER, "auto", {"enableAutopilot": True}), *training()]),
    Stranger(name="a standard cluster without training", reading="The default pool trains nothing.", word=None, resources=[resource(CLUSTER, "east", {"initialNodeCount": 3.0})]),
    Stranger(name="a class of both capacity types", reading="The ladder does not use the class.", word=Word.ASSUMED, resources=[*training(), SPOT, ON_DEMAND, compute_class({"machineFamily": "n2", "spot": True}, {"machineFamily": "n2"})]),
    Stranger(name="a spot tier without limits", reading="Nothing leads past the spot tier.", word=Word.BROKEN, resources=[*training({"pool": "spot"}, ON_DEMAND_TIER), SPOT, ON_DEMAND], stops=frozenset({LEAVES})),
)  # fmt: skip
