"""Draws jobs and tiers whose reachability the rules predict and a real cluster decides."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Final, TypeVar

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import CAPACITY_TYPE, GPU_RESOURCE, POOL, CapacityType
from pulumi_holdfast.ladder.ladder import UNLIMITED
from pulumi_holdfast.ladder.machines import LOCAL_ZONES, machine_catalogue
from pulumi_holdfast.ladder.reachability.affinity import Requirement, Term
from pulumi_holdfast.ladder.reachability.machine_capacity import (
    MachineCapacity,
    Provisioner,
    machine_capacity,
)
from pulumi_holdfast.ladder.reachability.shape import Resources, Shape
from pulumi_holdfast.ladder.taints import GPU, SPOT, Taint, Toleration
from tests.support.builders.tried_jobs import TriedJob, TriedTier, rules_of, takes

Choice = TypeVar("Choice")

CPU_MACHINES: Final = ("m7i.large", "m7i.xlarge", "c7i.2xlarge", "c7i.4xlarge", "m7i.4xlarge")
GPU_MACHINES: Final = ("g5.12xlarge", "p4d.24xlarge", "p5.48xlarge")
TEAM: Final = "example.com/team"
GENERATION: Final = "example.com/generation"
RESERVED: Final = "example.com/reserved"
EFFECTS: Final = ("NoSchedule", "NoExecute", "PreferNoSchedule")

#: What a job may ask of nodes which are of team `vision` and generation 5, as most are.
TERMS: Final[tuple[Term, ...]] = (
    (Requirement(key=TEAM, operator="In", values=("vision", "audio")),),
    (Requirement(key=TEAM, operator="NotIn", values=("audio",)),),
    (Requirement(key=TEAM, operator="Exists"),),
    (Requirement(key=TEAM, operator="DoesNotExist"),),
    (Requirement(key=GENERATION, operator="Gt", values=("4",)),),
    (Requirement(key=GENERATION, operator="Lt", values=("5",)), Requirement(key=TEAM, operator="Exists")),
    (Requirement(key=CAPACITY_TYPE, operator="NotIn", values=("spot",)),),
)


def drawn_jobs(seed: int, count: int) -> tuple[TriedJob, ...]:
    """So many jobs with ladders of one to three tiers, all different, the same for the same seed."""
    chance = Random(seed)
    return tuple(_job(chance, f"drawn-{seed}-{number}") for number in range(count))


def room(machine: str) -> MachineCapacity:
    """What pods get of a machine here."""
    return machine_capacity(machine_catalogue("local")[machine], Provisioner.LOCAL)


def _job(chance: Random, name: str) -> TriedJob:
    machine = chance.choice(CPU_MACHINES + GPU_MACHINES)
    beside = chance.choice((1, 1, 2, 3))
    nodes = chance.choice((1, 2, 2))
    shape = Shape(
        name=name,
        pods=max(1, nodes * beside + chance.choice((-1, 0, 0, 1))),
        requests=_requests(chance, room(machine), beside),
        selector=_mostly(chance, {}, {TEAM: "vision"}, {CAPACITY_TYPE: "spot"}),
        affinity=_mostly(chance, (), (chance.choice(TERMS),), tuple(chance.sample(TERMS, 2))),
        tolerations=_tolerations(chance),
        zones=_mostly(chance, None, frozenset(LOCAL_ZONES[:1]), frozenset(LOCAL_ZONES[1:])),
    )
    job = TriedJob(name=name, shape=shape, tiers=(), is_admitted=chance.random() < 0.6)
    tiers = tuple(
        _told(chance, job, f"{name}-{number}", machine, nodes)
        for number in range(1, chance.choice((1, 2, 2, 3)) + 1)
    )
    last = replace(tiers[-1], max_failures=chance.choice((None, None, UNLIMITED)), has_timeout=False)
    return replace(job, tiers=(*tiers[:-1], last))


def _requests(chance: Random, there: MachineCapacity, beside: int) -> Resources:
    """Requests of which so many fit beside each other, or one fewer: one amount is exact, or a hair too much."""
    gpus = there.allocatable.gpus // beside
    loose = Resources(
        cpu_millis=there.allocatable.cpu_millis // (2 * beside),
        memory_mib=there.allocatable.memory_mib // (2 * beside),
        gpus=min(gpus, chance.choice((1, gpus))) if gpus else 0,
    )
    over = chance.choice((0, 0, 0, 1))
    match chance.choice(("cpu", "memory", "gpus" if gpus else "cpu")):
        case "cpu":
            return replace(loose, cpu_millis=there.allocatable.cpu_millis // beside + over)
        case "memory":
            return replace(loose, memory_mib=there.allocatable.memory_mib // beside + over)
        case _:
            return replace(loose, gpus=gpus + over)


def _tolerations(chance: Random) -> tuple[Toleration, ...]:
    """What the job tolerates by itself: of what is reserved, and of spot and GPUs."""
    reserved = (
        Toleration(key=RESERVED, value="vision", effect="NoSchedule"),
        Toleration(key=RESERVED, value="vision"),
        Toleration(key=RESERVED),
        Toleration(key=RESERVED, effect="NoExecute"),
        Toleration(key=RESERVED, value=""),
    )
    capacity = ((), (Toleration.of(SPOT), Toleration.of(GPU)), (Toleration(key=GPU.key),), (Toleration(),))
    return (*chance.sample(reserved, chance.choice((0, 1, 2))), *chance.choice(capacity))


def _told(chance: Random, job: TriedJob, name: str, machine: str, nodes: int) -> TriedTier:
    """A tier of which the proof can tell whether it takes the job."""
    while True:
        tier = _tier(chance, name, machine, nodes)
        alone = replace(job, tiers=(tier,))
        if takes(job.results(tier, rules_of([alone]))) is not None:
            return tier


def _tier(chance: Random, name: str, machine: str, nodes: int) -> TriedTier:
    """Mostly a tier that is as it should be."""
    reserved = Taint(key=RESERVED, value=chance.choice(("vision", "")), effect=chance.choice(EFFECTS))
    max_failures, has_timeout = chance.choice(
        ((5, True), (5, False), (None, True), (UNLIMITED, False), (UNLIMITED, True))
    )
    machines = _machines(chance, machine)
    return TriedTier(
        name=name,
        machines=machines,
        capacity=chance.choice((CapacityType.SPOT, CapacityType.ON_DEMAND)),
        max_nodes=max(1, _mostly(chance, nodes, nodes - 1, nodes + 1)),
        zones=_mostly(chance, (), LOCAL_ZONES[:1], LOCAL_ZONES[1:]),
        labels=_mostly(chance, {TEAM: "vision", GENERATION: "5"}, {TEAM: "audio", GENERATION: "4"}, {}),
        taints=_mostly(chance, (), (reserved,), (reserved,)),
        requirements=_mostly(chance, (), (_needs(POOL, name),), (_needs(TEAM, "vision"),)),
        limits=_mostly(chance, None, *_limits_by_hand(chance, machines, nodes)),
        max_failures=max_failures,
        has_timeout=has_timeout,
    )


def _machines(chance: Random, machine: str) -> tuple[str, ...]:
    alike = GPU_MACHINES if machine in GPU_MACHINES else CPU_MACHINES
    other = chance.choice([each for each in alike if each != machine])
    return _mostly(chance, (machine,), (machine, other), (other,))


def _limits_by_hand(chance: Random, machines: Sequence[str], nodes: int) -> tuple[Json, Json]:
    """No limits, and those of one resource: for so many of the first machine, or a hair less."""
    first, short = machine_catalogue("local")[machines[0]], chance.choice((0, 1)) if nodes == 1 else 0
    if len(machines) > 1:
        return {}, {}
    bound = {"nodes": str(nodes)}
    amounts: list[Json] = [
        {**bound, "cpu": f"{nodes * first.vcpus * 1000 - short}m"},
        {**bound, "memory": f"{nodes * first.memory_mib - short}Mi"},
        {**bound, GPU_RESOURCE: str(max(0, nodes * first.gpus - short))},
    ]
    return {}, chance.choice(amounts)


def _needs(key: str, value: str) -> Json:
    return {"key": key, "operator": "In", "values": [value]}


def _mostly(chance: Random, usual: Choice, *others: Choice) -> Choice:
    """The usual, or now and then one of the others."""
    return usual if chance.random() < 0.85 else chance.choice(others)
