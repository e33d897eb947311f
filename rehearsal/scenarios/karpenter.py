"""Karpenter's machines: where they come from, and how one is taken."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from holdfast.rehearsal.scenarios.placement import name_of, node_of
from holdfast.rehearsal.scenarios.provisioning import WAIT_SECONDS, Interruption
from holdfast.scheduling.json import Json
from holdfast.scheduling.labels import CAPACITY_TYPE, GPU_RESOURCE, ON_DEMAND, SPOT
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.objects import mapping, sequence

_VERSION = "karpenter.sh/v1"


@dataclass(frozen=True)
class Karpenter:
    """Buys for the NodePools of a cluster; a machine is a NodeClaim."""

    client: KubeClient

    @property
    def disruption(self) -> str:
        """Its pods are evicted through the Eviction API."""
        return "EvictionByEvictionAPI"

    def on_spot(self) -> Json:
        """Return what a pod's spec says that wants a spot machine."""
        return {"nodeSelector": {CAPACITY_TYPE: SPOT}}

    def on_demand(self) -> Json:
        """Return what a pod's spec says that wants an on-demand machine."""
        return {"nodeSelector": {CAPACITY_TYPE: ON_DEMAND}}

    def has_plain_spot(self) -> bool:
        """Whether a NodePool keeps pods away that do not ask for spot, and lets in those without GPUs."""
        return any(CAPACITY_TYPE in taints and GPU_RESOURCE not in taints for taints in self._pool_taints())

    def has_gpus_on_demand(self) -> bool:
        """Whether a NodePool keeps pods without GPUs away, and no others."""
        return any(CAPACITY_TYPE not in taints and GPU_RESOURCE in taints for taints in self._pool_taints())

    def release_empty_nodes(self) -> None:
        """Give back every machine on which no pod runs, as consolidation does minutes later."""
        busy = {node_of(pod) for pod in self.client.list("v1", "Pod")}
        claims = {_node_of_claim(claim): name_of(claim) for claim in self.client.list(_VERSION, "NodeClaim")}
        empty = [claim for node, claim in claims.items() if node and node not in busy]
        for claim in empty:
            self.client.delete(_VERSION, "NodeClaim", claim)
        for claim in empty:
            wait_until_gone(self.client, claim)

    def interruption(self, node: str, say: Callable[[str], None]) -> Interruption:
        """Prepare to take a node."""
        return SpotInterruption(client=self.client, node=node, claim=self.claim_of(node), say=say)

    def claim_of(self, node: str) -> str:
        """Return the claim of a node; waits for the moment in which a new node is not yet entered in its claim."""

        def of_node(claims: list[Json]) -> list[str]:
            return [name_of(each) for each in claims if _node_of_claim(each) == node]

        claims = self.client.wait_list(
            _VERSION,
            "NodeClaim",
            timeout_seconds=WAIT_SECONDS,
            condition=lambda claims: bool(of_node(claims)),
            what=f"Karpenter owns node {node}",
        )
        return of_node(claims)[0]

    def _pool_taints(self) -> list[set[str]]:
        return [
            {str(mapping(taint).get("key")) for taint in sequence(_template(pool).get("taints"))}
            for pool in self.client.list(_VERSION, "NodePool")
        ]


@dataclass(frozen=True, kw_only=True)
class SpotInterruption:
    """A node taken as an interruption takes it.

    On a cloud, the notice of an interruption reaches Karpenter through a queue, and all that Karpenter does about it is
    to delete the NodeClaim. The rest is the same code here and there: the node is tainted, its pods are evicted through
    the Eviction API, and the machine is ended. So the deletion stands for the notice. What is not played is the cloud
    ending the machine after its two minutes although pods are still on it.
    """

    client: KubeClient
    node: str
    claim: str
    say: Callable[[str], None]

    def interrupt(self) -> None:
        """Give the notice."""
        self.say(f"spot interruption: node {self.node} is taken")
        if not self.client.delete(_VERSION, "NodeClaim", self.claim):
            raise RehearsalError(
                f"node {self.node} was already gone when it was to be interrupted: run the scene again"
            )

    def wait_until_gone(self) -> None:
        """Wait until the machine is gone."""
        wait_until_gone(self.client, self.claim)


def _template(pool: Json) -> Json:
    return mapping(mapping(mapping(pool.get("spec")).get("template")).get("spec"))


def _node_of_claim(claim: Json) -> str:
    return str(mapping(claim.get("status")).get("nodeName") or "")


def wait_until_gone(client: KubeClient, claim: str) -> None:
    """Wait until Karpenter has given a machine up, and its claim with it."""
    client.wait_for(
        _VERSION,
        "NodeClaim",
        claim,
        timeout_seconds=WAIT_SECONDS,
        condition=lambda found: found is None,
        what=f"NodeClaim {claim} is gone",
    )


#: On a pool's node class: how many machines more are sold.
STOCK: Final = "rehearsal.holdfast.dev/stock"
_NODE_CLASS_VERSION: Final = "karpenter.kwok.sh/v1alpha1"


def sell_out(client: KubeClient, pool: str) -> None:
    """Have no machine of a pool sold any more: Karpenter is told that there is no capacity."""
    client.merge_patch(
        _NODE_CLASS_VERSION, "KWOKNodeClass", pool, {"metadata": {"annotations": {STOCK: "0"}}}
    )


def restock(client: KubeClient, pool: str) -> None:
    """Have as many machines of a pool sold as anybody wants."""
    client.merge_patch(
        _NODE_CLASS_VERSION, "KWOKNodeClass", pool, {"metadata": {"annotations": {STOCK: None}}}
    )
