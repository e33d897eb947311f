"""How many pods a pool can grow to hold within its limits: of one shape, and of several at once."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pulumi_holdfast.ladder.json import UNKNOWN, Unknown
from pulumi_holdfast.ladder.labels import ZONE
from pulumi_holdfast.ladder.reachability import messages
from pulumi_holdfast.ladder.reachability.affinity import (
    LabelFact,
    LabelValues,
    Requirement,
    Term,
    any_holds,
    keys_of,
    label_of,
    term_holds,
)
from pulumi_holdfast.ladder.reachability.facts import Limits, PoolFacts
from pulumi_holdfast.ladder.reachability.machine_capacity import MachineCapacity
from pulumi_holdfast.ladder.reachability.messages import CheckResult, Failed, Undetermined
from pulumi_holdfast.ladder.reachability.shape import (
    MOST_COUNTED,
    Resources,
    Shape,
    run_at_once,
    total,
    widest,
)


@dataclass(frozen=True, kw_only=True)
class PodCapacity:
    """How many pods a pool has room for: `guaranteed` in one plan, `at_most` whatever is bought. None: any number."""

    guaranteed: int | None
    at_most: int | None

    def __add__(self, other: "PodCapacity") -> "PodCapacity":
        """The room of two pools."""
        return PodCapacity(
            guaranteed=_sum(self.guaranteed, other.guaranteed), at_most=_sum(self.at_most, other.at_most)
        )


#: A pool that takes none of the pods.
NO_ROOM = PodCapacity(guaranteed=0, at_most=0)


def _sum(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else one + other


@dataclass(frozen=True, kw_only=True)
class _Candidate:
    """A machine type: how many of the pods it holds, how much of each limit it uses, and its values of labels."""

    pods: int
    uses: tuple[int, ...]
    values: Mapping[str, object] = field(default_factory=dict[str, object])


def room_for(shape: Shape, pool: PoolFacts) -> PodCapacity | Unknown:
    """How many pods of the shape the pool's nodes can hold at once."""
    if pool.machines is UNKNOWN:
        return UNKNOWN
    machines = candidate_machines(shape, pool)
    if pool.is_static:
        # Whether Karpenter keeps such nodes at all depends on its feature gate.
        nodes = pool.limits.nodes
        most = static_capacity(shape.requests, machines, nodes) if isinstance(nodes, int) else UNKNOWN
        return most if most is UNKNOWN else replace(most, guaranteed=0)
    return pod_capacity(
        shape.requests,
        candidates_by_term(shape, pool),
        replace(pool.limits, nodes=_nodes_for(shape, pool)),
        min_values=pool.min_values,
        one_per_node=shape.one_per_node,
    )


def _nodes_for(shape: Shape, pool: PoolFacts) -> int | Unknown | None:
    """How many nodes the pool may have in the zones that the pods can use."""
    in_zone, nodes = pool.limits.nodes_in_zone, pool.limits.nodes
    if in_zone is None:
        return nodes
    if in_zone is UNKNOWN:
        return UNKNOWN
    if shape.same_placement or ZONE in shape.selector:
        usable = 1
    elif shape.zones is not None and isinstance(pool.zones, frozenset):
        usable = len(shape.zones & pool.zones)
    else:
        return nodes
    return min(usable * in_zone, nodes) if isinstance(nodes, int) else usable * in_zone


def pod_capacity(
    requests: Resources,
    terms: Sequence[Sequence[MachineCapacity]],
    limits: Limits,
    *,
    min_values: Mapping[str, int] | None = None,
    one_per_node: bool = False,
) -> PodCapacity | Unknown:
    """How many pods with these requests fit on machines of these types, within the limits.

    `terms` are the types that each term of the pods' node affinity selects. Karpenter plans for all pending pods and fills
    machine after machine, for the next term once it can make none for the one before. Until it has chosen a machine's type,
    it counts that machine against the limits as the largest type it could become (Karpenter v1.14.1,
    pkg/controllers/provisioning/scheduling/scheduler.go, subtractMax, and preferences.go). With types of one size the result
    is exact. With several sizes, and limits that do not match the largest, it is a range: what is bought may be smaller than
    what was counted, and the next plan uses the difference. A machine stops to be filled when the types that it could still
    become have fewer values of a label than `min_values`.
    """
    nodes = [limits.nodes_of(each) for types in terms for each in types if each.pods_of(requests)]
    if all(each == 0 for each in nodes):
        return NO_ROOM
    if UNKNOWN in nodes:
        return UNKNOWN
    available = limits.amounts
    plans = [
        _Plan.of(requests, types, limits, min_values or {}, most=1 if one_per_node else None)
        for types in terms
    ]
    # Karpenter drops the types that exceed a limit before it counts values: with no GPUs allowed, none of a GPU machine's.
    plans = [plan for plan in plans if plan.filled(plan.within(available))]
    if not plans:
        return NO_ROOM
    if any(plan.filled(plan.unlimited) for plan in plans):
        return PodCapacity(guaranteed=None, at_most=None)
    guaranteed, left = 0, available
    for plan in plans:
        held, left = plan.in_one_plan(left)
        guaranteed += held
    return PodCapacity(
        guaranteed=guaranteed,
        at_most=_upper_bound(
            available,
            [each for plan in plans for each in plan.candidates],
            skips_first=not limits.nodes_are_exact and limits.nodes is not None,
        ),
    )


def static_capacity(requests: Resources, machines: Sequence[MachineCapacity], nodes: int) -> PodCapacity:
    """How many pods fit on this number of nodes of which Karpenter chooses the types without regard to pods."""
    pods = [machine.pods_of(requests) for machine in machines]
    return PodCapacity(guaranteed=nodes * min(pods, default=0), at_most=nodes * max(pods, default=0))


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """What Karpenter makes for pods that any of these types suits; `unlimited` are those that no limit counts."""

    candidates: Sequence[_Candidate]
    unlimited: Sequence[_Candidate]
    min_values: Mapping[str, int]

    @classmethod
    def of(
        cls,
        requests: Resources,
        machines: Sequence[MachineCapacity],
        limits: Limits,
        min_values: Mapping[str, int],
        *,
        most: int | None,
    ) -> "_Plan":
        """The plan for types of which some fit a pod. `most`: more pods than that never share a node."""
        fitting = [machine for machine in machines if machine.pods_of(requests)]
        # The values of a label that does not follow from the type, such as its zone, are not counted here.
        minimum = {
            key: least
            for key, least in min_values.items()
            if all(machine.labels.get(key, UNKNOWN) is not UNKNOWN for machine in fitting)
        }
        candidates = [
            _Candidate(
                pods=each.pods_of(requests) if most is None else min(most, each.pods_of(requests)),
                uses=limits.uses_of(each),
                values={key: each.labels.get(key) for key in minimum},
            )
            for each in fitting
        ]
        counts = [limits.nodes_of(each) for each in fitting]
        return cls(
            candidates=candidates,
            unlimited=[each for each, count in zip(candidates, counts, strict=True) if count is None],
            min_values=minimum,
        )

    def in_one_plan(self, available: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
        """The count of Karpenter, and what it leaves: it plans no machine that might exceed a limit, and fills each."""
        held = 0
        while within := self.within(available):
            pods = self.filled(within)
            if not pods:
                break
            largest = tuple(map(max, *(each.uses for each in within), (0,) * len(available)))
            # Karpenter plans this many alike, until one of the types that a machine may become no longer fits.
            alike = min(have // one for have, one in zip(available, largest, strict=True) if one)
            held += alike * pods
            available = tuple(have - alike * one for have, one in zip(available, largest, strict=True))
        return held, available

    def within(self, available: tuple[int, ...]) -> Sequence[_Candidate]:
        """The types of which there may be one more."""
        return [
            each
            for each in self.candidates
            if all(one <= have for one, have in zip(each.uses, available, strict=True))
        ]

    def filled(self, candidates: Sequence[_Candidate]) -> int:
        """How many pods Karpenter puts on a machine that may become any of these types; 0 if it makes none."""
        for pods in sorted({each.pods for each in candidates}, reverse=True):
            types = [each for each in candidates if each.pods >= pods]
            if all(
                len({each.values[key] for each in types} - {None}) >= least
                for key, least in self.min_values.items()
            ):
                return pods
        return 0


def _upper_bound(
    limits: tuple[int, ...], candidates: Sequence[_Candidate], *, skips_first: bool = False
) -> int | None:
    """No choice of machines holds more pods, by any of the limits; None if none of them bounds it."""
    most = max(each.pods for each in candidates)
    bounds: list[int] = []
    for index, limit in enumerate(limits):
        if skips_first and index == 0:
            continue
        if all(each.uses[index] for each in candidates):
            bounds.append(limit // min(each.uses[index] for each in candidates) * most)
            bounds.append(max(limit * each.pods // each.uses[index] for each in candidates))
    return min(bounds, default=None)


def check_together(shapes: Sequence[Shape], pool: PoolFacts) -> Iterator[CheckResult]:
    """Several shapes that run at once find room in the pool together.

    They certainly do if the pool has room for as many pods that request the most of any of them, and certainly do not if
    they request more than all its nodes have. How pods are packed between these two is not computed. Those that wait for
    none run together for certain; which of the others do depends on how long they run.
    """
    if pool.machines is UNKNOWN or pool.unknown_machine_types or not pool.machines:
        return
    nodes = _most_nodes(pool, pool.machines)
    if nodes is None:
        return
    available = (
        None if nodes is UNKNOWN else widest([each.allocatable for each in pool.machines]).times(nodes)
    )
    first = [shape for shape in shapes if not shape.after]
    requested = total([shape.requests.times(min(shape.pods, MOST_COUNTED)) for shape in first])
    unknown = {name for each in pool.machines for name in each.unknown_devices(requested)}
    requested_there = requested.without_devices(unknown)
    if available is not None and len(first) > 1 and not requested_there.fits_in(available):
        room, field = available.beside(requested), pool.limits.set_by
        yield Failed.by("gang", messages.TOO_MUCH, field=field, room=room, total=requested)
        return
    uncertain = [each for each in run_at_once(shapes) if len(each) > 1 and not _has_room(each, pool)]
    if uncertain:
        pods = sum(shape.pods for shape in uncertain[0])
        reason = f"whether it has room for all {pods} pods of the job at once is not certain"
        yield Undetermined(check="gang", reason=reason)


def _has_room(shapes: Sequence[Shape], pool: PoolFacts) -> bool:
    """Whether a pool certainly has room for all pods of these shapes at once."""
    alike = replace(
        shapes[0],
        pods=sum(shape.pods for shape in shapes),
        requests=widest([shape.requests for shape in shapes]),
        one_per_node=any(shape.one_per_node for shape in shapes),
    )
    found = room_for(alike, pool)
    selects_alike = len({(str(alternatives(shape)), shape.zones) for shape in shapes}) == 1
    return found is not UNKNOWN and (
        found.guaranteed is None or (selects_alike and found.guaranteed >= alike.pods)
    )


def _most_nodes(pool: PoolFacts, machines: Sequence[MachineCapacity]) -> int | Unknown | None:
    """How many nodes the pool has at most, whatever their types are; None: any number."""
    exact = pool.limits.nodes_are_exact or pool.limits.nodes == 0
    limits = pool.limits if exact else replace(pool.limits, nodes=None)
    nodes = [limits.nodes_of(machine) for machine in machines]
    known = [each for each in nodes if isinstance(each, int)]
    if len(known) == len(nodes):
        return max(known)
    return UNKNOWN if pool.limits.nodes is not None or UNKNOWN in nodes else None


def labels_of_nodes(pool: PoolFacts) -> Sequence[Mapping[str, LabelFact]]:
    """The labels of nodes of each machine type, or the pool's own if its types are not known."""
    own: Mapping[str, LabelFact] = {} if pool.labels is UNKNOWN else pool.labels
    if pool.machines is UNKNOWN or pool.unknown_machine_types or not pool.machines:
        return (own,)
    return [pool.labels_on(machine) for machine in pool.machines]


def values_there(pool: PoolFacts, key: str) -> str:
    """The values of a label that is known on all nodes, as a message shows them."""
    found = {label_of(labels, key) for labels in labels_of_nodes(pool)}
    values = {each for each in found if isinstance(each, str)}
    for each in found:
        if isinstance(each, LabelValues) and not each.is_complement:
            values |= each.values
    if not values:
        return messages.NO_SUCH_LABEL
    return messages.OTHER_LABEL.format(key=key, there=" or ".join(sorted(values)))


def alternatives(shape: Shape) -> tuple[Term, ...]:
    """The selector and one term of the affinity, each of which is enough; none if pods select nothing.

    Pods that select zones need one of them that their volumes are in, too: only together do both exclude a node.
    """
    selected = tuple(
        Requirement(key=key, operator="In", values=(value,)) for key, value in sorted(shape.selector.items())
    )
    if shape.zones is not None and (ZONE in shape.selector or ZONE in keys_of(shape.affinity)):
        selected = (*selected, Requirement(key=ZONE, operator="In", values=tuple(sorted(shape.zones))))
    if not shape.affinity:
        return (selected,) if selected else ()
    return tuple((*selected, *term) for term in shape.affinity if term)


def matches(shape: Shape, pool: PoolFacts, machine: MachineCapacity) -> bool | Unknown:
    """Whether the scheduler puts the pods on nodes of this type, as far as labels decide."""
    terms = alternatives(shape)
    if not terms:
        return not shape.affinity
    return UNKNOWN if pool.labels is UNKNOWN else any_holds(terms, pool.labels_on(machine))


def matching_machines(shape: Shape, pool: PoolFacts) -> tuple[MachineCapacity, ...]:
    """The known machine types of the pool whose nodes have, or may have, the labels that the pods select."""
    if pool.machines is UNKNOWN:
        return ()
    return tuple(each for each in pool.machines if matches(shape, pool, each) is not False)


def candidate_machines(shape: Shape, pool: PoolFacts) -> tuple[MachineCapacity, ...]:
    """The machine types that a pod has to fit on: the matching ones, or all if none matches.

    That none matches is reported by itself; a pod that is too large for every type stays too large once it is fixed.
    """
    return matching_machines(shape, pool) or (() if pool.machines is UNKNOWN else pool.machines)


def candidates_by_term(shape: Shape, pool: PoolFacts) -> tuple[tuple[MachineCapacity, ...], ...]:
    """The candidate machines of each term of the node affinity, in order, or of all pods without terms.

    Karpenter tries one term after the other, and a machine that it makes is of types that one of them selects.
    """
    candidates = candidate_machines(shape, pool)
    if pool.labels is UNKNOWN or len(shape.affinity) < 2:
        return (candidates,)
    labels = [(each, pool.labels_on(each)) for each in candidates]
    found = [
        tuple(each for each, there in labels if term_holds(term, there) is not False)
        for term in alternatives(shape)
    ]
    return tuple(each for each in found if each) or (candidates,)
