"""Draws jobs on NodePools as a stranger writes them: open requirements with every operator, several NodePools a tier."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Final

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import ARCH, CAPACITY_TYPE, GPU_RESOURCE, INSTANCE_TYPE, ZONE, CapacityType
from pulumi_holdfast.ladder.machines import LOCAL_ZONES, machine_catalogue
from pulumi_holdfast.ladder.reachability.affinity import Requirement, Term
from pulumi_holdfast.ladder.reachability.machine_capacity import MachineCapacity
from pulumi_holdfast.ladder.reachability.shape import EPHEMERAL_STORAGE, Placement, Resources, Shape
from pulumi_holdfast.ladder.taints import SPOT, Taint, Toleration
from tests.support.builders.tried_jobs import CONTAINERS, TriedJob, TriedTier, VolumeTerms
from tests.support.strategies.reachability_jobs import (
    CPU_MACHINES,
    EFFECTS,
    GENERATION,
    GPU_MACHINES,
    RESERVED,
    TEAM,
    room,
)

_FAMILY: Final = "karpenter.kwok.sh/instance-family"
_SIZE: Final = "karpenter.kwok.sh/instance-size"
_CPU: Final = "karpenter.kwok.sh/instance-cpu"
_MEMORY: Final = "karpenter.kwok.sh/instance-memory"

#: Labels that follow from the machine or the place, with some of their values.
_WELL_KNOWN: Final = {
    _FAMILY: ("m7i", "c7i", "m6i", "g5", "p4d"),
    _SIZE: ("large", "xlarge", "2xlarge", "4xlarge", "24xlarge"),
    _CPU: ("2", "4", "8", "16", "48"),
    _MEMORY: ("8Gi", "16Gi", "32Gi", "64Gi", "192Gi"),
    INSTANCE_TYPE: ("m7i.large", "m7i.4xlarge", "c7i.4xlarge", "g5.12xlarge", "p4d.24xlarge"),
    ARCH: ("amd64", "arm64"),
    ZONE: (*LOCAL_ZONES, "local-z"),
    CAPACITY_TYPE: ("spot", "on-demand", "reserved"),
}
_OWN: Final = {TEAM: ("vision", "audio", "text"), GENERATION: ("4", "5", "6")}
_NUMBERS: Final = {_CPU: ("1", "3", "4", "15", "47"), GENERATION: ("3", "4", "5")}


def open_jobs(seed: int, count: int) -> tuple[TriedJob, ...]:
    """So many jobs, each on tiers of open NodePools, the same for the same seed."""
    chance = Random(f"open-{seed}")
    return tuple(_job(chance, f"open-{seed}-{number}") for number in range(count))


def _job(chance: Random, name: str) -> TriedJob:
    machine = room(chance.choice(CPU_MACHINES * 2 + GPU_MACHINES))
    beside, nodes = chance.choice((1, 1, 2, 3)), chance.choice((1, 2, 3))
    shape = Shape(
        name=name,
        pods=max(1, nodes * beside + chance.choice((-1, 0, 0, 1, 2))),
        requests=_requests(chance, machine, beside),
        selector=_selector(chance),
        affinity=_affinity(chance),
        tolerations=chance.choice(
            ((), (), (Toleration.of(SPOT),), (Toleration(key=RESERVED),), (Toleration(),))
        ),
        zones=chance.choice((None,) * 6 + (frozenset(LOCAL_ZONES[:1]),)),
        one_per_node=chance.random() < 0.15,
    )
    tiers = tuple(
        _tier(chance, f"{name}-{number}", machine, nodes) for number in range(1, chance.choice((2, 3)) + 1)
    )
    job = TriedJob(name=name, shape=shape, tiers=tiers, is_admitted=chance.random() < 0.7)
    return _with_pods(Random(f"pods-{name}"), job, machine)


def _with_pods(chance: Random, job: TriedJob, machine: MachineCapacity) -> TriedJob:
    """The same job with pods of several containers, in one zone, beside DaemonSets, or that select an architecture."""
    shape = job.shape
    selector = {**shape.selector, ARCH: chance.choice(("amd64", "amd64", "arm64"))}
    shape = replace(
        shape,
        selector=selector if chance.random() < 0.15 else shape.selector,
        same_placement=Placement.ZONE if chance.random() < 0.15 else None,
        tolerations=(
            *shape.tolerations,
            *chance.choice(((),) * 4 + ((Toleration(key=RESERVED, value="vision", effect="NoSchedule"),),)),
        ),
    )
    volumes = _volumes(chance) if shape.zones is not None or chance.random() < 0.15 else ()
    return replace(
        job,
        shape=replace(shape, zones=_shared(volumes)),
        volumes=volumes,
        containers=chance.choice(CONTAINERS),
        is_read=True,
    )


def _volumes(chance: Random) -> tuple[VolumeTerms, ...]:
    """Volumes of one zone or several, in one term or two; two of them may be in different zones."""
    first, second = LOCAL_ZONES[:2]
    here: VolumeTerms = ((first,),)
    return chance.choice(
        (
            (here,),
            (here,),
            (((first, second),),),
            (((first,), (second,)),),
            (((second,), ("local-z",)), ((first, second),)),
            (((first, second),), here),
            (here, ((second,),)),
            ((("local-z",),),),
        )
    )


def _shared(volumes: tuple[VolumeTerms, ...]) -> frozenset[str] | None:
    """The zones of all volumes; None without any."""
    zones = [frozenset(zone for term in terms for zone in term) for terms in volumes]
    return zones[0].intersection(*zones[1:]) if zones else None


def _requests(chance: Random, machine: MachineCapacity, beside: int) -> Resources:
    there = machine.allocatable
    over = chance.choice((0, 0, 0, 0, 1))
    found = Resources(
        cpu_millis=there.cpu_millis // beside + (over if chance.random() < 0.5 else -500),
        memory_mib=there.memory_mib // (2 * beside),
        gpus=there.gpus // beside if chance.random() < 0.8 else 0,
    )
    match chance.choice(("none",) * 8 + ("storage", "much storage", "device")):
        case "storage":
            return replace(found, devices={EPHEMERAL_STORAGE: 100 * 1024 // beside})
        case "much storage":
            return replace(found, devices={EPHEMERAL_STORAGE: 100 * 1024 + 1})
        case "device":
            return replace(found, devices={"example.com/nic": 1})
        case _:
            return found


def _selector(chance: Random) -> dict[str, str]:
    if chance.random() < 0.6:
        return {}
    known = {**_WELL_KNOWN, **_OWN}
    return {
        key: chance.choice(known[key]) for key in chance.sample(sorted(known), chance.choice((1, 1, 1, 2)))
    }


def _affinity(chance: Random) -> tuple[Term, ...]:
    if chance.random() < 0.6:
        return ()
    return tuple(_term(chance) for _ in range(chance.choice((1, 1, 2))))


def _term(chance: Random) -> Term:
    return tuple(
        Requirement(key=key, operator=operator, values=values)
        for key, operator, values in (
            _drawn(chance, ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"))
            for _ in range(chance.choice((1, 1, 2)))
        )
    )


def _drawn(chance: Random, operators: Sequence[str]) -> tuple[str, str, tuple[str, ...]]:
    """A requirement on any label, with an operator that the label allows."""
    operator = chance.choice(operators)
    if operator in {"Gt", "Lt", "Gte", "Lte"}:
        key = chance.choice(sorted(_NUMBERS))
        return key, operator, (chance.choice(_NUMBERS[key]),)
    known = {**_WELL_KNOWN, **_OWN}
    key = chance.choice(sorted(known))
    if operator in {"Exists", "DoesNotExist"}:
        return chance.choice(sorted(_OWN)), operator, ()
    return (
        key,
        operator,
        tuple(chance.sample(known[key], chance.choice((1, 2, 3 if len(known[key]) > 2 else 2)))),
    )


def _tier(chance: Random, name: str, machine: MachineCapacity, nodes: int) -> TriedTier:
    first = _node_pool(chance, name, machine, nodes)
    others = tuple(
        _node_pool(chance, f"{name}-{letter}", machine, nodes)
        for letter in "bc"[: chance.choice((0, 0, 1, 1, 2))]
    )
    return replace(first, beside=others)


def _node_pool(chance: Random, name: str, machine: MachineCapacity, nodes: int) -> TriedTier:
    """A NodePool of which most requirements leave the machine in."""
    drawn = [_needs(chance) for _ in range(chance.choice((0, 0, 1, 1, 1, 2)))]
    usual = chance.choice(_usual(machine))
    return TriedTier(
        name=name,
        machines=("m7i.large",),
        capacity=CapacityType.ON_DEMAND,
        max_nodes=nodes,
        is_open=True,
        weight=chance.choice((1, 10, 50)),
        requirements=(*usual, *drawn),
        labels=chance.choice(({}, {}, {TEAM: "vision", GENERATION: "5"}, {TEAM: "audio"})),
        taints=chance.choice(
            ((),) * 6 + ((SPOT,), (Taint(key=RESERVED, value="vision", effect=chance.choice(EFFECTS)),))
        ),
        limits=_limits(chance, machine, nodes),
        max_failures=5,
        has_timeout=True,
    )


def _usual(machine: MachineCapacity) -> tuple[tuple[Json, ...], ...]:
    """Requirements that the machine meets."""
    known = machine_catalogue("local")[machine.name]
    family, _, size = machine.name.partition(".")
    kind: Json = {"key": CAPACITY_TYPE, "operator": "In", "values": ["on-demand"]}
    return (
        (kind, {"key": INSTANCE_TYPE, "operator": "In", "values": [machine.name]}),
        (kind, {"key": _FAMILY, "operator": "In", "values": [family]}),
        (kind, {"key": _FAMILY, "operator": "In", "values": [family, "m6i", "c6i"], "minValues": 2}),
        (kind, {"key": _SIZE, "operator": "In", "values": [size]}),
        (kind, {"key": _CPU, "operator": "Gt", "values": [str(known.vcpus - 1)]}),
        (kind, {"key": _CPU, "operator": "Gte", "values": [str(known.vcpus)]}),
        (kind, {"key": _CPU, "operator": "Lte", "values": [str(known.vcpus)]}),
        (kind, {"key": INSTANCE_TYPE, "operator": "Exists", "minValues": 3}),
        (kind,),
        (),
    )


def _needs(chance: Random) -> Json:
    key, operator, values = _drawn(
        chance, ("In", "In", "NotIn", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte")
    )
    least = {"minValues": chance.choice((1, 2))} if operator == "In" and len(values) > 1 else {}
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {}), **least}


def _limits(chance: Random, machine: MachineCapacity, nodes: int) -> Json:
    """No limits, those of one resource or several: for so many machines, for one fewer, or a hair less."""
    there, short = machine.capacity, chance.choice((0, 0, 1))
    many = max(1, nodes - chance.choice((0, 0, 1)))
    amounts: dict[str, str] = {
        "nodes": str(many),
        "cpu": f"{many * there.cpu_millis - short}m",
        "memory": f"{many * there.memory_mib - short}Mi",
        GPU_RESOURCE: str(many * there.gpus),
    }
    kept = chance.choice(
        ((), ("cpu",), ("nodes", "cpu"), ("memory",), ("cpu", "memory"), (GPU_RESOURCE,), ("nodes",))
    )
    return {name: amounts[name] for name in kept}
