"""The rule that a cluster's API server is not open to the whole internet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.policies.findings import Finding
from holdfast.policies.known_values import UNKNOWN, at, is_list, is_object, items_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from holdfast.policies.findings import StackResource
    from holdfast.policies.rule import Settings

_EVERYBODY: Final = ("0.0.0.0/0", "::/0")
_MEND: Final = (
    "Name the ranges that may call it, those of whoever runs Pulumi among them, or keep it private."
)


def find(resources: Sequence[StackResource], _: Settings) -> tuple[Finding, ...]:
    """Return the clusters whose API servers anybody may call."""
    return tuple(
        Finding(
            urn=each.urn,
            message=f"the API server of {each.logical_name!r} is open to the world: {how}. {_MEND}",
        )
        for each in resources
        for kind, ways in _WAYS.items()
        if each.type.startswith(kind[0]) and each.type.endswith(kind[1])
        for how in ways(each)
    )


def eks_ways(cluster: StackResource) -> Iterator[str]:
    """Yield how an EKS cluster is open; where nothing is said its endpoint is public, and its ranges are everybody."""
    access = at(cluster.props, "vpcConfig")
    public, cidrs = at(access, "endpointPublicAccess"), at(access, "publicAccessCidrs")
    if UNKNOWN in (access, public, cidrs) or public is False:
        return
    if not is_list(cidrs) or not cidrs:
        yield "`vpcConfig.endpointPublicAccess` is on, and `publicAccessCidrs` names no range"
    elif any(each in cidrs for each in _EVERYBODY):
        yield "`vpcConfig.publicAccessCidrs` has 0.0.0.0/0"


def gke_ways(cluster: StackResource) -> Iterator[str]:
    """Yield how a GKE cluster is open. Its DNS endpoint asks for an IAM permission before it lets anybody near it."""
    endpoints = at(cluster.props, "controlPlaneEndpointsConfig", "ipEndpointsConfig", "enabled")
    private = at(cluster.props, "privateClusterConfig", "enablePrivateEndpoint")
    networks = at(cluster.props, "masterAuthorizedNetworksConfig")
    if UNKNOWN in (endpoints, private, networks) or endpoints is False or private is True:
        return
    blocks = items_at(networks, "cidrBlocks")
    if not is_object(networks):
        yield "it has an IP endpoint, and no `masterAuthorizedNetworksConfig`"
    elif is_list(blocks) and any(at(block, "cidrBlock") in _EVERYBODY for block in blocks):
        yield "`masterAuthorizedNetworksConfig` has 0.0.0.0/0"


def aks_ways(cluster: StackResource) -> Iterator[str]:
    """Yield how an AKS cluster is open; where nothing is said everybody may call it."""
    access = at(cluster.props, "apiServerAccessProfile")
    private, ranges = at(access, "enablePrivateCluster"), at(access, "authorizedIPRanges")
    if UNKNOWN in (access, private, ranges) or private is True:
        return
    if not is_list(ranges) or not ranges:
        yield "`apiServerAccessProfile.authorizedIPRanges` names no range"
    elif any(each in ranges for each in _EVERYBODY):
        yield "`apiServerAccessProfile.authorizedIPRanges` has 0.0.0.0/0"


_WAYS: Final[Mapping[tuple[str, str], Callable[[StackResource], Iterator[str]]]] = {
    ("aws:eks/cluster", ":Cluster"): eks_ways,
    ("gcp:container/cluster", ":Cluster"): gke_ways,
    ("azure-native:containerservice", ":ManagedCluster"): aks_ways,
}
