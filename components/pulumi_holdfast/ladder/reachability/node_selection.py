"""Which machine types of a pool have the labels that pods select, and what a message says of them."""

from collections.abc import Mapping, Sequence

from pulumi_holdfast.ladder.json import UNKNOWN, Unknown
from pulumi_holdfast.ladder.labels import ZONE
from pulumi_holdfast.ladder.reachability import messages
from pulumi_holdfast.ladder.reachability.affinity import (
    LabelFact,
    Requirement,
    Term,
    any_holds,
    keys_of,
    label_of,
    term_holds,
)
from pulumi_holdfast.ladder.reachability.facts import PoolFacts
from pulumi_holdfast.ladder.reachability.label_values import LabelValues
from pulumi_holdfast.ladder.reachability.machine_capacity import MachineCapacity
from pulumi_holdfast.ladder.reachability.shape import Shape


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
