"""Determines which cluster a resource belongs to: a rule combines only pools and ladders of one cluster.

An object of Kubernetes belongs to the cluster of its provider, a pool of a cloud to the cluster that it names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from holdfast.policies.program.resources import StackResource, at, by_urn, once, text_at
from holdfast.scheduling.json import UNKNOWN, Unknown

_CLUSTER: Final = re.compile(
    r"aws:eks/cluster:Cluster|gcp:container/cluster:Cluster|azure-native:containerservice(/v\w+)?:ManagedCluster"
)
_PROVIDER: Final = "pulumi:providers:kubernetes"
#: The property by which a pool names its cluster, by the start of its type.
_CLUSTER_OF: Final = {
    "aws:eks/nodeGroup:": "clusterName",
    "gcp:container/nodePool:": "cluster",
    "azure-native:containerservice": "resourceName",
}
#: The properties that are a cluster's name in the cloud.
_NAMES: Final = ("name", "resourceName")
#: How many references lead from a provider to its cluster, at most: a kubeconfig is often made in steps.
_STEPS: Final = 4


def is_cluster(type_token: str) -> bool:
    """Whether the type is a cluster of EKS, GKE or AKS."""
    return _CLUSTER.fullmatch(type_token) is not None


@once
def clusters(resources: Sequence[StackResource]) -> tuple[StackResource, ...]:
    """Return the clusters of the stack."""
    return tuple(each for each in resources if is_cluster(each.type))


def clusters_of(
    resource: StackResource, package: str, resources: Sequence[StackResource]
) -> tuple[StackResource, ...]:
    """Return the clusters of a package that certainly contain a resource; none if another program makes the cluster."""
    here = cluster_of(resource, resources)
    return tuple(
        each
        for each in clusters(resources)
        if each.type.startswith(f"{package}:") and is_one_cluster(resources, here, each.urn) is True
    )


def is_same_cluster(
    left: StackResource, right: StackResource, resources: Sequence[StackResource]
) -> bool | Unknown:
    """Whether two resources belong to one cluster; UNKNOWN if the program does not show it."""
    return is_one_cluster(resources, cluster_of(left, resources), cluster_of(right, resources))


@once
def is_one_cluster(resources: Sequence[StackResource], one: str, other: str) -> bool | Unknown:
    """Whether two results of `cluster_of` are one cluster; UNKNOWN if the program does not show it."""
    if one == other:
        return True
    known = _known(resources)
    found = known & {one, other}
    if len(found) == 2:
        return False
    if not found:
        return _is_same_connection(one, other, resources)
    # With one cluster in the stack, a provider that does not show where it connects counts as that cluster's.
    return True if len(known) == 1 else UNKNOWN


@once
def _known(resources: Sequence[StackResource]) -> frozenset[str]:
    """Return the clusters of the stack, and those that its pools name."""
    named = (
        _named_cluster(each, key, resources)
        for each in resources
        for prefix, key in _CLUSTER_OF.items()
        if each.type.startswith(prefix) and not is_cluster(each.type)
    )
    return frozenset(each.urn for each in clusters(resources)) | (frozenset(named) - {""})


def cluster_of(resource: StackResource, resources: Sequence[StackResource]) -> str:
    """Return the URN of its cluster; that of its provider, or a name, if the stack does not contain the cluster."""
    if is_cluster(resource.type):
        return resource.urn
    for prefix, key in _CLUSTER_OF.items():
        if resource.type.startswith(prefix):
            return _named_cluster(resource, key, resources)
    return _cluster_of_provider(resources, resource.provider)


def _named_cluster(pool: StackResource, key: str, resources: Sequence[StackResource]) -> str:
    known = clusters(resources)
    name = text_at(pool.props, key)
    for cluster in known:
        names = {text_at(cluster.props, each) for each in _NAMES}
        if cluster.urn in pool.refers_to.get(key, ()) or (isinstance(name, str) and name in names):
            return cluster.urn
    return f"{pool.type.partition(':')[0]} cluster {name}" if isinstance(name, str) else ""


@once
def _cluster_of_provider(resources: Sequence[StackResource], provider: str) -> str:
    """Return the cluster to which a provider's kubeconfig refers, directly or through other resources."""
    known, reached = by_urn(resources), {provider}
    for _ in range(_STEPS):
        found = sorted(urn for urn in reached if urn in known and is_cluster(known[urn].type))
        if found:
            return found[0] if len(found) == 1 else provider
        reached = {
            urn
            for each in reached
            if each in known
            for referred in known[each].refers_to.values()
            for urn in referred
        }
    return provider


def _is_same_connection(one: str, other: str, resources: Sequence[StackResource]) -> bool | Unknown:
    """Whether two providers connect to the same cluster, by their kubeconfigs and contexts."""
    if not one or not other:
        return True
    providers = [by_urn(resources).get(each) for each in (one, other)]
    if any(each is None or not each.type.startswith(_PROVIDER) for each in providers):
        return UNKNOWN
    for key in ("kubeconfig", "context", "cluster"):
        left, right = (at(each.props, key) for each in providers if each is not None)
        if left is UNKNOWN or right is UNKNOWN:
            return UNKNOWN
        if left != right:
            return False
    return True
