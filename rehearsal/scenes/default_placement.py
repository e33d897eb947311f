"""A pod that selects nothing lands on the default pool, whatever room there is elsewhere."""

from dataclasses import dataclass

from rehearsal.kube.summary import mapping
from rehearsal.scenes.placement import Placement, free_cpus, is_running, name_of
from rehearsal.scenes.platform import Platform, played
from scheduling.json import Json
from scheduling.labels import CAPACITY_TYPE, GPU_RESOURCE, ON_DEMAND, SPOT

SCENE = "holdfast.dev/scene"
OCCUPANT = "occupant"
PLAIN = "plain"


@dataclass(frozen=True, kw_only=True)
class Room:
    """A node that was there with CPUs to spare when the plain pod was placed."""

    placement: Placement
    free_cpus: float


@dataclass(frozen=True, kw_only=True)
class DefaultPlacement:
    """Where the plain pod is, and where else it would have had room."""

    plain: Placement
    rooms: tuple[Room, ...]


def default_placement(platform: Platform, plain: Json) -> DefaultPlacement:
    """Play the scene with this pod. Raises KubeTimeout where a pod does not run."""
    spot = _occupant("occupant-spot", SPOT, gpus=0)
    gpu = _occupant("occupant-gpu", ON_DEMAND, gpus=1)
    with played(platform, spot, gpu):
        occupants = platform.wait_for_pods(
            f"{SCENE}={OCCUPANT}",
            lambda found: len(found) == 2 and all(map(is_running, found)),
            "a spot node and a GPU node are there",
        )
        nodes = {name_of(node): node for node in platform.nodes()}
        pods = platform.client.list("v1", "Pod")
        rooms = tuple(
            Room(placement=each, free_cpus=float(free_cpus(nodes[each.node], pods))) for each in occupants
        )
        for room in rooms:
            platform.say(
                f"{room.placement.capacity} {room.placement.machine} with {room.placement.gpus} GPUs "
                f"has {room.free_cpus:.1f} CPUs free"
            )
        return DefaultPlacement(plain=_place(platform, plain), rooms=rooms)


def _place(platform: Platform, plain: Json) -> Placement:
    labelled = _labelled(plain)
    with played(platform, labelled):
        platform.say(f"pod {name_of(plain)} applied: it selects nothing")
        (placed,) = platform.wait_for_pods(
            f"{SCENE}={PLAIN}",
            lambda found: len(found) == 1 and all(map(is_running, found)),
            f"{name_of(plain)} runs",
        )
        platform.say(f"{placed.pod} runs on {placed.capacity} {placed.machine} (pool {placed.pool})")
        return placed


def _labelled(pod: Json) -> Json:
    return {**pod, "metadata": {**mapping(pod.get("metadata")), "labels": {SCENE: PLAIN}}}


def _occupant(name: str, capacity: str, *, gpus: int) -> Json:
    limits = {GPU_RESOURCE: str(gpus)} if gpus else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {SCENE: OCCUPANT}},
        "spec": {
            "restartPolicy": "Never",
            "nodeSelector": {CAPACITY_TYPE: capacity},
            "containers": [
                {
                    "name": "occupant",
                    "image": "occupant",
                    "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": limits},
                }
            ],
        },
    }
