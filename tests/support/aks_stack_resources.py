"""AKS's part of a stack, as the policies see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.scheduling.labels import POOL
from tests.support.stack_resources import NODE_POOL_TYPE, ladder, namespace, resource

if TYPE_CHECKING:
    from holdfast.policies.resources import StackResource, Value

AGENT_POOL_TYPE = "azure-native:containerservice:AgentPool"
CLUSTER_TYPE = "azure-native:containerservice:ManagedCluster"


def aks_pool(pool: str, *, labels: Value = None, **properties: Value) -> StackResource:
    """An agent pool whose nodes are labelled with the pool's name, unless other labels are given."""
    marked = {POOL: pool} if labels is None else labels
    name = pool.replace("-", "")
    props: dict[str, Value] = {"agentPoolName": name, "enableAutoScaling": True, "nodeLabels": marked}
    return resource(AGENT_POOL_TYPE, f"pool-{pool}", {**props, **properties})


def aks_pools() -> list[StackResource]:
    """A spot pool and an on-demand one."""
    return [aks_pool("a100-spot", scaleSetPriority="Spot"), aks_pool("a100")]


def aks_stack(*pools: StackResource) -> list[StackResource]:
    """A training namespace with a ladder from `a100-spot` down to `a100`, and pools."""
    return [namespace(), ladder(), *pools]


def aks_cluster(provisioning: Value = None, **properties: Value) -> StackResource:
    """A cluster with its system pool, and node auto-provisioning if it is told of."""
    system: Value = {"name": "system", "mode": "System", "count": 2}
    props: dict[str, Value] = {"agentPoolProfiles": [system], "nodeProvisioningProfile": provisioning}
    return resource(CLUSTER_TYPE, "cluster", {**props, **properties})


def aks_node_pool(name: str = "a100") -> StackResource:
    """A NodePool of node auto-provisioning."""
    reference: Value = {"group": "karpenter.azure.com", "kind": "AKSNodeClass", "name": name}
    spec: Value = {"template": {"spec": {"nodeClassRef": reference}}}
    return resource(NODE_POOL_TYPE, f"nap-{name}", {"metadata": {"name": name}, "spec": spec})
