"""GKE: how its clusters get nodes, and how Compute Engine preempts a spot node."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.rehearsal.clouds.gcp.nodes import GKE, PROVISIONING, node_config
from pulumi_holdfast.rehearsal.scenarios.node_termination import TERMINATED, grace_of, shut_down
from pulumi_holdfast.rehearsal.scenarios.provisioning import AutoscaledPools

SPOT: Final = f"{GKE}/gke-spot"


@dataclass(frozen=True, kw_only=True)
class Gke(AutoscaledPools):
    """GKE's cluster autoscaler makes nodes for the node pools of a cluster, as instances of managed instance groups."""

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

    def interruption(self, node: str, say: Callable[[str], None]) -> Callable[[], None]:
        """Return the preemption of a spot node by Compute Engine.

        The machine gets an ACPI shutdown signal. The kubelet terminates users' pods and then critical pods, within the
        grace period of the node pool; then the machine is off and its node is deleted. The instance group creates a
        machine of the same name when there is capacity.
        """
        grace = grace_of(mapping(node_config(self.spot_pool_of(node).pool).get("kubeletConfig")))

        def preempt() -> None:
            say(f"preemption: node {node} is preempted, with a grace period of {grace.users} s for pods")
            with self.nodes.held():
                shut_down(self.client, node, grace, say)
                self.client.delete("v1", "Node", node, propagation="Background")
                self.groups.take(node)

        return preempt
