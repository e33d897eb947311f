"""An AKS cluster has one autoscaling mode, and only pools of that mode.

NodePools of a cluster without auto-provisioning, or whose auto-provisioning is turned off, get no machines, and jobs wait for
them. The NodePools that AKS creates by default move and replace nodes at any time, and accept pods without a node selector.
Node pools that autoscale beside node auto-provisioning are advised against, and do not strand a job.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.program.namespaces.ladders import ladders_of
from pulumi_holdfast.program.pools.aks import is_agent_pool, is_cluster
from pulumi_holdfast.program.pools.karpenter import is_node_pool
from pulumi_holdfast.program.resources import StackResource, at, items_at, text_at
from pulumi_holdfast.program.settings import Settings
from rule import Finding, Level, Rule, RuleSeverity

_NODE_CLASS: Final = "AKSNodeClass"


def find(resources: Sequence[StackResource], _: Settings) -> tuple[Finding, ...]:
    """Return what is wrong with the autoscaling of the stack's one AKS cluster.

    With several clusters it is not known before the update which one a pool belongs to; with none, the cluster belongs to
    another program. Without any ladder it is advice.
    """
    clusters = [resource for resource in resources if is_cluster(resource.type)]
    if len(clusters) != 1:
        return ()
    cluster = clusters[0]
    mode = at(cluster.props, "nodeProvisioningProfile", "mode")
    if mode is UNKNOWN:
        return ()
    found = _with_provisioning(cluster, resources) if mode == "Auto" else _without(cluster, resources)
    trains = bool(ladders_of(resources))
    return tuple(replace(each, proven=each.proven and trains) for each in found)


def _with_provisioning(cluster: StackResource, resources: Sequence[StackResource]) -> Iterator[Finding]:
    """Yield what disturbs node auto-provisioning."""
    for resource in resources:
        if is_agent_pool(resource.type) and at(resource.props, "enableAutoScaling") is True:
            yield _autoscaling_pool(resource, resource.logical_name, cluster)
    profiles = items_at(cluster.props, "agentPoolProfiles")
    for profile in profiles if profiles is not UNKNOWN else ():
        if at(profile, "enableAutoScaling") is True:
            yield _autoscaling_pool(cluster, str(text_at(profile, "name")), cluster)
    defaults = at(cluster.props, "nodeProvisioningProfile", "defaultNodePools")
    if defaults is not UNKNOWN and defaults != "None":
        yield Finding(
            urn=cluster.urn,
            message=f"cluster {cluster.logical_name!r} lets AKS create its default NodePools, which move and replace nodes "
            "while jobs train on them and accept pods without a node selector. Set "
            "`nodeProvisioningProfile.defaultNodePools` to `None`; existing ones remain until they are deleted.",
            proven=False,
        )


def _autoscaling_pool(resource: StackResource, pool: str, cluster: StackResource) -> Finding:
    return Finding(
        urn=resource.urn,
        message=f"node pool {pool!r} autoscales in cluster {cluster.logical_name!r} with node auto-provisioning: both autoscalers "
        "add nodes for a pod that fits a pool of each. Make it a NodePool, or give it a fixed number of nodes.",
        proven=False,
    )


def _without(cluster: StackResource, resources: Sequence[StackResource]) -> Iterator[Finding]:
    """Yield the NodePools for which nothing makes machines."""
    for resource in resources:
        kind = at(resource.props, "spec", "template", "spec", "nodeClassRef", "kind")
        if is_node_pool(resource.type) and kind == _NODE_CLASS:
            yield Finding(
                urn=resource.urn,
                message=f"NodePool {resource.logical_name!r} has an {_NODE_CLASS}, but cluster {cluster.logical_name!r} has no "
                "node auto-provisioning to make its machines. Changing the mode of a cluster drains every node of the old "
                "mode: create a second stack, or remove the NodePools in an update of their own before the change.",
            )


RULE: Final = Rule(
    name="aks-single-autoscaling-mode",
    title="AKS clusters with one autoscaling mode",
    description="An AKS cluster has node auto-provisioning if it has NodePools, and (as advice) none that AKS creates by "
    "default and no pools that autoscale beside it.",
    fix="Use NodePools with node auto-provisioning, and agent pools without it.",
    level=Level.MANDATORY,
    severity=RuleSeverity.HIGH,
    find=find,
)
