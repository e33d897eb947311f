"""A cluster's API server does not accept connections from the whole internet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.program.resources import StackResource, at, is_list, is_object, items_at
from pulumi_holdfast.program.settings import Settings
from rule import Finding, Group, Level, Rule, RuleSeverity

_ANYWHERE: Final = ("0.0.0.0/0", "::/0")
_FIX: Final = (
    "Name the CIDR ranges that may connect, including those from which Pulumi runs, or keep it private."
)


def find(resources: Sequence[StackResource], _: Settings) -> tuple[Finding, ...]:
    """Return the clusters whose API servers accept connections from anywhere."""
    return tuple(
        Finding(urn=each.urn, message=f"the API server of {each.logical_name!r} is public: {how}. {_FIX}")
        for each in resources
        for (prefix, suffix), ways in _WAYS.items()
        if each.type.startswith(prefix) and each.type.endswith(suffix)
        for how in ways(each)
    )


def _eks_ways(cluster: StackResource) -> Iterator[str]:
    """Yield why an EKS cluster is public; by default it has a public endpoint for all ranges."""
    access = at(cluster.props, "vpcConfig")
    public, cidrs = at(access, "endpointPublicAccess"), at(access, "publicAccessCidrs")
    if UNKNOWN in (access, public, cidrs) or public is False:
        return
    if not is_list(cidrs) or not cidrs:
        yield "`vpcConfig.endpointPublicAccess` is true, and `publicAccessCidrs` names no range"
    elif any(each in cidrs for each in _ANYWHERE):
        yield "`vpcConfig.publicAccessCidrs` contains 0.0.0.0/0"


def _gke_ways(cluster: StackResource) -> Iterator[str]:
    """Yield why a GKE cluster is public. Its DNS endpoint requires an IAM permission to connect."""
    endpoints = at(cluster.props, "controlPlaneEndpointsConfig", "ipEndpointsConfig", "enabled")
    private = at(cluster.props, "privateClusterConfig", "enablePrivateEndpoint")
    networks = at(cluster.props, "masterAuthorizedNetworksConfig")
    if UNKNOWN in (endpoints, private, networks) or endpoints is False or private is True:
        return
    blocks = items_at(networks, "cidrBlocks")
    if not is_object(networks):
        yield "it has an IP endpoint, but no `masterAuthorizedNetworksConfig`"
    elif is_list(blocks) and any(at(block, "cidrBlock") in _ANYWHERE for block in blocks):
        yield "`masterAuthorizedNetworksConfig` contains 0.0.0.0/0"


def _aks_ways(cluster: StackResource) -> Iterator[str]:
    """Yield why an AKS cluster is public; by default it accepts connections from anywhere."""
    access = at(cluster.props, "apiServerAccessProfile")
    private, ranges = at(access, "enablePrivateCluster"), at(access, "authorizedIPRanges")
    if UNKNOWN in (access, private, ranges) or private is True:
        return
    if not is_list(ranges) or not ranges:
        yield "`apiServerAccessProfile.authorizedIPRanges` names no range"
    elif any(each in ranges for each in _ANYWHERE):
        yield "`apiServerAccessProfile.authorizedIPRanges` contains 0.0.0.0/0"


_WAYS: Final[Mapping[tuple[str, str], Callable[[StackResource], Iterator[str]]]] = {
    ("aws:eks/cluster", ":Cluster"): _eks_ways,
    ("gcp:container/cluster", ":Cluster"): _gke_ways,
    ("azure-native:containerservice", ":ManagedCluster"): _aks_ways,
}


RULE: Final = Rule(
    name="api-server-not-public",
    title="API servers are not public",
    description="A cluster's API server is private, or accepts connections only from named CIDR ranges.",
    fix="Name the ranges, or keep it private.",
    group=Group.PLATFORM,
    level=Level.ADVISORY,
    strict=Level.MANDATORY,
    severity=RuleSeverity.HIGH,
    find=find,
)
