"""Karpenter: how its clusters get nodes, how a spot node is interrupted, and what capacity its simulated cloud has."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pulumi_holdfast.controller.jobs.pods_and_nodes import node_of
from pulumi_holdfast.controller.kube.objects import name_of
from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.ladder.labels import CAPACITY_TYPE, GPU_RESOURCE
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.scenarios.node_termination import EVICTED
from pulumi_holdfast.rehearsal.scenarios.provisioning import WAIT_SECONDS, Provisioner

_VERSION = "karpenter.sh/v1"


@dataclass(frozen=True)
class Karpenter(Provisioner):
    """Karpenter makes nodes for the NodePools of a cluster; a machine is a NodeClaim."""

    client: KubeClient

    @property
    def disruption(self) -> str:
        """Its pods are evicted with the Eviction API."""
        return EVICTED

    def has_plain_spot(self) -> bool:
        """Whether a NodePool has the spot taint and no GPU taint."""
        return any(CAPACITY_TYPE in taints and GPU_RESOURCE not in taints for taints in self._pool_taints())

    def has_gpus_on_demand(self) -> bool:
        """Whether a NodePool has the GPU taint and no spot taint."""
        return any(CAPACITY_TYPE not in taints and GPU_RESOURCE in taints for taints in self._pool_taints())

    def release_empty_nodes(self) -> None:
        """Delete every empty node at once; consolidation would do so minutes later."""
        busy = {node_of(pod) for pod in self.client.list("v1", "Pod")}
        claims = {_node_of_claim(claim): name_of(claim) for claim in self.client.list(_VERSION, "NodeClaim")}
        empty = [claim for node, claim in claims.items() if node and node not in busy]
        for claim in empty:
            self.client.delete(_VERSION, "NodeClaim", claim)
        for claim in empty:
            self.client.wait_until_gone(_VERSION, "NodeClaim", claim, timeout_seconds=WAIT_SECONDS)

    def interruption(self, node: str, say: Callable[[str], None]) -> Callable[[], None]:
        """Return the spot interruption of a node.

        On AWS, Karpenter reads the interruption notice from a queue and deletes the NodeClaim. From there the code is the
        same: Karpenter taints the node, evicts its pods and terminates the machine. So the deletion simulates the notice.
        Not simulated: the cloud ends the machine after two minutes, also with pods on it.
        """
        claim = self.claim_of(node)

        def interrupt() -> None:
            say(f"spot interruption: node {node} is interrupted")
            if not self.client.delete(_VERSION, "NodeClaim", claim):
                raise RehearsalError(f"node {node} was gone before its interruption: run the scenario again")

        return interrupt

    def claim_of(self, node: str) -> str:
        """Return the NodeClaim of a node; waits while the claim of a new node has no node name yet."""

        def of_node(claims: list[Json]) -> list[str]:
            return [name_of(each) for each in claims if _node_of_claim(each) == node]

        claims = self.client.wait_list(
            _VERSION,
            "NodeClaim",
            timeout_seconds=WAIT_SECONDS,
            condition=lambda claims: bool(of_node(claims)),
            what=f"a NodeClaim has node {node}",
        )
        return of_node(claims)[0]

    def _pool_taints(self) -> list[set[str]]:
        return [
            {str(mapping(taint).get("key")) for taint in sequence(_template(pool).get("taints"))}
            for pool in self.client.list(_VERSION, "NodePool")
        ]


def _template(pool: Json) -> Json:
    return mapping(mapping(mapping(pool.get("spec")).get("template")).get("spec"))


def _node_of_claim(claim: Json) -> str:
    return str(mapping(claim.get("status")).get("nodeName") or "")


#: Annotation of a node class: how many more machines the simulated cloud has.
STOCK: Final = "rehearsal.holdfast.dev/stock"
_NODE_CLASS_VERSIONS: Final = {"karpenter.kwok.sh": "v1alpha1", "karpenter.k8s.aws": "v1"}


def sell_out(client: KubeClient, pool: str) -> None:
    """Let the simulated cloud answer that it has no capacity for a pool."""
    _set_stock(client, pool, "0")


def restock(client: KubeClient, pool: str) -> None:
    """Let the simulated cloud have unlimited capacity for a pool."""
    _set_stock(client, pool, None)


def _set_stock(client: KubeClient, pool: str, stock: str | None) -> None:
    found = client.get(_VERSION, "NodePool", pool)
    if found is None:
        raise RehearsalError(f"there is no NodePool {pool}: run `holdfast rehearse up` again")
    reference = mapping(_template(found).get("nodeClassRef"))
    group, kind = str(reference.get("group")), str(reference.get("kind"))
    version = f"{group}/{_NODE_CLASS_VERSIONS[group]}"
    client.merge_patch(version, kind, str(reference["name"]), {"metadata": {"annotations": {STOCK: stock}}})
