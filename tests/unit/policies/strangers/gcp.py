"""Programs on GKE: node pools beside and inside the cluster, queued provisioning, Autopilot, fixed-size GPU blocks."""

from pulumi_holdfast.ladder.labels import POOL
from pulumi_holdfast.program.resources import StackResource, Value
from rules.verdicts import Word
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


def with_gpus(accelerator: Value) -> list[StackResource]:
    """A spot pool and an on-demand one of one machine each, with these fields of their GPUs."""
    spot = node_pool("spot", nodes=1.0, spot=True, guestAccelerators=[accelerator])
    return [spot, node_pool("on-demand", nodes=1.0, guestAccelerators=[accelerator])]


SPOT, ON_DEMAND = node_pool("spot", spot=True), node_pool("on-demand")
FIXED = resource(ON_DEMAND.type, "on-demand", {key: value for key, value in {**ON_DEMAND.props, "initialNodeCount": 2.0}.items() if key != "autoscaling"})  # fmt: skip
MANY: Value = {"name": "many", "pods": 48, "cpu": "1", "memory": "4Gi", "gpus": 1}
SHARED: Value = {"gpuSharingConfig": {"gpuSharingStrategy": "TIME_SHARING", "maxSharedClientsPerGpu": 4.0}}
INLINE = resource(CLUSTER, "east", {"nodePools": [pool("spot", spot=True), pool("on-demand")]})

STRANGERS = (
    Stranger(name="spot and on-demand A100s", reading="Both take the job; GKE's autoscaler is modeled.", word=Word.ASSUMED, resources=[*training(), SPOT, ON_DEMAND]),
    Stranger(name="pools inside the cluster", reading="They are pools as any other.", word=Word.ASSUMED, resources=[INLINE, *training()]),
    Stranger(name="preemptible machines last", reading="Preemptible machines are spot.", word=Word.BROKEN, resources=[*training(SPOT_TIER, {"pool": "old"}), SPOT, node_pool("old", preemptible=True), ON_DEMAND], stops=frozenset({END})),
    Stranger(name="queued provisioning last", reading="Flex-start nodes end after a week.", word=Word.BROKEN, resources=[*training(SPOT_TIER, {"pool": "queued"}), SPOT, node_pool("queued", flexStart=True), ON_DEMAND], stops=frozenset({END})),
    Stranger(name="a block of two machines for a gang of four", reading="The fixed block holds half of the gang.", word=Word.BROKEN, resources=[*training(shapes=[WIDE]), SPOT, node_pool("on-demand", nodes=2.0)], stops=frozenset({REACH})),
    Stranger(name="Autopilot with a ladder", reading="Autopilot has no pools, so nothing shows those of the ladder.", word=Word.NOT_JUDGED, resources=[resource(CLUSTER, "auto", {"enableAutopilot": True}), *training()]),
    Stranger(name="a standard cluster without training", reading="The default pool trains nothing.", word=None, resources=[resource(CLUSTER, "east", {"initialNodeCount": 3.0})]),
    Stranger(name="partitions of GPUs", reading="Eight GPUs are 56 partitions.", word=Word.ASSUMED, resources=[*training(shapes=[MANY]), *with_gpus({"gpuPartitionSize": "1g.5gb"})]),
    Stranger(name="a pod of several shared GPUs", reading="A container may have one of them, and no program shows the containers.", word=Word.NOT_JUDGED, resources=[*training(shapes=[WIDE]), *with_gpus(SHARED)]),
    Stranger(name="a number of GPUs that is not sold", reading="Compute Engine attaches one, two or four of them.", word=Word.NOT_JUDGED, resources=[*training(), SPOT, node_pool("on-demand", machine="n1-standard-8", guestAccelerators=[{"type": "nvidia-tesla-t4", "count": 3.0}])]),
    Stranger(name="a fixed pool smaller than the gang", reading="Two nodes never become four.", word=Word.BROKEN, resources=[*training(shapes=[WIDE]), SPOT, FIXED], stops=frozenset({REACH})),
    Stranger(name="a class of both capacity types", reading="The ladder does not use the class.", word=Word.ASSUMED, resources=[*training(), SPOT, ON_DEMAND, compute_class({"machineFamily": "n2", "spot": True}, {"machineFamily": "n2"})]),
    Stranger(name="a spot tier without limits", reading="Nothing leads past the spot tier.", word=Word.BROKEN, resources=[*training({"pool": "spot"}, ON_DEMAND_TIER), SPOT, ON_DEMAND], stops=frozenset({LEAVES})),
)  # fmt: skip
