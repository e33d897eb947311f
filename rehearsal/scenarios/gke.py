"""GKE: how its clusters get nodes, and how Compute Engine preempts a spot node."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from holdfast.rehearsal.scenarios.node_termination import TERMINATED, NodeShutdown, grace_of
from holdfast.scheduling.json import Json, mapping
from holdfast.scheduling.labels import GPU_RESOURCE
from holdfast.simulator.clouds.gcp.instances import REGISTER
from holdfast.simulator.clouds.gcp.nodes import GKE, PROVISIONING, node_config
from holdfast.simulator.clouds.machines import Instance, State
from holdfast.simulator.clouds.state import CloudState
from holdfast.simulator.cluster_autoscaler.node_groups import InstanceGroups, NodeGroup
from holdfast.simulator.cluster_autoscaler.observation import empty_nodes
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.stacks.cluster_nodes import ClusterNodes

SPOT: Final = f"{GKE}/gke-spot"


@dataclass(frozen=True, kw_only=True)
class Gke:
    """GKE's cluster autoscaler makes nodes for the node pools of a cluster, as instances of managed instance groups.

    `cloud` is the simulated cloud; `nodes` registers machines as nodes.
    """

    client: KubeClient
    cloud: CloudState
    nodes: ClusterNodes

    @property
    def disruption(self) -> str:
        """The kubelet terminates its pods."""
        return TERMINATED

    def on_spot(self) -> Json:
        """Return the fields of a pod's spec that select spot."""
        toleration = {"key": SPOT, "operator": "Equal", "value": "true", "effect": "NoSchedule"}
        return {"nodeSelector": {SPOT: "true"}, "tolerations": [toleration]}

    def on_demand(self) -> Json:
        """Return the fields of a pod's spec that select on-demand."""
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
        """Delete every empty node at once; the autoscaler would do so after ten minutes."""
        empty = empty_nodes(self.client.list("v1", "Node"), self.client.list("v1", "Pod"))
        if InstanceGroups(self.cloud).end(empty):
            self.nodes.keep(InstanceGroups(self.cloud).machines)

    def interruption(self, node: str, say: Callable[[str], None]) -> "Preemption":
        """Prepare to preempt a spot node."""
        for seen in self._pools():
            for one in seen.instances:
                if one.name == node and seen.template.is_spot:
                    return Preemption(gke=self, seen=seen, instance=one, say=say)
        raise RehearsalError(f"node {node} is not a spot node of a node pool: choose one of a spot pool")

    def _pools(self) -> list[NodeGroup]:
        return InstanceGroups(self.cloud).groups()


@dataclass(frozen=True, kw_only=True)
class Preemption:
    """A preemption by Compute Engine.

    The machine gets an ACPI shutdown signal. The kubelet terminates users' pods and then critical pods, within the grace
    period of the node pool; then the machine is off and its node is deleted. The instance group creates a machine of the
    same name when there is capacity.
    """

    gke: Gke
    seen: NodeGroup
    instance: Instance
    say: Callable[[str], None]

    def interrupt(self) -> None:
        """Preempt it."""
        node = self.instance.name
        grace = grace_of(mapping(node_config(self.seen.pool).get("kubeletConfig")))
        self.say(f"preemption: node {node} is preempted, with a grace period of {grace.users} s for pods")
        with self.gke.nodes.held():
            NodeShutdown(client=self.gke.client, node=node, grace=grace, say=self.say).run()
            self.gke.client.delete("v1", "Node", node, propagation="Background")
            with self.gke.cloud.changing() as inventory:
                REGISTER.record(self.seen.pool, replace(self.instance, state=State.TERMINATED), inventory)

    def wait_until_gone(self) -> None:
        """Do nothing: the machine is off when `interrupt` returns."""
