"""Small stacks as the policies see them: a compliant one with NodePools, and the pools of GKE and AKS."""

from collections.abc import Mapping, Sequence

from pulumi_holdfast.ladder.labels import CAPACITY_TYPE, POOL, TRAINING
from pulumi_holdfast.program.pools.gke import NODE_POOL
from pulumi_holdfast.program.resources import StackResource, Value

Props = Mapping[str, Value]

NAMESPACE_TYPE = "kubernetes:core/v1:Namespace"
FALLBACK_POLICY_TYPE = "kubernetes:holdfast.dev/v1alpha1:FallbackPolicy"
NODE_POOL_TYPE = "kubernetes:karpenter.sh/v1:NodePool"

A100_SPOT: Props = {"pool": "a100-spot", "maxFailures": 5.0, "procurementTimeout": "15m"}
A100: Props = {"pool": "a100"}


def resource(type_token: str, name: str, props: Props) -> StackResource:
    """A resource with this type and logical name."""
    urn = f"urn:pulumi:local::holdfast::{type_token}::{name}"
    return StackResource(type=type_token, urn=urn, props=props)


def namespace(
    name: Value = "vision", *, labels: Value = None, type_token: str = NAMESPACE_TYPE
) -> StackResource:
    """A training namespace, unless other labels are given."""
    marked = {TRAINING: "true"} if labels is None else labels
    return resource(type_token, "vision-namespace", {"metadata": {"name": name, "labels": marked}})


def ladder(
    tiers: Value = (A100_SPOT, A100), *, name: Value = "ladder", namespace: Value = "vision"
) -> StackResource:
    """The namespace's ladder, from a spot pool down to an on-demand one."""
    metadata: Props = {"name": name, "namespace": namespace}
    return resource(FALLBACK_POLICY_TYPE, "vision-ladder", {"metadata": metadata, "spec": {"tiers": tiers}})


def capacity_requirement(*values: Value, operator: Value = "In") -> Props:
    """A NodePool's requirement on the capacity type."""
    return {"key": CAPACITY_TYPE, "operator": operator, "values": list(values)}


def node_pool(name: str, *requirements: Value, labels: Value = None) -> StackResource:
    """A NodePool whose nodes are labelled with its name as the pool label, unless other labels are given."""
    marked = {POOL: name} if labels is None else labels
    template: Props = {"metadata": {"labels": marked}, "spec": {"requirements": list(requirements)}}
    return resource(NODE_POOL_TYPE, name, {"metadata": {"name": name}, "spec": {"template": template}})


def pools() -> list[StackResource]:
    """A spot pool and an on-demand one."""
    return [
        node_pool("a100-spot", capacity_requirement("spot")),
        node_pool("a100", capacity_requirement("on-demand")),
    ]


def compliant() -> list[StackResource]:
    """A training namespace with its ladder, and the pools that the ladder names."""
    return [namespace(), ladder(), *pools()]


def with_ladder(*tiers: Value) -> Sequence[StackResource]:
    """The compliant stack with a ladder of these tiers instead."""
    return [namespace(), ladder(list(tiers)), *pools()]


def with_pools(*node_pools: StackResource) -> Sequence[StackResource]:
    """The compliant stack with these pools instead."""
    return [namespace(), ladder(), *node_pools]


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


def aks_cluster(provisioning: Value = None, **properties: Value) -> StackResource:
    """A cluster with its system pool, and node auto-provisioning if given."""
    system: Value = {"name": "system", "mode": "System", "count": 2}
    props: dict[str, Value] = {"agentPoolProfiles": [system], "nodeProvisioningProfile": provisioning}
    return resource(CLUSTER_TYPE, "cluster", {**props, **properties})


def aks_node_pool(name: str = "a100") -> StackResource:
    """A NodePool of node auto-provisioning."""
    reference: Value = {"group": "karpenter.azure.com", "kind": "AKSNodeClass", "name": name}
    spec: Value = {"template": {"spec": {"nodeClassRef": reference}}}
    return resource(NODE_POOL_TYPE, f"nap-{name}", {"metadata": {"name": name}, "spec": spec})


def gke_pool(name: str, *, labels: Value = None, **config: Value) -> StackResource:
    """A node pool of GKE whose nodes are labelled with its name as the pool label, unless other labels are given."""
    marked = {POOL: name} if labels is None else labels
    return resource(NODE_POOL, name, {"name": name, "nodeConfig": {"labels": marked, **config}})


def gke_pools() -> list[StackResource]:
    """A spot pool and an on-demand one."""
    return [gke_pool("a100-spot", spot=True), gke_pool("a100", spot=False)]
