"""Reads which pools a cloud refuses or cannot fill, and whose nodes may not read images.

It refuses a pool whose machines do not have what the pool asks of them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.ladder.json import Unknown
from pulumi_holdfast.ladder.labels import COMPUTE_CLASS, ON_DEMAND
from pulumi_holdfast.ladder.machines import (
    attaches_only_hyperdisk,
    can_be_confidential,
    can_be_placed_compactly,
    is_sold_in,
    machine_catalogue,
    regions,
    regions_of,
    zones_of,
)
from pulumi_holdfast.ladder.reachability import messages
from pulumi_holdfast.program.clusters import clusters_of
from pulumi_holdfast.program.resources import Value, at, by_urn, known_items, of_types, text_at, texts_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pulumi_holdfast.ladder.reachability.messages import MessageTemplate
    from pulumi_holdfast.program.resources import StackResource

_PERSISTENT: Final = "pd-"
_COMPUTE_CLASS: Final = re.compile(r"kubernetes:cloud\.google\.com/v\w+:ComputeClass")
_SUBNET: Final = re.compile(r"azure-native:network(/v\w+)?:Subnet|azure:network/subnet:Subnet")
#: Azure keeps so many addresses of a subnet for itself.
_KEPT_ADDRESSES: Final = 5
#: Scopes with which nodes read images from Artifact Registry.
_READS_IMAGES: Final = ("/auth/cloud-platform", "/auth/devstorage.")
_NO_SCOPE: Final = "its `oauthScopes` do not let its nodes read images from Artifact Registry"
#: AKS takes so many addresses at a time for the pods of a node that have a subnet of their own.
_ADDRESS_BATCH: Final = 16
#: An overlay, and kubenet, give the pods of each node a range of this size.
_PODS_OF_NODE: Final = 24
_FEW_ADDRESSES: Final = "{what} has addresses for {nodes} of the {declared} nodes that it may have"
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


def unsold_on_aks(profile: Value, cluster: Value) -> Iterator[str]:
    """Yield that the location of a cluster does not have the size, or the zones, of an agent pool, by the table of machines."""
    size, zones = text_at(profile, "vmSize"), texts_at(profile, "availabilityZones")
    location = str(text_at(cluster, "location")).lower().replace(" ", "")
    if location not in regions("azure"):
        return
    if isinstance(size, str) and regions_of(size) and not is_sold_in(size, location):
        yield f"{location} does not have the size {size}, by the table of machines"
    there = {zone.rpartition("-")[2] for zone in zones_of(location)}
    if isinstance(zones, frozenset) and (missing := zones - there):
        yield f"{location} has no zone {', '.join(sorted(missing))}, by the table of machines"


def images_on_gke(node_pool: StackResource) -> Iterator[str]:
    """Yield why the nodes of a node pool may not be able to fetch images."""
    scopes = texts_at(node_pool.props, "nodeConfig", "oauthScopes")
    if isinstance(scopes, frozenset) and not any(part in each for each in scopes for part in _READS_IMAGES):
        yield _NO_SCOPE


def outside_its_class(
    node_pool: StackResource, name: str, resources: Sequence[StackResource]
) -> Iterator[str]:
    """Yield that no priority of the ComputeClass of a node pool names the pool, so that pods of the class do not grow it."""
    of_class = text_at(node_pool.props, "nodeConfig", "labels", COMPUTE_CLASS)
    for each in of_types(resources, _COMPUTE_CLASS):
        if text_at(each.props, "metadata", "name") != of_class:
            continue
        named = [
            texts_at(priority, "nodepools") for priority in known_items(each.props, "spec", "priorities")
        ]
        if named and all(isinstance(pools, frozenset) and name not in pools for pools in named):
            yield f"no priority of ComputeClass {of_class!r} names it, and whether the class grows it is not judged"


def _among(urns: Sequence[str], resources: Sequence[StackResource]) -> list[StackResource]:
    known = by_urn(resources)
    return [known[urn] for urn in urns if urn in known]


def fewer_addresses(
    pool: StackResource,
    network: Value,
    most_pods: int | Unknown | None,
    declared: object,
    resources: Sequence[StackResource],
) -> Iterator[str]:
    """Yield that an agent pool has fewer addresses than its nodes and their pods take: in its subnets, or in the range of an overlay."""
    pod_range = text_at(network, "podCidr")
    size = str(pod_range).rpartition("/")[2]
    in_range = 2 ** max(0, _PODS_OF_NODE - int(size)) if size.isdecimal() else None
    if isinstance(declared, int) and in_range is not None and in_range < declared:
        yield _FEW_ADDRESSES.format(
            what=f"the range {pod_range} of its pods", nodes=in_range, declared=declared
        )
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
                what = f"its subnet {', '.join(map(str, listed))}"
                yield _FEW_ADDRESSES.format(what=what, nodes=nodes, declared=declared)
