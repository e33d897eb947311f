"""AKS's machines: where they come from, and how Azure takes a spot one back."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from holdfast.rehearsal.scenarios.karpenter import Karpenter, wait_until_gone
from holdfast.rehearsal.scenarios.node_termination import EVICTED, ORPHANED, NodeDrain, lose_node
from holdfast.rehearsal.scenarios.provisioning import Interruption
from holdfast.scheduling.json import Json
from holdfast.scheduling.labels import CAPACITY_TYPE, GPU_RESOURCE, ON_DEMAND, SPOT
from holdfast.simulator.cluster_autoscaler.node_groups import PoolSeen
from holdfast.simulator.cluster_autoscaler.observation import empty_nodes
from holdfast.simulator.cluster_autoscaler.scale_sets import ScaleSets
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.stacks.cluster_nodes import ClusterNodes

# Azure promises up to 30 s, as well as it can, and often gives less than 10.
NOTICE_SECONDS: Final = 8.0


@dataclass(frozen=True)
class NodeAutoProvisioning(Karpenter):
    """AKS's own Karpenter buys for the NodePools of a cluster.

    It hears nothing of an eviction before the machine is gone (Azure/karpenter-provider-azure #1594): no pod is told.
    """

    @property
    def disruption(self) -> str:
        """Its pods are found to be on no node."""
        return ORPHANED

    def interruption(self, node: str, say: Callable[[str], None]) -> Interruption:
        """Prepare to take a spot node back."""
        return UnheardEviction(client=self.client, node=node, claim=self.claim_of(node), say=say)


@dataclass(frozen=True, kw_only=True)
class UnheardEviction:
    """A spot machine taken back before anybody in the cluster has done anything about it.

    Azure deletes the machine; AKS sees that there is none behind the node and deletes that too; Karpenter, which holds
    the node, lets go of it since its machine is gone.
    """

    client: KubeClient
    node: str
    claim: str
    say: Callable[[str], None]

    def interrupt(self) -> None:
        """Take it."""
        self.say(f"eviction: node {self.node} is gone at once, its pods are told nothing")
        lose_node(self.client, self.node)

    def wait_until_gone(self) -> None:
        """Wait until Karpenter has given it up."""
        wait_until_gone(self.client, self.claim)


@dataclass(frozen=True, kw_only=True)
class AksScaleSets:
    """AKS's autoscaler buys for the node pools of a cluster; a machine is one of a scale set's."""

    client: KubeClient
    scale_sets: ScaleSets
    nodes: ClusterNodes

    @property
    def disruption(self) -> str:
        """Its pods are evicted through the Eviction API."""
        return EVICTED

    def on_spot(self) -> Json:
        """Return what a pod's spec says that wants a spot machine."""
        return {"nodeSelector": {CAPACITY_TYPE: SPOT}}

    def on_demand(self) -> Json:
        """Return what a pod's spec says that wants an on-demand machine."""
        return {"nodeSelector": {CAPACITY_TYPE: ON_DEMAND}}

    def has_plain_spot(self) -> bool:
        """Whether there is a spot pool without GPUs."""
        return any(seen.template.is_spot and not _has_gpus(seen) for seen in self.scale_sets.seen())

    def has_gpus_on_demand(self) -> bool:
        """Whether there is an on-demand pool with GPUs."""
        return any(not seen.template.is_spot and _has_gpus(seen) for seen in self.scale_sets.seen())

    def release_empty_nodes(self) -> None:
        """Give back every machine on which no pod runs, as the autoscaler does ten minutes later."""
        empty = empty_nodes(self.client.list("v1", "Node"), self.client.list("v1", "Pod"))
        if self.scale_sets.end(empty):
            self.nodes.keep(self.scale_sets.machines)

    def interruption(self, node: str, say: Callable[[str], None]) -> Interruption:
        """Prepare to take a spot node back."""
        spot = [seen for seen in self.scale_sets.seen() if seen.template.is_spot]
        if not any(one.name == node for seen in spot for one in seen.instances):
            raise RehearsalError(f"node {node} is no spot machine of a node pool: there is nothing to evict")
        return DrainedEviction(aks=self, node=node, say=say)


@dataclass(frozen=True, kw_only=True)
class DrainedEviction:
    """A spot machine taken back with as little notice as Azure often gives.

    AKS hears the notice and drains the node, as far as the time goes; then the machine is deleted, and the node with it.
    Its scale set is smaller by one: another is bought when pods wait for it.
    """

    aks: AksScaleSets
    node: str
    say: Callable[[str], None]

    def interrupt(self) -> None:
        """Take it."""
        self.say(f"eviction: node {self.node} is taken, with {NOTICE_SECONDS:.0f} s of notice")
        with self.aks.nodes.held():
            NodeDrain(client=self.aks.client, node=self.node, seconds=NOTICE_SECONDS, say=self.say).play()
            lose_node(self.aks.client, self.node)
            self.aks.scale_sets.take(self.node)

    def wait_until_gone(self) -> None:
        """Do nothing: the machine is gone once it is taken."""


def _has_gpus(seen: PoolSeen) -> bool:
    return GPU_RESOURCE in seen.template.capacity
