"""The pools of a ladder: whether they exist, how many of their nodes are in use, and what these cost.

Prices are read at regular times from Karpenter's metrics: its provider for AWS shows the price and the availability of each
offering (an instance type, a capacity type and a zone). Only the leading replica of Karpenter shows them, so a response without
prices changes nothing. Prices are used for an hour after they were read. Published price ranges, without a cluster, are in
`components/pulumi_holdfast/ladder/prices.py`.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, NamedTuple

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from pulumi_holdfast.controller.jobs.caches import IN_POOL, Caches, pool_made_by
from pulumi_holdfast.controller.jobs.observation import PoolStatus
from pulumi_holdfast.controller.jobs.pods_and_nodes import node_of
from pulumi_holdfast.controller.kube.cache import Change
from pulumi_holdfast.controller.kube.objects import labels_of, objects, text
from pulumi_holdfast.ladder.frozen import replace
from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.ladder.labels import CAPACITY_TYPE, INSTANCE_TYPE, POOL, ZONE, CapacityType
from pulumi_holdfast.ladder.ladder import Policy

#: The metrics of Karpenter's provider for AWS. Both have the labels instance_type, capacity_type and zone.
PRICE_METRIC: Final = "karpenter_cloudprovider_instance_type_offering_price_estimate"
AVAILABLE_METRIC: Final = "karpenter_cloudprovider_instance_type_offering_available"

# Karpenter computes its metrics once a minute.
_INTERVAL_SECONDS: Final = 60.0
_TIMEOUT_SECONDS: Final = 10.0
_MOST_BYTES: Final = 64 * 2**20
_VALID_FOR: Final = timedelta(hours=1)

# Reserved machines are paid for already; Karpenter shows a price of nothing for them.
_BOUGHT: Final = frozenset({CapacityType.SPOT.value, CapacityType.ON_DEMAND.value})

_log = logging.getLogger(__name__)


class Offering(NamedTuple):
    """An offering of Karpenter: an instance type, its capacity type and its zone."""

    instance_type: str
    capacity: str
    zone: str


@dataclass(frozen=True, kw_only=True)
class OfferedPrice:
    """The price of an offering per hour, and whether it is available according to Karpenter."""

    price: float
    is_available: bool = True


def parse_offerings(metrics: str) -> Mapping[Offering, OfferedPrice]:
    """Return the offerings in Karpenter's metrics. Raises ValueError for a text that is not in Prometheus' format."""
    # Other metrics of Karpenter are many times as long, and are not read.
    lines = [line for line in metrics.splitlines() if line.startswith((PRICE_METRIC, AVAILABLE_METRIC))]
    prices: dict[Offering, float] = {}
    available: dict[Offering, float] = {}
    for family in text_string_to_metric_families("\n".join([*lines, ""])):
        values = {PRICE_METRIC: prices, AVAILABLE_METRIC: available}.get(family.name)
        for sample in family.samples if values is not None else ():
            labels = sample.labels
            offering = Offering(
                labels.get("instance_type", ""), labels.get("capacity_type", ""), labels.get("zone", "")
            )
            if values is not None and offering.capacity in _BOUGHT:
                values[offering] = sample.value
    return {
        offering: OfferedPrice(price=price, is_available=available.get(offering, 1.0) > 0)
        for offering, price in prices.items()
        # Karpenter's prices of some offerings are not known.
        if 0 < price < float("inf")
    }


def cheapest(node_pool: Json, offerings: Mapping[Offering, OfferedPrice]) -> float | None:
    """Return the price of the cheapest offering that a NodePool can buy now, or of all of them if it can buy none.

    None for a NodePool that does not list its instance types, and without a price.
    """
    spec = mapping(mapping(mapping(node_pool.get("spec")).get("template")).get("spec"))
    listed = {
        text(each.get("key")): {text(value) for value in sequence(each.get("values"))}
        for each in objects(spec.get("requirements"))
        if each.get("operator") == "In"
    }
    if INSTANCE_TYPE not in listed:
        return None
    suited = [
        offered
        for offering, offered in offerings.items()
        if offering.instance_type in listed[INSTANCE_TYPE]
        and offering.capacity in listed.get(CAPACITY_TYPE, _BOUGHT)
        and offering.zone in listed.get(ZONE, {offering.zone})
    ]
    available = [each.price for each in suited if each.is_available]
    return min(available or [each.price for each in suited], default=None)


class OfferedPrices:
    """The prices that Karpenter last showed.

    `address`: of its metrics; None for a cluster without them. `changed` is called when prices have changed, and `read` with
    the outcome of each reading.
    """

    def __init__(
        self,
        address: str | None,
        *,
        now: Callable[[], datetime],
        node_pools: Callable[[], Iterable[Json]],
        changed: Callable[[], None] = lambda: None,
        read: Callable[[bool], None] = lambda _: None,
    ) -> None:
        self._address = address
        self._now = now
        self._node_pools = node_pools
        self._changed = changed
        self._read = read
        self._offerings: Mapping[Offering, OfferedPrice] = {}
        self._read_at: datetime | None = None
        # A region has thousands of offerings, and each reconciliation asks for the prices of its ladder.
        self._of_pools: dict[str, float | None] = {}

    def of_pool(self, pool: str) -> float | None:
        """Return what the cheapest node of a pool costs per hour now; None if that is not known."""
        known = self._known()
        if not known:
            return None
        if pool not in self._of_pools:
            found = (cheapest(each, known) for each in self._node_pools() if pool_made_by(each) == pool)
            self._of_pools[pool] = min((price for price in found if price is not None), default=None)
        return self._of_pools[pool]

    def node_pools_changed(self) -> None:
        """Compare the NodePools with the offerings again."""
        self._of_pools = {}

    def of_node(self, node: Json, pool: str) -> float | None:
        """Return what a node of a pool costs per hour: its own offering, else the pool's; None if neither is known."""
        labels = labels_of(node)
        offering = Offering(*(text(labels.get(key)) for key in (INSTANCE_TYPE, CAPACITY_TYPE, ZONE)))
        known = self._known().get(offering)
        return self.of_pool(pool) if known is None else known.price

    def samples(self) -> Iterator[tuple[tuple[str, ...], float]]:
        """Yield the known price of each pool, for the controller's own metrics."""
        for pool in sorted({pool_made_by(each) for each in self._node_pools()} - {""}):
            price = self.of_pool(pool)
            if price is not None:
                yield (pool,), price

    async def run(self) -> None:
        """Read the prices again and again, until canceled."""
        if self._address is None:
            return
        while True:
            await asyncio.sleep(_INTERVAL_SECONDS)
            await self.refresh()

    async def refresh(self) -> None:
        """Read the prices once. Raises nothing: earlier prices are used for an hour."""
        if self._address is None:
            return
        try:
            metrics = await self._fetch(self._address)
            found = await asyncio.to_thread(parse_offerings, metrics)
        except Exception as error:  # noqa: BLE001  # whatever Karpenter answers, jobs move without its prices
            _log.warning("Karpenter's prices cannot be read: %s", str(error) or type(error).__name__)
            self._read(False)
        else:
            self._read(True)
            self._keep(found)
        self._expire()

    def _keep(self, found: Mapping[Offering, OfferedPrice]) -> None:
        if not found:
            return
        self._read_at = self._now()
        if found != self._offerings:
            self._offerings, self._of_pools = found, {}
            self._changed()

    def _expire(self) -> None:
        if self._offerings and not self._known():
            self._offerings, self._of_pools = {}, {}
            self._changed()

    def _known(self) -> Mapping[Offering, OfferedPrice]:
        is_old = self._read_at is None or self._now() - self._read_at > _VALID_FOR
        return {} if is_old else self._offerings

    async def _fetch(self, address: str) -> str:
        timeout = aiohttp.ClientTimeout(total=_TIMEOUT_SECONDS)
        async with aiohttp.ClientSession(timeout=timeout) as session, session.get(address) as answer:
            answer.raise_for_status()
            body = await answer.content.read(_MOST_BYTES)
            while chunk := await answer.content.read(_MOST_BYTES - len(body)):
                body += chunk
            return body.decode()


# Python parses no number of thousands of digits.
_NODES: Final = re.compile(r"[0-9]{1,18}", re.ASCII)


def pool_statuses(
    policy: Policy,
    caches: Caches,
    used: UsedNodes,
    *,
    clusters: Collection[str] = (),
    price_of: Callable[[str], float | None] = lambda _: None,
) -> Mapping[str, PoolStatus]:
    """Return the status of each tier's pool.

    `clusters`: the others in which a copy of the job may run. `price_of` returns what the cheapest node of a pool costs.
    Only Karpenter's NodePools show whether a pool without nodes exists: pools of GKE and AKS leave no object in the cluster.
    """
    karpenter_makes = any(pool_made_by(node_pool) for node_pool in caches.node_pools)
    return {
        tier.name: PoolStatus(exists=tier.cluster in clusters)
        if tier.cluster
        else _pool_status(tier.name, caches, used, price_of(tier.name), is_listed=karpenter_makes)
        for tier in policy.tiers
    }


def _pool_status(
    pool: str, caches: Caches, used: UsedNodes, price: float | None, *, is_listed: bool
) -> PoolStatus:
    node_pool = next(iter(caches.node_pools.find(IN_POOL, pool)), None)
    # A quantity, which may be a string or a number.
    limit = str(mapping(mapping((node_pool or {}).get("spec")).get("limits")).get("nodes"))
    return PoolStatus(
        exists=caches.nodes.has(IN_POOL, pool) or node_pool is not None or not is_listed,
        nodes_in_use=used.count(pool),
        max_nodes=int(limit) if _NODES.fullmatch(limit) else None,
        price=price,
    )


class MissingPools:
    """Since when each pool of a ladder is missing.

    A process that has just started does not know which pools existed before: jobs on a missing pool wait for a moment, as if
    it had just disappeared. Other jobs skip a pool that the process has never seen.
    """

    def __init__(self, began: datetime) -> None:
        self._began = began
        self._seen: set[str] = set()
        self._since: dict[str, datetime] = {}

    def marked(self, pools: Mapping[str, PoolStatus], now: datetime) -> Mapping[str, PoolStatus]:
        """Return the status of each pool, with the time since when it is missing."""
        return {pool: self._marked(pool, status, now) for pool, status in pools.items()}

    def _marked(self, pool: str, status: PoolStatus, now: datetime) -> PoolStatus:
        if status.exists:
            self._seen.add(pool)
            self._since.pop(pool, None)
        if status.exists:
            return status
        was_seen = pool in self._seen
        since = self._since.setdefault(pool, now if was_seen else self._began)
        return replace(status, missing_since=since, was_seen=was_seen)


class UsedNodes:
    """Which nodes of each pool have training pods or placeholders.

    Updated with each change: counting a large pool's nodes for each reconciliation would take the most time of all.
    """

    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self._pools: dict[str, str] = {}
        self._used: dict[str, set[str]] = {}
        for cache in (*caches.pods.values(), caches.placeholders):
            cache.add_handler(self._pod_changed)
        caches.nodes.add_handler(self._node_changed)

    def count(self, pool: str) -> int:
        """Return how many nodes of a pool are in use."""
        return len(self._used.get(pool, ()))

    def _pod_changed(self, change: Change[Json]) -> None:
        for pod in (change.before, change.after):
            if pod is not None and (node := node_of(pod)):
                self._look_at(node)

    def _node_changed(self, change: Change[Json]) -> None:
        _, name = change.name
        before = self._pools.pop(name, "")
        self._used.get(before, set()).discard(name)
        if change.after is not None:
            self._pools[name] = text(labels_of(change.after).get(POOL))
            self._look_at(name)

    def _look_at(self, node: str) -> None:
        pool = self._pools.get(node)
        if not pool:
            return
        used = self._used.setdefault(pool, set())
        if self._caches.is_used(node):
            used.add(node)
        else:
            used.discard(node)
