"""The rule that an AKS cluster has one way of scaling, and pools of that one.

AKS refuses node pools that scale by themselves beside node auto-provisioning: an update would end half-way. NodePools of
a cluster whose auto-provisioning is off, or is turned off, get no machines; AKS lets them be, with the jobs that wait for
them. And the NodePools that AKS itself makes where it is not told otherwise move and replace nodes as they like, and
take pods that select nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.policies.aks_pools import is_agent_pool, is_cluster
from holdfast.policies.findings import Finding
from holdfast.policies.karpenter_pools import is_node_pool
from holdfast.policies.known_values import UNKNOWN, at, items_at, text_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.policies.findings import StackResource

AKS_NODE_CLASS: Final = "AKSNodeClass"


def aks_scaling_findings(resources: Sequence[StackResource]) -> tuple[Finding, ...]:
    """Return what is wrong with how the stack's one AKS cluster scales.

    Of several, pools do not tell before the update which they belong to; of none, the cluster is another program's.
    """
    clusters = [resource for resource in resources if is_cluster(resource.type)]
    if len(clusters) != 1:
        return ()
    cluster = clusters[0]
    mode = at(cluster.props, "nodeProvisioningProfile", "mode")
    if mode is UNKNOWN:
        return ()
    found = auto(cluster, resources) if mode == "Auto" else manual(cluster, resources)
    return tuple(found)


def auto(cluster: StackResource, resources: Sequence[StackResource]) -> Iterator[Finding]:
    """Yield what is wrong beside node auto-provisioning."""
    for resource in resources:
        if is_agent_pool(resource.type) and at(resource.props, "enableAutoScaling") is True:
            yield Finding(
                urn=resource.urn,
                message=beside_auto_provisioning(resource.logical_name, cluster.logical_name),
            )
    profiles = items_at(cluster.props, "agentPoolProfiles")
    for profile in profiles if profiles is not UNKNOWN else ():
        if at(profile, "enableAutoScaling") is True:
            name = str(text_at(profile, "name"))
            yield Finding(urn=cluster.urn, message=beside_auto_provisioning(name, cluster.logical_name))
    defaults = at(cluster.props, "nodeProvisioningProfile", "defaultNodePools")
    if defaults is not UNKNOWN and defaults != "None":
        yield Finding(
            urn=cluster.urn,
            message=f"cluster {cluster.logical_name!r} lets AKS make NodePools of its own, which move and replace nodes "
            "while jobs train on them and take pods that select nothing. Set `nodeProvisioningProfile.defaultNodePools` "
            "to `None`; those that are there already stay until they are deleted.",
        )


def manual(cluster: StackResource, resources: Sequence[StackResource]) -> Iterator[Finding]:
    """Yield the NodePools for which nobody makes machines."""
    for resource in resources:
        kind = at(resource.props, "spec", "template", "spec", "nodeClassRef", "kind")
        if is_node_pool(resource.type) and kind == AKS_NODE_CLASS:
            yield Finding(
                urn=resource.urn,
                message=f"NodePool {resource.logical_name!r} has an {AKS_NODE_CLASS}, and cluster "
                f"{cluster.logical_name!r} has no node auto-provisioning that would make its machines. To change a "
                "cluster's way of scaling drains every node that the old one made: make a second stack, or take the "
                "NodePools away first, in an update of their own, then change it.",
            )


def beside_auto_provisioning(pool: str, cluster: str) -> str:
    """Return the message for a node pool that scales by itself beside node auto-provisioning."""
    return (
        f"node pool {pool!r} scales by itself, which AKS refuses in cluster {cluster!r} with node auto-provisioning. Make "
        "it a NodePool, give it a fixed number of nodes, or make the cluster without "
        "`nodeProvisioningProfile.mode: Auto`."
    )
