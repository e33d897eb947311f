"""Plans which machines to buy for unschedulable pods. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Final, TypeAlias

from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.ladder.quantities import effective_requests
from pulumi_holdfast.ladder.reachability.affinity import ABSENT, OTHERS, Requirement, Term, any_holds
from pulumi_holdfast.ladder.taints import Taint, Toleration, untolerated

Resources: TypeAlias = Mapping[str, Fraction]

_ENDED: Final = ("Succeeded", "Failed")


@dataclass(frozen=True, kw_only=True)
class PodNeeds:
    """The scheduling requirements of a pod.

    One of the node affinity `terms` must match, if there are any; `unschedulable_since` is None for a pod that is not
    unschedulable.
    """

    namespace: str
    name: str
    uid: str
    requests: Resources
    selector: Mapping[str, str]
    terms: tuple[Term, ...]
    tolerations: tuple[Toleration, ...]
    unschedulable_since: datetime | None = None


def needs_of(pod: Json) -> PodNeeds:
    """Return the requirements of a pod."""
    metadata, spec = mapping(pod.get("metadata")), mapping(pod.get("spec"))
    affinity = mapping(mapping(spec.get("affinity")).get("nodeAffinity"))
    required = mapping(affinity.get("requiredDuringSchedulingIgnoredDuringExecution"))
    return PodNeeds(
        namespace=str(metadata.get("namespace")),
        name=str(metadata.get("name")),
        uid=str(metadata.get("uid")),
        requests=requests_of(pod),
        selector={key: str(value) for key, value in mapping(spec.get("nodeSelector")).items()},
        terms=tuple(_term(mapping(each)) for each in sequence(required.get("nodeSelectorTerms"))),
        tolerations=tuple(_toleration(mapping(each)) for each in sequence(spec.get("tolerations"))),
        unschedulable_since=_unschedulable_since(pod),
    )


def _term(term: Json) -> Term:
    """Return a node selector term; `matchFields` selects an existing node by name, so no potential one matches."""
    if term.get("matchFields"):
        return ()
    rules = map(mapping, sequence(term.get("matchExpressions")))
    return tuple(
        Requirement(
            key=str(rule.get("key")),
            operator=str(rule.get("operator")),
            values=tuple(str(each) for each in sequence(rule.get("values"))),
        )
        for rule in rules
    )


def _toleration(toleration: Json) -> Toleration:
    key, value, effect = (str(toleration.get(field) or "") for field in ("key", "value", "effect"))
    return Toleration(key=key, value=None if toleration.get("operator") == "Exists" else value, effect=effect)


def taint_of(taint: Json) -> Taint:
    """Return a taint of a node."""
    key, value, effect = (str(taint.get(field) or "") for field in ("key", "value", "effect"))
    return Taint(key=key, value=value, effect=effect)


def requests_of(pod: Json) -> Resources:
    """Return the effective requests of a pod, with 1 for the resource `pods`."""
    return {**effective_requests(mapping(pod.get("spec"))), "pods": Fraction(1)}


def node_of(pod: Json) -> str:
    """Return the node of a pod; empty for a pending or finished pod."""
    has_ended = mapping(pod.get("status")).get("phase") in _ENDED
    return "" if has_ended else str(mapping(pod.get("spec")).get("nodeName") or "")


def is_daemons(pod: Json) -> bool:
    """Whether a pod belongs to a DaemonSet, and therefore does not keep its node."""
    owners = map(mapping, sequence(mapping(pod.get("metadata")).get("ownerReferences")))
    return any(owner.get("kind") == "DaemonSet" for owner in owners)


def _unschedulable_since(pod: Json) -> datetime | None:
    is_leaving = mapping(pod.get("metadata")).get("deletionTimestamp") is not None
    for each in map(mapping, sequence(mapping(pod.get("status")).get("conditions"))):
        waits = each.get("type") == "PodScheduled" and each.get("status") == "False"
        if waits and each.get("reason") == "Unschedulable" and not is_leaving:
            return moment(each.get("lastTransitionTime"))
    return None


def moment(text: object) -> datetime:
    """Parse a Kubernetes timestamp; 1970 for none."""
    return datetime.fromisoformat(str(text or "1970-01-01T00:00:00Z"))


@dataclass(frozen=True, kw_only=True)
class NodeInfo:
    """An existing or potential node, and its free resources.

    `since` is its creation time, None for a potential one.
    """

    name: str
    labels: Mapping[str, str]
    taints: tuple[Taint, ...]
    free: Resources
    since: datetime | None = None

    def without(self, taken: Resources) -> "NodeInfo":
        """Return the node with fewer free resources."""
        return replace(self, free={name: free - taken.get(name, 0) for name, free in self.free.items()})


def unschedulable_reason(pod: PodNeeds, room: NodeInfo) -> str | None:
    """Return the scheduler's reason why a pod does not fit a node; None where it fits."""
    if not _is_selected(pod, room.labels):
        return "node(s) didn't match Pod's node affinity/selector"
    for taint in untolerated(room.taints, pod.tolerations):
        return f"node(s) had untolerated taint {{{taint.key}: {taint.value}}}"
    short = [name for name, asked in pod.requests.items() if asked and asked > room.free.get(name, 0)]
    return ", ".join(f"Insufficient {name}" for name in sorted(short)) or None


def _is_selected(pod: PodNeeds, labels: Mapping[str, str]) -> bool:
    chosen = all(labels.get(key) == value for key, value in pod.selector.items())
    return chosen and any_holds(pod.terms, {**labels, OTHERS: ABSENT}) is True


# A pod that stays pending longer although a node fits has a constraint that is not simulated.
_TRUSTED: Final = timedelta(seconds=30)
FULL: Final = "max node group size reached"
IN_BACKOFF: Final = "in backoff after failed scale-up"


@dataclass(frozen=True, kw_only=True)
class Option:
    """A pool in one of its zones: the node to buy, its price, the number of nodes, and the number that may be added.

    `spreads`: the zone with the fewest nodes is preferred; `is_in_backoff`: it was out of stock recently; `priority`: the
    rank in a ComputeClass, which takes precedence over the price.
    """

    pool: str
    zone: str
    room: NodeInfo
    hourly_price: float
    nodes: int
    spare: int
    spreads: bool
    is_in_backoff: bool = False
    priority: int = 0


@dataclass(frozen=True, kw_only=True)
class Purchase:
    """A machine to buy, and its pods."""

    pool: str
    zone: str
    pods: tuple[PodNeeds, ...]


@dataclass(frozen=True, kw_only=True)
class ScaleUpPlan:
    """The machines to buy, and the pods that no machine helps, with reasons."""

    purchases: tuple[Purchase, ...]
    unschedulable: tuple[tuple[PodNeeds, str], ...]


def plan(
    pending: Sequence[PodNeeds], rooms: Sequence[NodeInfo], offers: Sequence[Option], now: datetime
) -> ScaleUpPlan:
    """Return the fewest and cheapest machines for the pending pods; ComputeClass ranks precede prices."""
    basket = _Basket(offers=offers)
    free = list(rooms)
    unschedulable = [
        (pod, _reasons(basket.obstacle(pod, offer) for offer in offers))
        for pod in pending
        if not (_placed(pod, free, now) or basket.added(pod))
    ]
    return ScaleUpPlan(purchases=basket.purchases(), unschedulable=tuple(unschedulable))


def _placed(pod: PodNeeds, free: list[NodeInfo], now: datetime) -> bool:
    """Whether an existing node fits a pod; its free resources are reduced."""
    distrusts = pod.unschedulable_since is not None and now - pod.unschedulable_since > _TRUSTED
    for at, room in enumerate(free):
        is_old = room.since is not None and now - room.since > _TRUSTED
        if not (distrusts and is_old) and unschedulable_reason(pod, room) is None:
            free[at] = room.without(pod.requests)
            return True
    return False


@dataclass(kw_only=True)
class _Basket:
    """The machines that the plan buys so far, with their options and pods."""

    offers: Sequence[Option]
    bought: list[tuple[Option, NodeInfo, list[PodNeeds]]] = field(
        default_factory=list[tuple[Option, NodeInfo, list[PodNeeds]]]
    )

    def added(self, pod: PodNeeds) -> bool:
        """Whether a machine of the plan or a new one fits a pod; it is added."""
        for at, (offer, room, pods) in enumerate(self.bought):
            if unschedulable_reason(pod, room) is None:
                self.bought[at] = (offer, room.without(pod.requests), [*pods, pod])
                return True
        fitting = [offer for offer in self.offers if self.obstacle(pod, offer) is None]
        if not fitting:
            return False
        best = min(fitting, key=self._rank)
        self.bought.append((best, best.room.without(pod.requests), [pod]))
        return True

    def obstacle(self, pod: PodNeeds, offer: Option) -> str | None:
        """Return why an option does not help a pod, None where it does."""
        if offer.is_in_backoff:
            return IN_BACKOFF
        wrong = unschedulable_reason(pod, offer.room)
        if wrong is None and self._count(offer.pool) >= offer.spare:
            return FULL
        return wrong

    def purchases(self) -> tuple[Purchase, ...]:
        """Return the purchases."""
        return tuple(
            Purchase(pool=offer.pool, zone=offer.zone, pods=tuple(pods)) for offer, _, pods in self.bought
        )

    def _count(self, pool: str) -> int:
        return sum(offer.pool == pool for offer, _, _ in self.bought)

    def _rank(self, offer: Option) -> tuple[int, float, str, int, str]:
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
