"""Reads which pools a cloud refuses, because their machines do not have what the pool asks of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.ladder.labels import ON_DEMAND
from pulumi_holdfast.ladder.machines import (
    attaches_only_hyperdisk,
    can_be_confidential,
    can_be_placed_compactly,
    machine_catalogue,
)
from pulumi_holdfast.ladder.reachability import messages
from pulumi_holdfast.program.clusters import clusters_of
from pulumi_holdfast.program.resources import Value, at, text_at, texts_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pulumi_holdfast.ladder.reachability.messages import MessageTemplate
    from pulumi_holdfast.program.resources import StackResource

_PERSISTENT: Final = "pd-"
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
