"""Jobs on both sides of every edge: what exactly fits, and what is a hair too much."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import GPU_RESOURCE, CapacityType
from pulumi_holdfast.ladder.reachability.shape import Resources, Shape
from pulumi_holdfast.ladder.taints import GPU, SPOT, Taint, Toleration
from tests.support.builders.tried_jobs import Containers, TriedJob, TriedTier
from tests.support.strategies.reachability_jobs import RESERVED, TEAM, room

_CPU: Final = "m7i.xlarge"
_GPU: Final = "p4d.24xlarge"
_MIXED: Final = ("m7i.xlarge", "m7i.4xlarge")
_UNEVEN: Final = ("m7i.xlarge", "c7i.4xlarge")
_EITHER: Final[Json] = {"key": TEAM, "operator": "In", "values": ["vision", "audio"]}


def edges() -> tuple[TriedJob, ...]:
    """The jobs, each on tiers of their own."""
    whole, half = room(_CPU).allocatable, _half(_CPU)
    gpus = room(_GPU).allocatable
    return (
        _job("cpu-fits", whole, _tier()),
        _job("cpu-over", replace(half, cpu_millis=whole.cpu_millis + 1), _tier()),
        _job("memory-fits", replace(half, memory_mib=whole.memory_mib), _tier()),
        _job("memory-over", replace(half, memory_mib=whole.memory_mib + 1), _tier()),
        _job("gpus-fit", gpus, _tier(machines=(_GPU,))),
        _job("gpus-over", replace(gpus, gpus=gpus.gpus + 1), _tier(machines=(_GPU,))),
        _job("gang", half, _tier(max_nodes=2), _tier(max_nodes=1), pods=3),
        _job("gang-over", half, _tier(max_nodes=1), _tier(max_nodes=2), pods=5),
        # Of one machine: a second plan of the simulated provider may count a machine that just comes as its requests.
        _job("cpu-limits", half, *(_tier(limits={"cpu": cpu}) for cpu in ("4", "3999m")), pods=2),
        _job("memory-limits", half, *(_tier(limits={"memory": gib}) for gib in ("16Gi", "16383Mi")), pods=2),
        _job(
            "gpu-limits",
            replace(gpus, cpu_millis=1000, memory_mib=1000),
            *(_tier(machines=(_GPU,), limits={GPU_RESOURCE: amount}) for amount in ("16", "15")),
            pods=2,
        ),
        _job("spot", half, _tier(capacity=CapacityType.SPOT), is_admitted=False),
        _job(
            "spot-tolerated",
            half,
            _tier(capacity=CapacityType.SPOT),
            is_admitted=False,
            tolerations=(Toleration.of(SPOT),),
        ),
        # The GPU pool's taint keeps away a pod that asks for none, but for one that names the pool.
        _job("helper", half, _tier(machines=(_GPU,)), is_admitted=False),
        _job("helper-admitted", half, _tier(machines=(_GPU,))),
        # A DaemonSet takes 200m: what is left fits exactly, or not.
        _job("sidecar-fits", replace(half, cpu_millis=whole.cpu_millis), _tier(), containers="both"),
        _job("sidecar-over", replace(half, cpu_millis=whole.cpu_millis + 4), _tier(), containers="both"),
        *_sizes(half),
        *_tolerating(half),
    )


#: The tiers of which the proof leaves open whether they take their job.
OPEN: Final = frozenset({"counted-1"})


def _sizes(half: Resources) -> tuple[TriedJob, ...]:
    """Pools whose machines are not of one size, under limits that a hand wrote, and nodes that may be either."""
    third = replace(half, cpu_millis=3000, memory_mib=1024)
    return (
        # Five on each of two large machines, and one on each of two small ones for which there is just enough left.
        _job("mixed", third, _tier(machines=_MIXED, limits={"cpu": "40"}), pods=12),
        # Two are planned that may become the large one, so no other; with one CPU less only the first of them may.
        _job(
            "counted",
            Resources(cpu_millis=1000, memory_mib=15 * 1024),
            *(_tier(machines=_UNEVEN, limits={"cpu": cpu}) for cpu in ("32", "31")),
            pods=5,
        ),
        _job("either-label", half, _tier(requirements=(_EITHER,)), selector={TEAM: "vision"}),
    )


def _tolerating(requests: Resources) -> tuple[TriedJob, ...]:
    """Each way to tolerate a taint, and some that miss it, on a taint of each effect."""
    ways = {
        "exactly": Toleration(key=RESERVED, value="vision", effect="NoSchedule"),
        "any-effect": Toleration(key=RESERVED, value="vision"),
        "any-value": Toleration(key=RESERVED),
        "everything": Toleration(),
        "no-value": Toleration(key=RESERVED, value=""),
        "other": Toleration(key=GPU.key),
    }
    tainted = [
        _tier(taints=(Taint(key=RESERVED, value="vision", effect=effect),))
        for effect in ("NoSchedule", "NoExecute", "PreferNoSchedule")
    ]
    return (
        _job("tolerates-nothing", requests, *tainted),
        *(
            _job(f"tolerates-{name}", requests, *tainted[:2], tolerations=(way,))
            for name, way in ways.items()
        ),
    )


def _job(
    name: str,
    requests: Resources,
    *tiers: TriedTier,
    pods: int = 1,
    is_admitted: bool = True,
    tolerations: tuple[Toleration, ...] = (),
    selector: Mapping[str, str] | None = None,
    containers: Containers = "one",
) -> TriedJob:
    named = [replace(tier, name=f"{name}-{number}") for number, tier in enumerate(tiers, start=1)]
    last = replace(named[-1], max_failures=None, has_timeout=False)
    shape = Shape(name=name, pods=pods, requests=requests, tolerations=tolerations, selector=selector or {})
    return TriedJob(
        name=name,
        shape=shape,
        tiers=(*named[:-1], last),
        is_admitted=is_admitted,
        containers=containers,
        is_read=containers != "one",
    )


def _tier(
    *,
    machines: tuple[str, ...] = (_CPU,),
    capacity: CapacityType = CapacityType.ON_DEMAND,
    max_nodes: int = 4,
    taints: tuple[Taint, ...] = (),
    limits: Mapping[str, str] | None = None,
    requirements: tuple[Json, ...] = (),
) -> TriedTier:
    return TriedTier(
        name="",
        machines=machines,
        capacity=capacity,
        max_nodes=max_nodes,
        taints=taints,
        limits=limits,
        requirements=requirements,
        max_failures=5,
        has_timeout=True,
    )


def _half(machine: str) -> Resources:
    there = room(machine).allocatable
    return replace(there, cpu_millis=there.cpu_millis // 2, memory_mib=there.memory_mib // 2, gpus=0)
