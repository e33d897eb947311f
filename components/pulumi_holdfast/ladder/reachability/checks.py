"""The checks that decide whether a job's pods can run on a pool's nodes.

Each check passes, fails, or is undetermined while a value is unknown. `walk` applies them to every tier of a ladder. All
checks run, because one that fails stays failed whatever an undetermined one turns out to be.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from pulumi_holdfast.ladder.json import UNKNOWN, Unknown
from pulumi_holdfast.ladder.labels import ARCH, CAPACITY_TYPE, HOSTNAME, POOL, RESERVED, ZONE
from pulumi_holdfast.ladder.reachability import messages
from pulumi_holdfast.ladder.reachability.affinity import (
    OTHERS,
    LabelValues,
    Requirement,
    any_holds,
    keys_of,
    label_of,
    term_holds,
)
from pulumi_holdfast.ladder.reachability.facts import PoolFacts
from pulumi_holdfast.ladder.reachability.machine_capacity import MachineCapacity
from pulumi_holdfast.ladder.reachability.messages import CheckResult as CheckResult
from pulumi_holdfast.ladder.reachability.messages import Failed as Failed
from pulumi_holdfast.ladder.reachability.messages import Undetermined as Undetermined
from pulumi_holdfast.ladder.reachability.pod_capacity import (
    NO_ROOM,
    PodCapacity,
    alternatives,
    candidate_machines,
    labels_of_nodes,
    matches,
    matching_machines,
    room_for,
    values_there,
)
from pulumi_holdfast.ladder.reachability.shape import Placement, Resources, Shape
from pulumi_holdfast.ladder.taints import REPELLING, untolerated

Check: TypeAlias = Callable[[Shape, PoolFacts], Iterator[CheckResult]]


def accelerator(shape: Shape, pool: PoolFacts) -> Iterator[CheckResult]:
    """The pool has machines with the GPUs that the shape names."""
    if shape.accelerator is None or pool.machines is UNKNOWN:
        return
    machines = candidate_machines(shape, pool)
    found = {machine.has_accelerator(shape.accelerator) for machine in machines}
    if True in found:
        return
    if pool.unknown_machine_types:
        yield Undetermined(check="accelerator", reason=_not_in_table(pool))
        return
    if UNKNOWN in found:
        yield Undetermined(check="accelerator", reason="which GPUs its machines have is not known")
        return
    kinds = {machine.accelerator for machine in machines if machine.accelerator is not None}
    there = " and ".join(sorted(kinds)) or "no GPUs"
    yield Failed.by("accelerator", messages.ACCELERATOR, kinds=there, accelerator=shape.accelerator)


def selector(shape: Shape, pool: PoolFacts) -> Iterator[CheckResult]:
    """The nodes carry every label that the pods select beside the pool label."""
    if pool.labels is UNKNOWN:
        if shape.selector:
            yield Undetermined(check="selector", reason="its nodes' labels are not known yet")
        return
    for key, value in sorted(shape.selector.items()):
        term = (Requirement(key=key, operator="In", values=(value,)),)
        found = [term_holds(term, labels) for labels in labels_of_nodes(pool)]
        if True in found:
            continue
        if UNKNOWN in found:
            yield Undetermined(check="selector", reason=f"its nodes' label {key} is not known yet")
        else:
            yield Failed.by("selector", messages.SELECTOR, key=key, value=value, has=values_there(pool, key))


def affinity(shape: Shape, pool: PoolFacts) -> Iterator[CheckResult]:
    """One term of the required node affinity matches the nodes."""
    if not shape.affinity:
        return
    found = [any_holds(shape.affinity, labels) for labels in labels_of_nodes(pool)]
    holds = True if True in found else UNKNOWN if UNKNOWN in found or pool.labels is UNKNOWN else False
    keys = ", ".join(keys_of(shape.affinity))
    if holds is UNKNOWN:
        yield Undetermined(
            check="affinity", reason=f"whether its nodes match the node affinity for {keys} is not known yet"
        )
    elif not holds:
        yield Failed.by("affinity", messages.AFFINITY, keys=keys)


def capacity(shape: Shape, pool: PoolFacts) -> Iterator[CheckResult]:
    """A capacity reservation stands behind the reserved capacity of the pool, if the pods get no other there."""
    if pool.has_reservation is True:
        return
    other = Requirement(key=CAPACITY_TYPE, operator="NotIn", values=(RESERVED,))
    there = labels_of_nodes(pool)
    terms = alternatives(shape) or ((),)
    usable = [
        term for term in terms if any(not term or term_holds(term, each) is not False for each in there)
    ]
    paid = [term for term in usable if any(term_holds((*term, other), each) is not False for each in there)]
    if len(paid) == len(usable):
        return
    if pool.has_reservation is False and not paid:
        yield Failed.by("capacity", messages.NO_RESERVATION)
    else:
        yield Undetermined(
            check="capacity",
            reason="the pods get reserved capacity alone there, and whether its node class names a capacity reservation is not known",
        )


def taints(shape: Shape, pool: PoolFacts) -> Iterator[CheckResult]:
    """The pods tolerate every taint, with the tolerations that admission and the cloud add to them."""
    if pool.taints is UNKNOWN or pool.added_tolerations is UNKNOWN:
        which = "taints" if pool.taints is UNKNOWN else "tolerations by admission"
        yield Undetermined(check="taints", reason=f"its {which} are not known yet")
        return
    tolerations = (*shape.tolerations, *pool.added_for(shape.requests, shape.selector))
    for taint in untolerated(pool.taints, tolerations):
        repels = f"{taint.key}={taint.value}:{taint.effect}"
        if shape.is_declared:
            yield Failed.by("taints", messages.TAINT, taint=repels)
        else:
            yield Undetermined(
                check="taints",
                reason=f"whether its jobs tolerate {repels} is not known: declare `shapes` with their tolerations",
            )
    if len(shape.affinity) < 2 or (pool.labels is not UNKNOWN and OTHERS not in pool.labels):
        return
    # Karpenter drops all terms of the affinity but the last one before it tolerates a preference.
    for taint in pool.taints:
        if taint.effect not in REPELLING and not any(each.tolerates(taint) for each in tolerations):
            yield Undetermined(
                check="taints",
                reason=f"Karpenter tolerates {taint.key}={taint.value}:{taint.effect} only with the last term of the node "
                "affinity: add the toleration to the jobs, or use one term",
            )


def architecture(shape: Shape, pool: PoolFacts) -> Iterator[CheckResult]:
    """The images run on all machines that the pods may get."""
    kinds = {each.labels.get(ARCH) for each in matching_machines(shape, pool)} - {None, UNKNOWN}
    known = sorted(str(each) for each in kinds)
    if shape.architectures and known and not kinds & {*shape.architectures}:
        yield Failed.by(
            "architecture",
            messages.ARCHITECTURE,
            there=" and ".join(known),
            wanted=" and ".join(shape.architectures),
        )
    elif (shape.architectures and not kinds <= {*shape.architectures}) or (
        not shape.architectures and len(known) > 1
    ):
        runs_on = " and ".join(shape.architectures) or "which of them is not declared"
        yield Undetermined(
            check="architecture",
            reason=f"its machines are {' and '.join(known)}, and the images run on {runs_on}: select {ARCH} in the pods, or "
            "set `architectures` of the shape",
        )


def machine(shape: Shape, pool: PoolFacts) -> Iterator[CheckResult]:
    """One pod fits on the allocatable resources of a machine type of the pool."""
    if pool.is_stopped:
        yield Failed.by("machine", messages.STOPPED)
        return
    if pool.faults:
        yield from (Failed(check="machine", reason=each.reason, fix=each.fix) for each in pool.faults)
        return
    if pool.unsatisfiable:
        yield Failed.by("machine", messages.UNSATISFIABLE, keys=", ".join(pool.unsatisfiable))
        return
    if pool.machines is UNKNOWN:
        yield Undetermined(check="machine", reason="its machine types are not known yet")
        return
    matching, candidates = matching_machines(shape, pool), candidate_machines(shape, pool)
    fitting = [each for each in candidates if each.pods_of(shape.requests)]
    if matching and fitting:
        yield from _not_certain(shape, pool, fitting)
        return
    if pool.unknown_machine_types:
        yield Undetermined(check="machine", reason=_not_in_table(pool))
        return
    if not pool.machines:
        yield Undetermined(check="machine", reason="it names no machine type")
        return
    single = (*selector(shape, pool), *affinity(shape, pool), *zones(shape, pool))
    if not matching and not any(isinstance(each, Failed) for each in single):
        yield Failed.by("selector", messages.NO_TYPE, keys=", ".join(keys_of(alternatives(shape))))
        return
    if fitting:
        return
    largest = max(candidates, key=MachineCapacity.size)
    yield Failed.by(
        "machine",
        messages.MACHINE,
        requests=shape.requests,
        machine=largest.name,
        room=largest.allocatable.beside(shape.requests),
    )


def _not_certain(shape: Shape, pool: PoolFacts, fitting: Sequence[MachineCapacity]) -> Iterator[CheckResult]:
    """Why it is not certain that the pods get one of the machines that they fit on."""
    if pool.undecided_by:
        yield Undetermined(
            check="machine", reason=f"which machine types {', '.join(pool.undecided_by)} allows is not known"
        )
    small = (
        [each.name for each in pool.machines if not each.pods_of(shape.requests)]
        if pool.machines is not UNKNOWN
        else []
    )
    if pool.planned_as and small:
        yield Undetermined(
            check="machine",
            reason=f"a cluster autoscaler plans its nodes as {pool.planned_as}, the first of its types, and the cloud may start any of "
            f"them: the pods do not fit on {', '.join(small)}. Make a node group for each size",
        )
    if pool.shares_gpus and shape.requests.gpus > 1:
        yield Undetermined(
            check="machine",
            reason="its nodes share GPUs, so a container may request only one, and which containers request them is not known",
        )
    devices = {name for each in fitting for name in each.unknown_devices(shape.requests)}
    if devices and all(each.unknown_devices(shape.requests) for each in fitting):
        yield Undetermined(
            check="machine", reason=f"whether its nodes have {', '.join(sorted(devices))} is not known"
        )
    if not any(matches(shape, pool, each) is True for each in fitting) and not [
        *selector(shape, pool),
        *affinity(shape, pool),
    ]:
        yield Undetermined(
            check="selector",
            reason=f"whether nodes that a pod fits on have {', '.join(keys_of(alternatives(shape)))} is not known",
        )


def gang(shape: Shape, pool: PoolFacts) -> Iterator[CheckResult]:
    """All pods of the gang fit at once on as many nodes as the pool may have."""
    if pool.machines is not UNKNOWN:
        yield from gang_results(shape, (pool,), room_for(shape, pool))


def gang_results(
    shape: Shape, pools: Sequence[PoolFacts], capacity: PodCapacity | Unknown
) -> Iterator[CheckResult]:
    """Whether this room in pools, one or more, is enough for the gang."""
    if capacity is UNKNOWN:
        yield Undetermined(check="gang", reason="how many nodes it may have is not known yet")
        return
    if capacity.guaranteed is None or capacity.guaranteed >= shape.pods:
        return
    machines = [each for pool in pools for each in candidate_machines(shape, pool)]
    pods_per_node = max((each.pods_of(shape.requests) for each in machines), default=0)
    if shape.one_per_node:
        pods_per_node = min(pods_per_node, 1)
    if not pods_per_node or any(pool.unknown_machine_types for pool in pools):
        return
    if any(pool.min_values for pool in pools) and capacity == NO_ROOM:
        yield Failed.by(
            "minValues",
            messages.MIN_VALUES,
            keys=", ".join(sorted({key for pool in pools for key in pool.min_values})),
        )
        return
    if capacity.at_most is None or capacity.at_most >= shape.pods:
        pods = f"{capacity.guaranteed} of the {shape.pods} pods that have to run together"
        if any(pool.is_static for pool in pools):
            reason = "whether Karpenter keeps the nodes of its `replicas` depends on the feature gate StaticCapacity, which is off by default"
        elif capacity.at_most is not None:
            reason = f"it has room for at least {pods}, and for more only if its smaller machines are bought"
        else:
            reason = f"its limit of {pools[0].limits.nodes} nodes is checked before a plan and not within one: for certain it has room for {pods}"
        yield Undetermined(check="gang", reason=reason)
        return
    yield Failed.by(
        "gang",
        messages.TOO_MANY,
        field=pools[0].limits.set_by,
        room=capacity.at_most,
        pods=shape.pods,
        nodes=-(-shape.pods // pods_per_node),
    )


#: The labels of the node pool that has made a node: the nodes of one pool have one value.
_OF_NODE_POOLS: Final = frozenset(
    {
        POOL,
        "karpenter.sh/nodepool",
        "cloud.google.com/gke-nodepool",
        "eks.amazonaws.com/nodegroup",
        "kubernetes.azure.com/agentpool",
        "agentpool",
    }
)


def topology(shape: Shape, pool: PoolFacts) -> Iterator[CheckResult]:
    """The nodes have enough values of the label of which each group of pods needs one for itself."""
    if shape.apart_by is None:
        return
    key, groups = shape.apart_by
    number = _number_of_values(pool, key)
    if number is not UNKNOWN and number < groups:
        yield Failed.by(
            "topology",
            messages.TOO_FEW_DOMAINS,
            groups=groups,
            key=key,
            there={0: "none", 1: "one value"}.get(number, f"{number} values"),
            example=HOSTNAME,
        )
    elif number != 1:
        yield Undetermined(
            check="topology",
            reason=f"whether each of its child jobs gets a topology domain for itself ({key}) is not judged",
        )


def _number_of_values(pool: PoolFacts, key: str) -> int | Unknown:
    """How many values of a label the nodes of a pool may have, UNKNOWN if that is not known."""
    if key in _OF_NODE_POOLS:
        return 1
    if key == HOSTNAME:
        return pool.limits.nodes if isinstance(pool.limits.nodes, int) else UNKNOWN
    if key == ZONE and isinstance(pool.zones, frozenset):
        return len(pool.zones)
    if pool.labels is UNKNOWN:
        return UNKNOWN
    found = {label_of(labels, key) for labels in labels_of_nodes(pool)}
    values = {each for each in found if isinstance(each, str)}
    for each in found - values - {None}:
        if not isinstance(each, LabelValues) or each.is_complement:
            return UNKNOWN
        values |= each.values
    return len(values)


def zones(shape: Shape, pool: PoolFacts) -> Iterator[CheckResult]:
    """The pool can have nodes in a zone of the pods' volumes, and the pods select no other zone."""
    if shape.zones is None:
        return
    selected, volumes = shape.selector.get(ZONE), ", ".join(sorted(shape.zones))
    if not shape.zones:
        yield Failed.by("zones", messages.NO_ZONE)
    elif selected is not None and selected not in shape.zones:
        yield Failed.by("zones", messages.OTHER_ZONE, volumes=volumes, selected=selected)
    elif pool.zones is None or pool.zones is UNKNOWN:
        yield Undetermined(
            check="zones", reason=f"whether it has nodes in {volumes}, as the volumes need, is not known"
        )
    # An agent pool of AKS lists the number after the location.
    elif not pool.zones & (shape.zones | {zone.rpartition("-")[2] for zone in shape.zones}):
        yield Failed.by("zones", messages.ZONES, volumes=volumes, nodes=", ".join(sorted(pool.zones)))


def placement(shape: Shape, pool: PoolFacts) -> Iterator[CheckResult]:
    """The pool places its nodes close to each other where the gang needs that."""
    if shape.same_placement is Placement.HOST_GROUP and pool.is_compact is not True:
        yield Undetermined(
            check="placement", reason="whether its nodes are placed close to each other is not known"
        )


def priority(shape: Shape, pool: PoolFacts) -> Iterator[CheckResult]:
    """The pool makes nodes for pods of this priority."""
    least = pool.least_priority
    if least is None or shape.priority is None or shape.priority >= least:
        return
    if shape.is_declared:
        yield Failed.by("priority", messages.EXPENDABLE, least=least, priority=shape.priority)
    else:
        yield Undetermined(
            check="priority",
            reason=f"whether its jobs name a PriorityClass of {least} or more is not known, and by default they have {shape.priority}",
        )


def unmodeled(shape: Shape, pool: PoolFacts) -> Iterator[CheckResult]:
    """Nothing but what the checks model decides where the pods run."""
    of_gpus = pool.unmodeled_gpus if shape.requests.gpus else ()
    for reason in (*shape.unmodeled, *pool.unmodeled, *of_gpus):
        yield Undetermined(check="pods", reason=reason)


#: In the order in which a message lists them.
CHECKS: Final[tuple[Check, ...]] = (
    accelerator,
    selector,
    affinity,
    capacity,
    architecture,
    taints,
    machine,
    gang,
    topology,
    zones,
    placement,
    priority,
    unmodeled,
)


def check_pool(shape: Shape, pool: PoolFacts) -> tuple[CheckResult, ...]:
    """Every check that fails or is undetermined for this shape on this pool; empty if the pods can run there."""

    def check_all(each: Shape) -> Iterator[CheckResult]:
        return (result for check in CHECKS for result in check(each, pool))

    return without_guesses(shape, check_all)


def without_guesses(shape: Shape, check: Callable[[Shape], Iterable[CheckResult]]) -> tuple[CheckResult, ...]:
    """What a check finds for a shape; of one that is not declared, it fails only where it fails for any pod."""
    found = tuple(check(shape))
    if shape.is_declared or not any(isinstance(each, Failed) for each in found):
        return found
    least = replace(shape, requests=Resources(cpu_millis=1, memory_mib=1), is_declared=True)
    certain = {each.check for each in check(least) if isinstance(each, Failed)}
    return tuple(each if each.check in certain else _guessed(each) for each in found)


def _guessed(result: CheckResult) -> CheckResult:
    """Return a failure for a shape that is not declared as what it is: not known."""
    if isinstance(result, Undetermined):
        return result
    return Undetermined(
        check=result.check,
        reason=f"one pod with all GPUs of a machine of the first tier stands for its jobs, and {result.reason}: declare `shapes`",
    )


def check_last_tier(pool: PoolFacts, *, is_last: bool) -> Iterator[CheckResult]:
    """The pool of the last tier is on-demand."""
    if not is_last or pool.is_on_demand is True:
        return
    if pool.is_on_demand is UNKNOWN:
        yield Undetermined(check="capacity", reason="whether it is on-demand is not known yet")
        return
    kinds = " or ".join(sorted(pool.capacity_types)) or "no"
    yield Failed.by("capacity", messages.CAPACITY, title=pool.title, kinds=kinds)


def _not_in_table(pool: PoolFacts) -> str:
    return f"the resources of {', '.join(pool.unknown_machine_types)} are not in any machine table"
