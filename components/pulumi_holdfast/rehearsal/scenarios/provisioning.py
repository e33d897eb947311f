"""What makes and interrupts a platform's nodes: Karpenter or the cluster autoscaler of a cloud."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import CAPACITY_TYPE, GPU_RESOURCE, ON_DEMAND, SPOT
from pulumi_holdfast.rehearsal.cluster_autoscaler.node_groups import NodeGroup, NodeGroups
from pulumi_holdfast.rehearsal.cluster_autoscaler.observation import empty_nodes
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.stacks.cluster_nodes import ClusterNodes

# How long a scenario waits for one condition: Karpenter batches pods for up to 10 s; the rest is for a busy computer.
WAIT_SECONDS: Final = 180.0


class Provisioner(Protocol):
    """Makes nodes for pending pods, in spot and on-demand pools."""

    @property
    def disruption(self) -> str:
        """The reason in the DisruptionTarget condition of pods on an interrupted node."""
        ...

    def on_spot(self) -> Json:
        """Return the fields of a pod's spec that select spot."""
        return {"nodeSelector": {CAPACITY_TYPE: SPOT}}

    def on_demand(self) -> Json:
        """Return the fields of a pod's spec that select on-demand."""
        return {"nodeSelector": {CAPACITY_TYPE: ON_DEMAND}}

    def has_plain_spot(self) -> bool:
        """Whether there is a spot pool without GPUs."""
        ...

    def has_gpus_on_demand(self) -> bool:
        """Whether there is an on-demand pool with GPUs."""
        ...

    def release_empty_nodes(self) -> None:
        """Delete every empty node at once, as the autoscaler would minutes later.

        A machine that is still starting stays: a pod is pending for it.
        """
        ...

    def interruption(self, node: str, say: Callable[[str], None]) -> Callable[[], None]:
        """Return the interruption of a spot node, as its cloud does it. Raises RehearsalError if it is not a spot node."""
        ...


@dataclass(frozen=True, kw_only=True)
class AutoscaledPools(Provisioner):
    """The node pools of a cluster, whose machines the cluster autoscaler of its cloud buys.

    `groups` are in the simulated cloud; `nodes` registers machines as nodes.
    """

    client: KubeClient
    groups: NodeGroups
    nodes: ClusterNodes

    def has_plain_spot(self) -> bool:
        """Whether there is a spot pool without GPUs."""
        return self._has_pool(is_spot=True, has_gpus=False)

    def has_gpus_on_demand(self) -> bool:
        """Whether there is an on-demand pool with GPUs."""
        return self._has_pool(is_spot=False, has_gpus=True)

    def release_empty_nodes(self) -> None:
        """Delete every empty node at once; the autoscaler would do so after ten minutes."""
        empty = empty_nodes(self.client.list("v1", "Node"), self.client.list("v1", "Pod"))
        if self.groups.end(empty):
            self.nodes.keep(self.groups.machines)

    def spot_pool_of(self, node: str) -> NodeGroup:
        """Return the node pool of a spot node. Raises RehearsalError if it is not one."""
        for seen in self.groups.groups():
            if seen.template.is_spot and any(one.name == node for one in seen.instances):
                return seen
        raise RehearsalError(f"node {node} is not a spot node of a node pool: choose one of a spot pool")

    def _has_pool(self, *, is_spot: bool, has_gpus: bool) -> bool:
        templates = [seen.template for seen in self.groups.groups()]
        return any((each.is_spot, GPU_RESOURCE in each.capacity) == (is_spot, has_gpus) for each in templates)
