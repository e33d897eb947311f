"""Compares a stack's demand with the quotas of an Azure subscription and the VM sizes that it may use.

Azure Resource Manager's answers say what is granted and used, and which quota a VM size counts against.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Final, cast
from urllib.parse import quote

from pulumi_holdfast.azure.config.sections import AzureExistingCluster
from pulumi_holdfast.config.loader import PLATFORM
from pulumi_holdfast.config.naming import aks_cluster_name, aks_node_group
from pulumi_holdfast.config.preflight import Demand, QuotaUse, Usage, quota_use
from pulumi_holdfast.ladder.json import mapping, sequence
from pulumi_holdfast.ladder.labels import CapacityType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from pulumi_holdfast.azure.config.sections import AzurePlatform
    from pulumi_holdfast.ladder.json import Json, JsonValue
    from pulumi_holdfast.ladder.machines import Machine

    #: Gets a URL of Azure Resource Manager. Raises an exception with the reason if that fails.
    Get: TypeAlias = Callable[[str], Json]

    from pulumi_holdfast.config.preflight import Runner
    from pulumi_holdfast.ladder.json import Json


@dataclass(frozen=True, kw_only=True)
class Granted:
    """A quota of a location: its id, its name in the portal, its limit, and what all machines use."""

    id: str
    name: str
    limit: float
    used: float


@dataclass(frozen=True, kw_only=True)
class VmSizeOffer:
    """A VM size in a location: the family of its quota, and whether the subscription may use it."""

    family: str
    is_restricted: bool


@dataclass(frozen=True, kw_only=True)
class LocationLimits:
    """The quotas of a location by lower-case id, and the VM sizes."""

    quotas: Mapping[str, Granted]
    sizes: Mapping[str, VmSizeOffer]

    def id_of(self, quota: str) -> str:
        """The id of a quota as Azure spells it."""
        return self.quotas[quota].id if quota in self.quotas else quota


#: The quota of all on-demand machines together, and that of all spot machines.
_ALL: Final = "cores"
_SPOT: Final = "lowprioritycores"

#: Azure Resource Manager.
MANAGEMENT: Final = "https://management.azure.com"


def location_limits(subscription_id: str, location: str, get: Get) -> LocationLimits:
    """Query the limits of a location. Raises what `get` raises."""
    compute = f"{MANAGEMENT}/subscriptions/{subscription_id}/providers/Microsoft.Compute"
    usages = _listed(f"{compute}/locations/{location}/usages?api-version=2024-07-01", get)
    only_here = quote(f"location eq '{location}'")
    sizes = _listed(f"{compute}/skus?api-version=2021-07-01&$filter={only_here}", get)
    return LocationLimits(
        quotas={_text(mapping(each.get("name")), "value").lower(): _granted(each) for each in usages},
        sizes={
            _text(each, "name"): VmSizeOffer(
                family=_text(each, "family").lower(),
                is_restricted=any(
                    _text(mapping(restriction), "type") == "Location"
                    for restriction in sequence(each.get("restrictions"))
                ),
            )
            for each in sizes
            if each.get("resourceType") == "virtualMachines"
        },
    )


def own_machines(subscription_id: str, group: str, get: Get) -> Mapping[tuple[str, CapacityType], int]:
    """The machines of a cluster, in its resource group for nodes, by VM size and capacity. Raises what `get` raises."""
    compute = (
        f"{MANAGEMENT}/subscriptions/{subscription_id}/resourceGroups/{group}/providers/Microsoft.Compute"
    )
    found: Counter[tuple[str, CapacityType]] = Counter()
    for machine in _listed(f"{compute}/virtualMachines?api-version=2024-07-01", get):
        properties = mapping(machine.get("properties"))
        size = _text(mapping(properties.get("hardwareProfile")), "vmSize")
        found[size, _capacity(properties)] += 1
    for scale_set in _listed(f"{compute}/virtualMachineScaleSets?api-version=2024-07-01", get):
        profile = mapping(mapping(scale_set.get("properties")).get("virtualMachineProfile"))
        sku = mapping(scale_set.get("sku"))
        found[_text(sku, "name"), _capacity(profile)] += int(str(sku.get("capacity") or 0))
    return found


def _listed(url: str, get: Get) -> Iterator[Json]:
    following: JsonValue = url
    while following:
        page = get(str(following))
        yield from map(mapping, sequence(page.get("value")))
        following = page.get("nextLink")


def _text(json: Json, name: str) -> str:
    return str(json.get(name) or "")


def _granted(usage: Json) -> Granted:
    limit = int(str(usage.get("limit") or 0))
    return Granted(
        id=_text(mapping(usage.get("name")), "value"),
        name=_text(mapping(usage.get("name")), "localizedValue"),
        limit=inf if limit < 0 else limit,
        used=int(str(usage.get("currentValue") or 0)),
    )


def _capacity(profile: Json) -> CapacityType:
    return CapacityType.SPOT if profile.get("priority") == "Spot" else CapacityType.ON_DEMAND


@dataclass(frozen=True, kw_only=True)
class _Field:
    """The machines of one field: up to `count` of any of them, of which `at_once` run from the beginning."""

    field: str
    machines: tuple[Machine, ...]
    capacity: CapacityType
    count: int
    at_once: int = 1


def _fields(platform: AzurePlatform) -> Iterator[_Field]:
    if not isinstance(platform.cluster, AzureExistingCluster):
        count = platform.cluster.system_nodes.count
        yield _Field(
            field=f"{PLATFORM}.cluster.systemNodes",
            machines=platform.system_machines(),
            capacity=CapacityType.ON_DEMAND,
            count=count,
            at_once=count,
        )
    for index, pool in enumerate(platform.pools):
        at, machines = f"{PLATFORM}.pools[{index}]", pool.machines(platform.location)
        yield _Field(field=at, machines=machines, capacity=pool.capacity, count=pool.max_nodes)


def quotas_of(size: str, capacity: CapacityType, limits: LocationLimits | None) -> Sequence[str]:
    """The ids of the quotas that a machine of this size counts against."""
    if capacity is CapacityType.SPOT:
        return (_SPOT,)
    offer = None if limits is None else limits.sizes.get(size)
    return (_ALL,) if offer is None or not offer.family else (_ALL, offer.family)


def quota_uses(
    platform: AzurePlatform,
    limits: LocationLimits | None,
    *,
    own: Mapping[tuple[str, CapacityType], int] | None = None,
    reason: str = "",
) -> tuple[QuotaUse, ...]:
    """The use of each quota by the system nodes and the pools.

    `limits` is None if the caller may not query them; `reason` says why. `own` are the machines of the stack itself; None
    if they are unknown, as then is what others use.
    """
    found: dict[str, list[Demand]] = defaultdict(list)
    for each in _fields(platform):
        by_quota: dict[str, list[int]] = defaultdict(list)
        for machine in each.machines:
            for quota in quotas_of(machine.name, each.capacity, limits):
                by_quota[quota].append(machine.vcpus)
        for quota, vcpus in by_quota.items():
            # A pool of several families starts with another one.
            needed = min(vcpus) * each.at_once if len(vcpus) == len(each.machines) else 0
            found[quota].append(Demand(field=each.field, asked=max(vcpus) * each.count, least=needed))
    used = None if own is None or limits is None else _vcpus(platform, own, limits)
    return tuple(
        quota_use(
            limits.quotas[quota].name if limits is not None and quota in limits.quotas else quota,
            "vCPUs",
            demands,
            _usage(quota, limits, used, reason),
            increase=_increase(platform, quota if limits is None else limits.id_of(quota)),
        )
        for quota, demands in found.items()
    )


def size_warnings(platform: AzurePlatform, limits: LocationLimits) -> Iterator[str]:
    """A line for each field whose VM sizes the subscription may not use in the location."""
    for each in _fields(platform):
        names = [machine.name for machine in each.machines]
        refused = [name for name in names if name not in limits.sizes or limits.sizes[name].is_restricted]
        if refused:
            place = each.field.removeprefix(f"{PLATFORM}.")
            others = "; the pool uses its other VM sizes" if len(refused) < len(names) else ""
            yield (
                f"{place}: {platform.location} does not offer {', '.join(refused)} to this subscription{others}. Write "
                "another VM size, or request access in the portal, under Quotas."
            )


def _vcpus(
    platform: AzurePlatform, own: Mapping[tuple[str, CapacityType], int], limits: LocationLimits
) -> Mapping[str, int]:
    """The vCPUs of the stack's own machines, by quota."""
    vcpus = {machine.name: machine.vcpus for each in _fields(platform) for machine in each.machines}
    found: Counter[str] = Counter()
    for (size, capacity), count in own.items():
        for quota in quotas_of(size, capacity, limits):
            found[quota] += vcpus.get(size, 0) * count
    return found


def _usage(quota: str, limits: LocationLimits | None, own: Mapping[str, int] | None, reason: str) -> Usage:
    if limits is None:
        return Usage(reason=reason)
    if quota not in limits.quotas:
        return Usage(reason="the location lists no such quota.")
    granted = limits.quotas[quota]
    return Usage(granted=granted.limit, used=None if own is None else granted.used - own.get(quota, 0))


def _increase(platform: AzurePlatform, quota: str) -> str:
    subscription = platform.subscription_id or "SUBSCRIPTION"
    kind = "lowPriority" if quota.lower() == _SPOT else "dedicated"
    return (
        f"az quota update --resource-name {quota} --resource-type {kind} --limit-object value={{}} "
        f"--scope /subscriptions/{subscription}/providers/Microsoft.Compute/locations/{platform.location}"
    )


#: Azure's error code for a resource group that does not exist.
_NO_GROUP: Final = "ResourceGroupNotFound"


def subscription_quota_uses(platform: AzurePlatform, stack: str, runner: Runner) -> tuple[QuotaUse, ...]:
    """Each quota that machines of the stack count against.

    A query that fails, such as one without permission, leaves its values unknown.
    """

    def get(url: str) -> Json:
        answer = runner(("az", "rest", "--method", "get", "--url", url))
        if answer.code != 0:
            raise LookupError(" ".join((answer.errors or answer.output).split()))
        return mapping(cast("JsonValue", json.loads(answer.output or "{}")))

    # `az rest` replaces this with the subscription of `az account show`.
    subscription = platform.subscription_id or "{subscriptionId}"
    try:
        limits = location_limits(subscription, platform.location, get)
    except LookupError as error:
        return quota_uses(platform, None, reason=str(error))
    own: Mapping[tuple[str, CapacityType], int] | None
    try:
        own = own_machines(subscription, aks_node_group(aks_cluster_name(stack)), get)
    except LookupError as error:
        # A new stack has no resource group, and so no machines.
        own = {} if _NO_GROUP in str(error) else None
    return quota_uses(platform, limits, own=own)
