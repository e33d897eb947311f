"""Reads which pools a cloud refuses or cannot fill, and whose nodes cannot fetch images.

It refuses a pool whose machines do not have what the pool asks of them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holdfast.policies.clusters import clusters_of
from holdfast.policies.resources import Value, at, by_urn, known_items, of_type, once, text_at, texts_at
from holdfast.scheduling.json import Unknown
from holdfast.scheduling.labels import COMPUTE_CLASS, ON_DEMAND
from holdfast.scheduling.machines import (
    attaches_only_hyperdisk,
    can_be_confidential,
    can_be_placed_compactly,
    machine_catalogue,
)
from holdfast.scheduling.reachability import messages

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.policies.resources import StackResource
    from holdfast.scheduling.reachability.messages import MessageTemplate

_PERSISTENT: Final = "pd-"
_COMPUTE_CLASS: Final = re.compile(r"kubernetes:cloud\.google\.com/v\w+:ComputeClass")
_NAT: Final = "gcp:compute/routerNat:RouterNat"
_NETWORK: Final = re.compile(r"gcp:compute/(network:Network|subnetwork:Subnetwork)")
_SUBNET: Final = re.compile(r"azure-native:network(/v\w+)?:Subnet|azure:network/subnet:Subnet")
#: Azure keeps so many addresses of a subnet for itself.
_KEPT_ADDRESSES: Final = 5
#: Scopes with which nodes read images from Artifact Registry.
_READS_IMAGES: Final = ("/auth/cloud-platform", "/auth/devstorage.")
_NO_SCOPE: Final = "its `oauthScopes` do not let its nodes read images from Artifact Registry"
_NO_NAT: Final = (
    "its nodes have no public address, and this program makes their network without Cloud NAT: only images from Google's own "
    "registries reach them"
)
_NO_WAY_OUT: Final = "its nodes have no way out (`outboundType: {kind}`): only images from a registry with a private endpoint reach them"
#: AKS takes so many addresses at a time for the pods of a node that have a subnet of their own.
_ADDRESS_BATCH: Final = 16
_FEW_ADDRESSES: Final = (
    "its subnet {prefix} has addresses for {nodes} of the {declared} nodes that it may have"
)
#: Sizes of Azure without a disk of their own: since the fourth version, those without a `d` in their name.
_WITHOUT_DISK: Final = re.compile(r"Standard_[DE]\d+(-\d+)?([a-ce-z]*_v[5-9]|s?_v4)", re.IGNORECASE)


def refused_by_gke(
    node_pool: StackResource, kinds: frozenset[str], resources: Sequence[StackResource]
) -> Iterator[MessageTemplate]:
    """Yield what GKE refuses of a node pool with machines of these capacity types."""
    config = at(node_pool.props, "nodeConfig")
    machine = machine_catalogue("gcp").get(str(at(config, "machineType")))
    if machine is None:
        return
    reservation = text_at(config, "reservationAffinity", "consumeReservationType")
    if kinds == frozenset({ON_DEMAND}) and not machine.on_demand and reservation in (None, "NO_RESERVATION"):
        yield messages.NOT_SOLD.filled(machine=machine.name)
    disks = [text_at(config, "diskType"), text_at(config, "bootDisk", "diskType")]
    disk = next((each for each in disks if isinstance(each, str)), "")
    if disk.startswith(_PERSISTENT) and attaches_only_hyperdisk(machine):
        yield messages.WRONG_DISK.filled(machine=machine.name, disk=disk)
    placement = at(node_pool.props, "placementPolicy")
    if text_at(placement, "type") == "COMPACT" and not can_be_placed_compactly(machine):
        yield messages.NOT_COMPACT.filled(machine=machine.name)
    asked = [config, *(each.props for each in clusters_of(node_pool, "gcp", resources))]
    if any(at(each, "confidentialNodes", "enabled") is True for each in asked) and not can_be_confidential(
        machine
    ):
        yield messages.NOT_CONFIDENTIAL.filled(machine=machine.name)


def refused_by_aks(profile: Value) -> Iterator[MessageTemplate]:
    """Yield what AKS refuses of an agent pool."""
    size, disk = text_at(profile, "vmSize"), text_at(profile, "osDiskType")
    if isinstance(size, str) and str(disk).lower() == "ephemeral" and _WITHOUT_DISK.fullmatch(size):
        yield messages.NO_LOCAL_DISK.filled(machine=size)
    zones = texts_at(profile, "availabilityZones")
    if (
        at(profile, "proximityPlacementGroupID") is not None
        and isinstance(zones, frozenset)
        and len(zones) > 1
    ):
        yield messages.GROUP_OF_ONE_ZONE.filled(zones=", ".join(sorted(zones)))


def images_on_gke(node_pool: StackResource, resources: Sequence[StackResource]) -> Iterator[str]:
    """Yield why the nodes of a node pool may not be able to fetch images."""
    scopes = texts_at(node_pool.props, "nodeConfig", "oauthScopes")
    if isinstance(scopes, frozenset) and not any(part in each for each in scopes for part in _READS_IMAGES):
        yield _NO_SCOPE
    for cluster in clusters_of(node_pool, "gcp", resources):
        private = (
            at(node_pool.props, "networkConfig", "enablePrivateNodes"),
            at(cluster.props, "privateClusterConfig", "enablePrivateNodes"),
        )
        made = [urn for key in ("network", "subnetwork") for urn in cluster.refers_to.get(key, ())]
        is_own = any(_NETWORK.fullmatch(each.type) for each in _among(made, resources))
        if next((each for each in private if each is not None), None) is True and is_own:
            yield from () if of_type(resources, _NAT) else (_NO_NAT,)


def outside_its_class(
    node_pool: StackResource, name: str, resources: Sequence[StackResource]
) -> Iterator[str]:
    """Yield that no priority of the ComputeClass of a node pool names the pool, so that pods of the class do not grow it."""
    of_class = text_at(node_pool.props, "nodeConfig", "labels", COMPUTE_CLASS)
    for each in _compute_classes(resources):
        if text_at(each.props, "metadata", "name") != of_class:
            continue
        named = [
            texts_at(priority, "nodepools") for priority in known_items(each.props, "spec", "priorities")
        ]
        if named and all(isinstance(pools, frozenset) and name not in pools for pools in named):
            yield f"no priority of ComputeClass {of_class!r} names it, and whether the class grows it is not judged"


@once
def _compute_classes(resources: Sequence[StackResource]) -> tuple[StackResource, ...]:
    return tuple(each for each in resources if _COMPUTE_CLASS.fullmatch(each.type))


def _among(urns: Sequence[str], resources: Sequence[StackResource]) -> list[StackResource]:
    known = by_urn(resources)
    return [known[urn] for urn in urns if urn in known]


def images_on_aks(network: Value) -> Iterator[str]:
    """Yield why the nodes of a cluster with this network may not be able to fetch images."""
    kind = text_at(network, "outboundType")
    if isinstance(kind, str) and kind.lower() in {"none", "block"}:
        yield _NO_WAY_OUT.format(kind=kind)


def fewer_addresses(
    pool: StackResource,
    network: Value,
    most_pods: int | Unknown | None,
    declared: object,
    resources: Sequence[StackResource],
) -> Iterator[str]:
    """Yield that a subnet of an agent pool has fewer addresses than its nodes and, without an overlay, their pods take."""
    is_flat = text_at(network, "networkPlugin") == "azure" and text_at(network, "networkPluginMode") is None
    pods = most_pods if is_flat and at(pool.props, "podSubnetID") is None else 0
    subnets = [
        (each, taken)
        for field, taken in (("vnetSubnetID", pods), ("podSubnetID", _ADDRESS_BATCH - 1))
        for each in _among(pool.refers_to.get(field, ()), resources)
    ]
    for each, pods_of_node in subnets:
        if not _SUBNET.fullmatch(each.type) or not isinstance(pods_of_node, int):
            continue
        listed = known_items(each.props, "addressPrefixes") or [at(each.props, "addressPrefix")]
        sizes = [str(prefix).rpartition("/")[2] for prefix in listed]
        if isinstance(declared, int) and all(size.isdecimal() and int(size) <= 32 for size in sizes):
            free = sum(max(0, 2 ** (32 - int(size)) - _KEPT_ADDRESSES) for size in sizes)
            if (nodes := free // (1 + pods_of_node)) < declared:
                prefix = ", ".join(map(str, listed))
                yield _FEW_ADDRESSES.format(prefix=prefix, nodes=nodes, declared=declared)
