"""In which zones a cluster is. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.scheduling.machines import zones_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.infra.gcp.config.stack import GcpPlatform

#: As many as GKE takes for a cluster of a region.
_ZONES_OF_A_REGION: Final = 3


def zones_of_cluster(platform: GcpPlatform, available: Sequence[str] | None) -> tuple[str, ...]:
    """The zones of the system nodes, and of pools that name none.

    Those that are written; else the control plane's own; else the first three by name of those that are `available` in
    the region, for which None takes those that are known.
    """
    cluster = platform.cluster
    if cluster.zones is not None:
        return cluster.zones
    if platform.location != platform.region:
        return (platform.location,)
    there = zones_of(platform.region) if available is None else available
    return tuple(there[:_ZONES_OF_A_REGION])
