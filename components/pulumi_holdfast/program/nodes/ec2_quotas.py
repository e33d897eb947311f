"""Reads the quotas of EC2 that a program sets itself: beyond one, EC2 starts no further machine of a pool.

A quota may be larger than what the program asks for, so nothing here stops a run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN, Unknown
from pulumi_holdfast.ladder.labels import ON_DEMAND, CapacityType
from pulumi_holdfast.ladder.machines.ec2_quotas import quota_of
from pulumi_holdfast.ladder.reachability.facts import Limits
from pulumi_holdfast.ladder.reachability.machine_capacity import MachineCapacity
from pulumi_holdfast.program.clusters import clusters_of
from pulumi_holdfast.program.resources import StackResource, at, by_urn, of_type, text_at

_QUOTA: Final = "aws:servicequotas/serviceQuota:ServiceQuota"
_MILLIS: Final = 1000


def beyond_quotas(
    machines: Sequence[MachineCapacity] | Unknown,
    kinds: frozenset[str],
    limits: Limits,
    pool: StackResource,
    resources: Sequence[StackResource],
) -> Iterator[str]:
    """Yield the quotas of the program that are smaller than an on-demand pool of EC2 with these machines and limits may become.

    A pool with a machine type that counts against another quota, or is bought on spot, too, may go on with that. A quota is of one
    region.
    """
    if machines is UNKNOWN or kinds != frozenset({ON_DEMAND}):
        return
    quotas = {quota_of(each.name, CapacityType.ON_DEMAND) for each in machines}
    here = _region_of_pool(pool, resources)
    for each in of_type(resources, _QUOTA):
        value = at(each.props, "value")
        ours = [quota for quota in quotas if quota is not None and quota.code == at(each.props, "quotaCode")]
        there = _region(each, resources)
        is_elsewhere = UNKNOWN not in (here, there) and here != there
        if not ours or is_elsewhere or len(quotas) > 1 or not isinstance(value, int | float):
            continue
        sizes = [_most_vcpus(machine, limits) for machine in machines]
        if any(size is None or size > value for size in sizes):
            most = "any number" if None in sizes else max(size for size in sizes if size is not None)
            yield (
                f"this program sets the quota {ours[0].name!r} to {value:g} vCPUs, and its limits allow {most} of them: "
                "whether what is left of the quota is enough is not judged"
            )


def _region_of_pool(pool: StackResource, resources: Sequence[StackResource]) -> str | Unknown:
    """Return the region of a pool: that of its cluster for an object of Kubernetes."""
    if pool.type.startswith("aws:"):
        return _region(pool, resources)
    found = {_region(each, resources) for each in clusters_of(pool, "aws", resources)}
    return found.pop() if len(found) == 1 else UNKNOWN


def _region(resource: StackResource, resources: Sequence[StackResource]) -> str | Unknown:
    """Return the region of a resource of AWS: its own, or that of its provider; UNKNOWN if the program shows neither."""
    own = text_at(resource.props, "region")
    if isinstance(own, str):
        return own
    provider = by_urn(resources).get(resource.provider)
    found = None if provider is None else text_at(provider.props, "region")
    return UNKNOWN if at(resource.declared, "region") is UNKNOWN or found is None else found


def _most_vcpus(machine: MachineCapacity, limits: Limits) -> int | None:
    """How many vCPUs its machines of one type may have together; None for any number, and where a limit is not known."""
    count = limits.nodes_of(machine)
    return count * (machine.capacity.cpu_millis // _MILLIS) if isinstance(count, int) else None
