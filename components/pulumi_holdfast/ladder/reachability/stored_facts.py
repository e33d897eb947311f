"""Reads the facts of a pool as a tier of a FallbackPolicy and the outputs of a stack store them.

They may be of an earlier release, or written by hand: what is missing or of a wrong type is not known.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN, Json, JsonValue, Unknown, mapping, sequence
from pulumi_holdfast.ladder.labels import ON_DEMAND, SPOT, CapacityType
from pulumi_holdfast.ladder.ladder import UNLIMITED
from pulumi_holdfast.ladder.quantities import parse_quantity
from pulumi_holdfast.ladder.reachability.affinity import OTHERS, LabelFact
from pulumi_holdfast.ladder.reachability.facts import Exported, Limits, PoolFacts, TierFacts
from pulumi_holdfast.ladder.reachability.label_values import LabelValues
from pulumi_holdfast.ladder.reachability.machine_capacity import MachineCapacity
from pulumi_holdfast.ladder.reachability.shape import MAX_PODS_PER_NODE, Resources, is_in_bytes
from pulumi_holdfast.ladder.taints import Taint

_MIB: Final = 2**20
_MILLI: Final = 1000


def read_tiers(policy: Json) -> tuple[TierFacts, ...]:
    """The tiers of a FallbackPolicy with what it says about their pools; none if it has none.

    It does not say which tolerations admission adds to the pods of a tier.
    """
    tiers = map(mapping, sequence(mapping(policy.get("spec")).get("tiers")))
    return tuple(
        TierFacts(
            number=number,
            pool=_text(tier.get("pool")),
            max_failures=_whole(tier.get("maxFailures"), least=UNLIMITED),
            has_timeout="procurementTimeout" in tier,
            node_pools=_node_pools(tier),
            cluster=_text(tier.get("cluster")),
            exported=read_exported(mapping(tier.get("exported"))),
        )
        for number, tier in enumerate(tiers, 1)
    )


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else ""


def _node_pools(tier: Json) -> tuple[PoolFacts, ...]:
    """The pool of a tier; none for a tier in another cluster without facts."""
    if "cluster" in tier and "facts" not in tier:
        return ()
    facts = mapping(tier.get("facts"))
    found = read_pool_facts(_text(tier.get("pool")), facts)
    taints = () if "cluster" in tier else tuple(map(_taint, sequence(facts.get("taints"))))
    return (replace(found, taints=taints, added_tolerations=UNKNOWN) if taints else found,)


def _taint(written: JsonValue) -> Taint:
    taint = mapping(written)
    return Taint(
        key=_text(taint.get("key")), value=_text(taint.get("value")), effect=_text(taint.get("effect"))
    )


def read_pool_facts(name: str, facts: Json) -> PoolFacts:
    """The facts of a pool. Its taints are left out: admission gives the pods that select it the tolerations."""
    capacity = facts.get("capacity")
    is_known = capacity in list(CapacityType)
    machines = [_machine(mapping(each)) for each in sequence(facts.get("machines"))]
    known = tuple(each for each in machines if each is not None)
    return PoolFacts(
        name=name,
        title=f"pool {name}",
        capacity_types=frozenset({str(capacity)}) if is_known else frozenset({SPOT, ON_DEMAND}),
        is_decided=is_known,
        labels=_labels(facts),
        machines=known if known and len(known) == len(machines) else UNKNOWN,
        limits=Limits(nodes=UNKNOWN if (most := _whole(facts.get("maxNodes"))) is None else most),
    )


def read_exported(exported: Json, *, home_checkpoints: str | Unknown | None = None) -> Exported | None:
    """What the stack of another cluster says of a namespace, as a tier stores it; None if nothing is known."""
    if not exported:
        return None
    ladder, checkpoints, reaches, registry = (
        exported.get(name) for name in ("ladder", "checkpoints", "reachesCheckpoints", "registry")
    )
    return Exported(
        stack=str(exported.get("stack")),
        ladder=None if ladder is None else tuple(str(pool) for pool in sequence(ladder)),
        home_checkpoints=home_checkpoints,
        checkpoints=checkpoints if isinstance(checkpoints, str) else None,
        reaches_checkpoints=reaches if isinstance(reaches, bool) else None,
        registry=registry if isinstance(registry, str) else None,
    )


def _labels(facts: Json) -> Mapping[str, LabelFact]:
    """Its labels; UNKNOWN for all that are not listed where the facts have none."""
    labels = mapping(facts.get("labels"))
    found: dict[str, LabelFact] = {key: each for key, each in labels.items() if isinstance(each, str)}
    for key, values in mapping(facts.get("labelValues")).items():
        listed = frozenset(each for each in sequence(values) if isinstance(each, str))
        found[key] = LabelValues(values=listed) if listed else UNKNOWN
    return found if labels else {**found, OTHERS: UNKNOWN}


def _machine(machine: Json) -> MachineCapacity | None:
    """One of its machine types; None if what it has for pods cannot be read."""
    cpu, memory = (parse_quantity(machine.get(name)) for name in ("cpu", "memory"))
    if not cpu or not memory:
        return None
    name, accelerator, pods = (machine.get(each) for each in ("name", "accelerator", "pods"))
    room = Resources(
        cpu_millis=int(cpu * _MILLI),
        memory_mib=int(memory / _MIB),
        gpus=_whole(machine.get("gpus")) or 0,
        efa=_whole(machine.get("efa")) or 0,
        devices={
            device: int(parse_quantity(amount) / (_MIB if is_in_bytes(device) else 1))
            for device, amount in mapping(machine.get("devices")).items()
        },
    )
    return MachineCapacity(
        name=name if isinstance(name, str) else "its machines",
        capacity=room,
        allocatable=room,
        accelerator=accelerator if isinstance(accelerator, str) else None,
        max_pods=MAX_PODS_PER_NODE if (most := _whole(pods)) is None else most,
        has_all_devices=machine.get("allDevices") is True,
    )


def _whole(value: JsonValue, *, least: int = 0) -> int | None:
    """A number of pieces; None without one. A state of Pulumi has only floats."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value < least:
        return None
    return int(value) if float(value).is_integer() else None
