"""Registers the machines of a simulated cloud as nodes of the control plane, and drains removed ones."""

import fcntl
import time
from collections.abc import Generator, Iterable
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.controller.kube.objects import condition_of, name_of, namespace_of
from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.rehearsal.clouds.machines import MachineSource, SimulatedMachine
from pulumi_holdfast.rehearsal.cluster_autoscaler.scale_up import is_daemons, node_of
from pulumi_holdfast.rehearsal.errors import KubeTimeout, RehearsalError
from pulumi_holdfast.rehearsal.kubernetes import KubeClient

FIELD_MANAGER = "holdfast-machines"
# The cloud of a machine; nodes without this annotation are not managed here.
CLOUD = "rehearsal.holdfast.dev/cloud"
# kwok simulates the kubelet of nodes with this annotation.
_SIMULATED = {"kwok.x-k8s.io/node": "fake"}
# A node takes about a second, more on a busy machine.
_READY_SECONDS = 60.0
# A cloud terminates the machine after some minutes, even with remaining pods.
_DRAIN_SECONDS = 30.0


class ClusterNodes:
    """The nodes of the machines of one cloud, on the API server of `kubeconfig`."""

    def __init__(self, kubeconfig: Path, cloud: str) -> None:
        self._kubeconfig = kubeconfig
        self._cloud = cloud

    def keep(self, source: MachineSource) -> None:
        """Make the nodes of this cloud match the listed machines, and return when they are ready.

        A removed machine is drained first. A concurrent call waits before it lists its machines. Raises
        RehearsalError if a machine does not become ready.
        """
        with closing(KubeClient.from_kubeconfig(self._kubeconfig)) as client:
            with self.held():
                machines = source()
                wanted = {machine.name for machine in machines}
                for node in self._nodes(client):
                    if node not in wanted:
                        _remove(client, node)
                for machine in machines:
                    client.apply(self._simulated(machine), field_manager=FIELD_MANAGER, force=True)
            self._wait_until_ready(client, wanted)

    @contextmanager
    def held(self) -> Generator[None]:
        """Lock the nodes of this cloud; other processes wait."""
        with self._kubeconfig.with_name(f"{self._cloud}-nodes.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _nodes(self, client: KubeClient) -> list[str]:
        return [
            name_of(node)
            for node in client.list("v1", "Node")
            if mapping(mapping(node["metadata"]).get("annotations")).get(CLOUD) == self._cloud
        ]

    def _simulated(self, machine: SimulatedMachine) -> Json:
        node = machine.as_node()
        annotations = {**_SIMULATED, CLOUD: self._cloud}
        return {
            **node,
            "metadata": {**mapping(node["metadata"]), "annotations": annotations},
            # Without a status, kwok would set the same capacity for every machine.
            "status": {
                "capacity": dict(machine.capacity),
                "allocatable": dict(machine.allocatable or machine.capacity),
            },
        }

    def _wait_until_ready(self, client: KubeClient, wanted: set[str]) -> None:
        def are_ready(nodes: list[Json]) -> bool:
            # A missing node was removed meanwhile.
            return all(
                condition_of(node, "Ready").get("status") == "True"
                for node in nodes
                if name_of(node) in wanted
            )

        try:
            client.wait_list(
                "v1",
                "Node",
                timeout_seconds=_READY_SECONDS,
                condition=are_ready,
                what="the machines join the cluster",
            )
        except KubeTimeout as timeout:
            raise RehearsalError(
                f"NodeCreationFailure: instances failed to join the kubernetes cluster ({timeout})"
            ) from timeout


def _remove(client: KubeClient, node: str) -> None:
    """Drain a node, and delete it with its remaining pods."""
    drain(client, node, seconds=_DRAIN_SECONDS)
    client.delete("v1", "Node", node, propagation="Background")
    # The garbage collector would delete them a minute later.
    for pod in client.list("v1", "Pod"):
        if mapping(pod.get("spec")).get("nodeName") == node:
            where = namespace_of(pod)
            client.delete(
                "v1", "Pod", name_of(pod), namespace=where, propagation="Background", grace_seconds=0
            )


def evictable(pods: Iterable[Json], node: str) -> list[Json]:
    """Return the unfinished pods of a node that a drain evicts: all but those of DaemonSets."""
    return [pod for pod in pods if node_of(pod) == node and not is_daemons(pod)]


def drain(client: KubeClient, node: str, *, seconds: float, taint: Json | None = None) -> list[Json]:
    """Cordon a node, with a taint if the cloud sets one, and evict its pods; return those that are left after `seconds`."""
    deadline = time.monotonic() + seconds
    found = client.get("v1", "Node", node) or {}
    taints = [*sequence(mapping(found.get("spec")).get("taints")), *([taint] if taint else [])]
    client.merge_patch("v1", "Node", node, {"spec": {"unschedulable": True, "taints": taints}})
    for pod in evictable(client.list("v1", "Pod"), node):
        _evict(client, pod)
    with suppress(KubeTimeout):
        client.wait_list(
            "v1",
            "Pod",
            timeout_seconds=max(0.1, deadline - time.monotonic()),
            condition=lambda pods: not evictable(pods, node),
            what=f"node {node} is drained",
        )
    return evictable(client.list("v1", "Pod"), node)


def _evict(client: KubeClient, pod: Json) -> None:
    try:
        client.evict(namespace_of(pod), name_of(pod))
    except ApiError as error:
        # 429: a PodDisruptionBudget blocks the eviction, and a cloud does not wait for that; 404: it no longer exists.
        if error.status not in (404, 429):
            raise
