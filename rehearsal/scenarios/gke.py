"""GKE's machines: where they come from, and how a spot one is preempted."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from holdfast.rehearsal.scenarios.node_termination import TERMINATED, NodeShutdown, grace_of
from holdfast.scheduling.json import Json
from holdfast.scheduling.labels import GPU_RESOURCE
from holdfast.simulator.clouds.gcp.instances import Instance, State, record
from holdfast.simulator.clouds.gcp.nodes import GKE, PROVISIONING, node_config
from holdfast.simulator.clouds.state import CloudState
from holdfast.simulator.cluster_autoscaler.instance_groups import InstanceGroups
from holdfast.simulator.cluster_autoscaler.node_groups import PoolSeen
from holdfast.simulator.cluster_autoscaler.observation import empty_nodes
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.objects import mapping
from holdfast.simulator.stacks.cluster_nodes import ClusterNodes

SPOT: Final = f"{GKE}/gke-spot"


@dataclass(frozen=True, kw_only=True)
class Gke:
    """Buys for the node pools of a cluster; a machine is an instance of one of Compute Engine's groups.

    `cloud` is the stand-in cloud; `nodes` lets machines join.
    """

    client: KubeClient
    cloud: CloudState
    nodes: ClusterNodes

    @property
    def disruption(self) -> str:
        """Its pods are ended by the kubelet of their node."""
        return TERMINATED

    def on_spot(self) -> Json:
        """Return what a pod's spec says that wants a spot machine."""
        toleration = {"key": SPOT, "operator": "Equal", "value": "true", "effect": "NoSchedule"}
        return {"nodeSelector": {SPOT: "true"}, "tolerations": [toleration]}

    def on_demand(self) -> Json:
        """Return what a pod's spec says that wants an on-demand machine."""
        return {"nodeSelector": {PROVISIONING: "standard"}}

    def has_plain_spot(self) -> bool:
        """Whether there is a spot pool without GPUs."""
        return any(
            seen.template.is_spot and GPU_RESOURCE not in seen.template.capacity for seen in self._pools()
        )

    def has_gpus_on_demand(self) -> bool:
        """Whether there is an on-demand pool with GPUs."""
        return any(
            not seen.template.is_spot and GPU_RESOURCE in seen.template.capacity for seen in self._pools()
        )

    def release_empty_nodes(self) -> None:
        """Give back every machine on which no pod runs, as the autoscaler does ten minutes later."""
        empty = empty_nodes(self.client.list("v1", "Node"), self.client.list("v1", "Pod"))
        if InstanceGroups(self.cloud).end(empty):
            self.nodes.keep(InstanceGroups(self.cloud).machines)

    def interruption(self, node: str, say: Callable[[str], None]) -> "Preemption":
        """Prepare to preempt a spot node."""
        for seen in self._pools():
            for one in seen.instances:
                if one.name == node and seen.template.is_spot:
                    return Preemption(gke=self, seen=seen, instance=one, say=say)
        raise RehearsalError(f"node {node} is no spot machine of a node pool: there is nothing to preempt")

    def _pools(self) -> list[PoolSeen]:
        return InstanceGroups(self.cloud).seen()


@dataclass(frozen=True, kw_only=True)
class Preemption:
    """A spot machine taken back by Compute Engine.

    The machine is told to end. The kubelet hears it, ends users' pods and after them those the cluster cannot do without,
    within the seconds that their pool leaves them; then the machine is off, and the node goes with it. The machine's group
    makes it again under its old name, as soon as there is one to be had.
    """

    gke: Gke
    seen: PoolSeen
    instance: Instance
    say: Callable[[str], None]

    def interrupt(self) -> None:
        """Preempt it."""
        node = self.instance.name
        grace = grace_of(mapping(node_config(self.seen.pool).get("kubeletConfig")))
        self.say(f"preemption: node {node} is taken, which leaves pods {grace.users} s")
        with self.gke.nodes.held():
            NodeShutdown(client=self.gke.client, node=node, grace=grace, say=self.say).play()
            self.gke.client.delete("v1", "Node", node, propagation="Background")
            with self.gke.cloud.changing() as inventory:
                record(self.seen.pool, replace(self.instance, state=State.TERMINATED), inventory)

    def wait_until_gone(self) -> None:
        """Do nothing: the machine is off once it is taken."""
