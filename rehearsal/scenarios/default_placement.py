"""A pod that selects nothing lands on the default pool, whatever room there is elsewhere."""

from dataclasses import dataclass

from holdfast.rehearsal.scenarios.placement import Placement, free_cpus, is_running, name_of
from holdfast.rehearsal.scenarios.platform import Platform, played, where_gpus_may_be
from holdfast.rehearsal.scenarios.provisioning import Provisioner
from holdfast.scheduling.json import Json
from holdfast.scheduling.labels import GPU_RESOURCE
from holdfast.simulator.cluster_autoscaler.pods import requests_of
from holdfast.simulator.kubernetes_client.summary import mapping

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
    """Where the plain pod is, how many CPUs it asked for, and where else it would have had room."""

    plain: Placement
    rooms: tuple[Room, ...]
    asked_cpus: float = 1.0


def default_placement(anywhere: Platform, plain: Json) -> DefaultPlacement:
    """Play the scene with this pod, where GPUs may be asked for. Raises KubeTimeout where a pod does not run."""
    platform = where_gpus_may_be(anywhere) or anywhere
    pods = _occupants(platform.provisioner)
    with played(platform, *pods):
        occupants = platform.wait_for_pods(
            f"{SCENE}={OCCUPANT}",
            lambda found: len(found) == len(pods) and all(map(is_running, found)),
            "a spot node is there, and where there are any to buy a GPU node",
        )
        nodes = {name_of(node): node for node in platform.nodes()}
        everything = platform.client.list("v1", "Pod")
        rooms = tuple(
            Room(placement=each, free_cpus=float(free_cpus(nodes[each.node], everything)))
            for each in occupants
        )
        for room in rooms:
            platform.say(
                f"{room.placement.capacity} {room.placement.machine} with {room.placement.gpus} GPUs "
                f"has {room.free_cpus:.1f} CPUs free"
            )
        asked = float(requests_of(plain)["cpu"])
        return DefaultPlacement(plain=_place(platform, plain), rooms=rooms, asked_cpus=asked)


def plain_pod() -> Json:
    """Return a pod that selects nothing, tolerates nothing and needs no GPU."""
    container: Json = {
        "name": "plain",
        "image": "plain",
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "plain"},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }


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


def _occupants(provisioner: Provisioner) -> list[Json]:
    """Pods whose machines have room to spare: a spot one, and one with GPUs where an on-demand one is to be had."""
    gpus_on_spot = 0 if provisioner.has_plain_spot() else 1
    spot = _occupant("occupant-spot", provisioner.on_spot(), gpus=gpus_on_spot)
    if not provisioner.has_gpus_on_demand():
        return [spot]
    return [spot, _occupant("occupant-gpu", provisioner.on_demand(), gpus=1)]


def _occupant(name: str, capacity: Json, *, gpus: int) -> Json:
    limits = {GPU_RESOURCE: str(gpus)} if gpus else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {SCENE: OCCUPANT}},
        "spec": {
            "restartPolicy": "Never",
            **capacity,
            "containers": [
                {
                    "name": "occupant",
                    "image": "occupant",
                    "resources": {"requests": {"cpu": "1", "memory": "1Gi"}, "limits": limits},
                }
            ],
        },
    }
