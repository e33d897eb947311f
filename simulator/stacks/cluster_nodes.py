"""Lets the machines of a stand-in cloud join the stack's control plane as nodes."""

import fcntl
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from holdfast.scheduling.json import Json
from holdfast.simulator.clouds.machines import Machine, Roster
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.errors import KubeError, KubeTimeout
from holdfast.simulator.kubernetes_client.objects import mapping, sequence

FIELD_MANAGER = "holdfast-machines"
# By this a machine of a cloud is told from a node that was made in another way: which cloud's it is.
CLOUD = "rehearsal.holdfast.dev/cloud"
# kwok plays the kubelet of the nodes that carry this, and of no others.
_SIMULATED = {"kwok.x-k8s.io/node": "fake"}
# Each takes a second; a busy machine takes its time.
_READY_SECONDS = 60.0
# A cloud goes on after some minutes, whatever still holds out on the machine.
_DRAIN_SECONDS = 30.0


class ClusterNodes:
    """The nodes which one cloud's machines are, on the API server of `kubeconfig`."""

    def __init__(self, kubeconfig: Path, cloud: str) -> None:
        self._kubeconfig = kubeconfig
        self._cloud = cloud

    def keep(self, roster: Roster) -> None:
        """Have the machines that `roster` names as nodes and, of this cloud's, no other; return once they are ready.

        A machine that goes is drained first. Who keeps this cloud's nodes at the same time waits, and asks its roster
        only then. Raises RehearsalError where a machine does not get ready.
        """
        client = KubeClient.from_kubeconfig(self._kubeconfig)
        try:
            with self.held():
                machines = roster()
                wanted = {machine.name for machine in machines}
                for node in self._nodes(client):
                    if node not in wanted:
                        _remove(client, node)
                for machine in machines:
                    client.apply(self._simulated(machine), field_manager=FIELD_MANAGER, force=True)
            self._wait_until_ready(client, wanted)
        finally:
            client.close()

    @contextmanager
    def held(self) -> Generator[None]:
        """Have this cloud's nodes to oneself; another process that wants them waits."""
        with self._kubeconfig.with_name(f"{self._cloud}-nodes.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _nodes(self, client: KubeClient) -> list[str]:
        return [
            str(mapping(node["metadata"])["name"])
            for node in client.list("v1", "Node")
            if mapping(mapping(node["metadata"]).get("annotations")).get(CLOUD) == self._cloud
        ]

    def _simulated(self, machine: Machine) -> Json:
        node = machine.as_node()
        annotations = {**_SIMULATED, CLOUD: self._cloud}
        return {
            **node,
            "metadata": {**mapping(node["metadata"]), "annotations": annotations},
            # Without a status of its own kwok would give every machine the same.
            "status": {
                "capacity": dict(machine.capacity),
                "allocatable": dict(machine.allocatable or machine.capacity),
            },
        }

    def _wait_until_ready(self, client: KubeClient, wanted: set[str]) -> None:
        def are_ready(nodes: list[Json]) -> bool:
            # One that is not there any more was taken away in the meantime.
            return all(_is_ready(node) for node in nodes if mapping(node["metadata"])["name"] in wanted)

        try:
            client.wait_list(
                "v1",
                "Node",
                timeout_seconds=_READY_SECONDS,
                condition=are_ready,
                what="the machines have joined the cluster",
            )
        except KubeTimeout as timeout:
            raise RehearsalError(
                f"NodeCreationFailure: instances failed to join the kubernetes cluster ({timeout})"
            ) from timeout


def _is_ready(node: Json) -> bool:
    conditions = map(mapping, sequence(mapping(node.get("status")).get("conditions")))
    return any(each.get("type") == "Ready" and each.get("status") == "True" for each in conditions)


def _remove(client: KubeClient, node: str) -> None:
    """Drain a machine and end it: no pod comes any more, those on it are evicted, the rest go with it."""
    client.merge_patch("v1", "Node", node, {"spec": {"unschedulable": True}})
    for pod in _pods_on(client, node):
        if not _is_daemons(pod):
            _evict(client, pod)
    with suppress(KubeTimeout):
        client.wait_list(
            "v1",
            "Pod",
            timeout_seconds=_DRAIN_SECONDS,
            condition=lambda pods: not any(_is_on(pod, node) and not _is_daemons(pod) for pod in pods),
            what=f"node {node} is drained",
        )
    client.delete("v1", "Node", node, propagation="Background")
    # The garbage collector does so a minute later.
    for pod in _pods_on(client, node):
        namespace, name = _place(pod)
        client.delete("v1", "Pod", name, namespace=namespace, propagation="Background", grace_seconds=0)


def _pods_on(client: KubeClient, node: str) -> list[Json]:
    return [pod for pod in client.list("v1", "Pod") if _is_on(pod, node)]


def _is_on(pod: Json, node: str) -> bool:
    return mapping(pod.get("spec")).get("nodeName") == node


def _is_daemons(pod: Json) -> bool:
    owners = map(mapping, sequence(mapping(pod.get("metadata")).get("ownerReferences")))
    return any(owner.get("kind") == "DaemonSet" for owner in owners)


def _evict(client: KubeClient, pod: Json) -> None:
    namespace, name = _place(pod)
    try:
        client.evict(namespace, name)
    except KubeError as error:
        # 429: a disruption budget forbids it, for as long as a cloud waits; 404: it has gone by itself.
        if error.status not in (404, 429):
            raise


def _place(pod: Json) -> tuple[str, str]:
    metadata = mapping(pod["metadata"])
    return str(metadata["namespace"]), str(metadata["name"])
