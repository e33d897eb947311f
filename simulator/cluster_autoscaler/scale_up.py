"""Which machines to buy for the pods that find no room. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from holdfast.simulator.cluster_autoscaler.fitting import Room, obstacle
from holdfast.simulator.cluster_autoscaler.pods import PodNeeds

# A pod that waits longer than this although a node seems to have room is kept from it by a rule that is not played.
_TRUSTED: Final = timedelta(seconds=30)
FULL: Final = "max node group size reached"
IN_BACKOFF: Final = "in backoff after failed scale-up"


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A pool in one of its zones: what a node of it is like and costs, how many there are and how many more there may be.

    `spreads`: whether the zone with the fewest is to be preferred; `is_in_backoff`: none was to be had a while ago;
    `priority`: its place in a list of which the first that is to be had is taken, whatever it costs.
    """

    pool: str
    zone: str
    room: Room
    hourly_price: float
    nodes: int
    spare: int
    spreads: bool
    is_in_backoff: bool = False
    priority: int = 0


@dataclass(frozen=True, kw_only=True)
class Purchase:
    """A machine to buy, and the pods it is bought for."""

    pool: str
    zone: str
    pods: tuple[PodNeeds, ...]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to buy, and of each pod for which nothing can be bought, why."""

    purchases: tuple[Purchase, ...]
    hopeless: tuple[tuple[PodNeeds, str], ...]


def plan(pending: Sequence[PodNeeds], rooms: Sequence[Room], offers: Sequence[Offer], now: datetime) -> Plan:
    """Return what to buy so that each pending pod finds room: the cheapest node that will take it, as few as will do.

    Pools in a list of priorities are taken in its order.
    """
    basket = _Basket(offers=offers)
    free = list(rooms)
    hopeless = [
        (pod, _reasons(basket.obstacle(pod, offer) for offer in offers))
        for pod in pending
        if not (_placed(pod, free, now) or basket.added(pod))
    ]
    return Plan(purchases=basket.purchases(), hopeless=tuple(hopeless))


def _placed(pod: PodNeeds, free: list[Room], now: datetime) -> bool:
    """Whether a node that is there takes a pod: its room is then less."""
    distrusts = pod.unschedulable_since is not None and now - pod.unschedulable_since > _TRUSTED
    for at, room in enumerate(free):
        is_old = room.since is not None and now - room.since > _TRUSTED
        if not (distrusts and is_old) and obstacle(pod, room) is None:
            free[at] = room.without(pod.requests)
            return True
    return False


@dataclass(kw_only=True)
class _Basket:
    """What is bought so far: each machine with the offer it was bought by and its pods."""

    offers: Sequence[Offer]
    bought: list[tuple[Offer, Room, list[PodNeeds]]] = field(
        default_factory=list[tuple[Offer, Room, list[PodNeeds]]]
    )

    def added(self, pod: PodNeeds) -> bool:
        """Whether a machine takes a pod that is bought already, or can be."""
        for at, (offer, room, pods) in enumerate(self.bought):
            if obstacle(pod, room) is None:
                self.bought[at] = (offer, room.without(pod.requests), [*pods, pod])
                return True
        fitting = [offer for offer in self.offers if self.obstacle(pod, offer) is None]
        if not fitting:
            return False
        best = min(fitting, key=self._rank)
        self.bought.append((best, best.room.without(pod.requests), [pod]))
        return True

    def obstacle(self, pod: PodNeeds, offer: Offer) -> str | None:
        """Return why a pod gets no machine by an offer."""
        if offer.is_in_backoff:
            return IN_BACKOFF
        wrong = obstacle(pod, offer.room)
        if wrong is None and self._count(offer.pool) >= offer.spare:
            return FULL
        return wrong

    def purchases(self) -> tuple[Purchase, ...]:
        """Return what is bought."""
        return tuple(
            Purchase(pool=offer.pool, zone=offer.zone, pods=tuple(pods)) for offer, _, pods in self.bought
        )

    def _count(self, pool: str) -> int:
        return sum(offer.pool == pool for offer, _, _ in self.bought)

    def _rank(self, offer: Offer) -> tuple[int, float, str, int, str]:
        here = sum(one.pool == offer.pool and one.zone == offer.zone for one, _, _ in self.bought)
        return (
            offer.priority,
            offer.hourly_price,
            offer.pool,
            offer.nodes + here if offer.spreads else 0,
            offer.zone,
        )


def _reasons(found: Iterable[str | None]) -> str:
    counted = Counter(one for one in found if one is not None)
    return ", ".join(f"{count} {reason}" for reason, count in sorted(counted.items()))
