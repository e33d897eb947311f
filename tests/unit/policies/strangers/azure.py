"""Programs on AKS: node auto-provisioning as its quickstart shows it, and agent pools beside and inside the cluster."""

from pulumi_holdfast.ladder.labels import POOL
from pulumi_holdfast.program.pools.classic import with_native
from pulumi_holdfast.program.resources import StackResource, Value
from rules.verdicts import Word
from tests.support.builders.stack_resources import aks_cluster, aks_pool, resource
from tests.unit.policies.strangers.programs import (
    END,
    REACH,
    SCALING,
    SPOT_TIER,
    Stranger,
    node_pool,
    one_of,
    training,
)

SIZE = "Standard_NC24ads_A100_v4"
A100 = one_of("node.kubernetes.io/instance-type", SIZE)
NAP: Value = {"mode": "Auto", "defaultNodePools": "None"}
WIDE: Value = {"name": "wide", "pods": 4, "cpu": "20", "memory": "64Gi", "gpus": 1}


def agent_pool(name: str, **fields: Value) -> StackResource:
    """An agent pool of A100s."""
    return aks_pool(name, vmSize=SIZE, maxCount=2.0, **fields)


def profile(name: str, priority: str) -> Value:
    """A pool inside the cluster."""
    return {
        "name": name.replace("-", ""),
        "mode": "User",
        "vmSize": SIZE,
        "count": 2.0,
        "scaleSetPriority": priority,
        "nodeLabels": {POOL: name},
    }


SPOT = node_pool("spot", A100, kinds=["spot"], node_class="AKSNodeClass")
ON_DEMAND = node_pool("on-demand", A100, kinds=["on-demand"], node_class="AKSNodeClass")
INLINE = aks_cluster(agentPoolProfiles=[profile("spot", "Spot"), profile("on-demand", "Regular")])
TOLERATED: Value = {"key": "kubernetes.azure.com/scalesetpriority", "value": "spot", "effect": "NoSchedule"}

CLASSIC = "azure:containerservice/kubernetesCluster"


def classic_pool(name: str, **fields: Value) -> StackResource:
    """A pool of the classic provider."""
    props: dict[str, Value] = {
        "name": name.replace("-", ""),
        "vmSize": SIZE,
        "nodeLabels": {POOL: name},
        "kubernetesClusterId": "/managedClusters/classic",
    }
    return resource(f"{CLASSIC}NodePool:KubernetesClusterNodePool", name, {**props, **fields})


OF_CLASSIC = [resource(f"{CLASSIC}:KubernetesCluster", "classic", {"name": "classic", "defaultNodePool": {"name": "system", "vmSize": "Standard_D4s_v5"}}), classic_pool("spot", priority="Spot", autoScalingEnabled=True, maxCount=4.0)]  # fmt: skip

STRANGERS = (
    Stranger(name="the quickstart of node auto-provisioning", reading="AKS' own pools train nothing.", word=None, resources=[aks_cluster({"mode": "Auto", "defaultNodePools": "Auto"}), node_pool("general", labels={}, node_class="AKSNodeClass")]),
    Stranger(name="NodePools on node auto-provisioning", reading="Both pools take the job.", word=Word.PROVED, resources=[aks_cluster(NAP), *training(), SPOT, ON_DEMAND]),
    Stranger(name="NodePools without node auto-provisioning", reading="Nothing makes the machines of the pools.", word=Word.BROKEN, resources=[aks_cluster(), *training(), SPOT, ON_DEMAND], stops=frozenset({SCALING})),
    Stranger(name="scale sets beside node auto-provisioning", reading="Jobs select a pool of one autoscaler or the other.", word=Word.ASSUMED, resources=[aks_cluster(NAP), *training(), SPOT, agent_pool("on-demand")]),
    Stranger(name="pools inside the cluster", reading="They are pools as any other; AKS' autoscaler is modeled.", word=Word.ASSUMED, resources=[INLINE, *training()]),
    Stranger(name="a spot pool inside the cluster last", reading="The ladder ends on spot.", word=Word.BROKEN, resources=[INLINE, *training(SPOT_TIER)], stops=frozenset({END})),
    Stranger(name="a gang beyond the scale set", reading="Four pods need four machines, and the pool has two.", word=Word.BROKEN, resources=[aks_cluster(), *training(shapes=[WIDE]), agent_pool("spot", scaleSetPriority="spot"), agent_pool("on-demand")], stops=frozenset({REACH})),
    Stranger(name="a pool without a number of nodes", reading="AKS makes one node, and the gang needs four.", word=Word.BROKEN, resources=[aks_cluster(), *training(shapes=[WIDE]), agent_pool("spot", scaleSetPriority="Spot"), aks_pool("on-demand", vmSize=SIZE, enableAutoScaling=False)], stops=frozenset({REACH})),
    Stranger(name="a stopped pool", reading="Nothing starts its nodes.", word=Word.BROKEN, resources=[aks_cluster(), *training(), agent_pool("spot", scaleSetPriority="Spot"), agent_pool("on-demand", powerState={"code": "Stopped"})], stops=frozenset({REACH})),
    Stranger(name="pools of the classic provider", reading="They are agent pools as any other.", word=Word.ASSUMED, resources=with_native([*OF_CLASSIC, classic_pool("on-demand", autoScalingEnabled=True, maxCount=4.0), *training(shapes=[WIDE])])),
    Stranger(name="a fixed pool of the classic provider", reading="Two nodes never become four.", word=Word.BROKEN, resources=with_native([*OF_CLASSIC, classic_pool("on-demand", nodeCount=2.0), *training(shapes=[WIDE])]), stops=frozenset({REACH})),
    Stranger(name="a proximity placement group over zones", reading="AKS refuses the pool.", word=Word.BROKEN, resources=[aks_cluster(), *training(), agent_pool("spot", scaleSetPriority="Spot"), agent_pool("on-demand", proximityPlacementGroupID="near", availabilityZones=["1", "2"])], stops=frozenset({REACH})),
    Stranger(name="partitions of GPUs", reading="As how many GPUs they count depends on the device plugin.", word=Word.NOT_JUDGED, resources=[aks_cluster(), *training(), agent_pool("spot", scaleSetPriority="Spot"), agent_pool("on-demand", gpuInstanceProfile="MIG1g")]),
    Stranger(name="a taint without an effect", reading="AKS rejects it; without it the ladder is sound.", word=Word.ASSUMED, resources=[aks_cluster(), *training(), agent_pool("spot", scaleSetPriority="Spot"), agent_pool("on-demand", nodeTaints=["dedicated"])]),
    Stranger(name="an agent pool without the label", reading="Jobs cannot select it.", word=Word.BROKEN, resources=[aks_cluster(), *training(), agent_pool("spot", scaleSetPriority="Spot"), agent_pool("on-demand", labels={}, agentPoolName="on-demand")], stops=frozenset({END})),
)  # fmt: skip
