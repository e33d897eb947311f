"""Placement scenarios: a pod without selection runs on the default pool, the workers of a RayJob run on spot."""

from dataclasses import dataclass

from pulumi_holdfast.controller.kube.objects import name_of
from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.ladder.labels import GPU_RESOURCE
from pulumi_holdfast.rehearsal.cluster_autoscaler.scale_up import requests_of
from pulumi_holdfast.rehearsal.scenarios.placement import PodPlacement, free_cpus, is_running, placements
from pulumi_holdfast.rehearsal.scenarios.platform import Platform, applied, where_gpus_may_be
from pulumi_holdfast.rehearsal.scenarios.provisioning import WAIT_SECONDS, Provisioner

SCENARIO = "holdfast.dev/scenario"
OCCUPANT = "occupant"
PLAIN = "plain"


@dataclass(frozen=True, kw_only=True)
class FreeCapacity:
    """A node with free CPUs at the time the plain pod was placed."""

    placement: PodPlacement
    free_cpus: float


@dataclass(frozen=True, kw_only=True)
class DefaultPlacement:
    """Where the plain pod runs, how many CPUs it requests, and which other nodes had free CPUs."""

    plain: PodPlacement
    candidates: tuple[FreeCapacity, ...]
    asked_cpus: float = 1.0


def default_placement(anywhere: Platform, plain: Json) -> DefaultPlacement:
    """Run the scenario with this pod. Raises KubeTimeout if a pod does not run."""
    with_gpus = where_gpus_may_be(anywhere)
    platform = with_gpus or anywhere
    pods = _occupants(platform.provisioner, on_gpus=with_gpus is not None)
    with applied(platform, *pods):
        occupants = platform.wait_for_pods(
            f"{SCENARIO}={OCCUPANT}",
            lambda found: len(found) == len(pods) and all(map(is_running, found)),
            "there are a spot node and, if the stack has such a pool, a GPU node",
        )
        nodes = {name_of(node): node for node in platform.nodes()}
        everything = platform.client.list("v1", "Pod")
        candidates = tuple(
            FreeCapacity(placement=each, free_cpus=float(free_cpus(nodes[each.node], everything)))
            for each in occupants
        )
        for room in candidates:
            platform.say(
                f"{room.placement.capacity} {room.placement.machine} with {room.placement.gpus} GPUs "
                f"has {room.free_cpus:.1f} CPUs free"
            )
        asked = float(requests_of(plain)["cpu"])
        return DefaultPlacement(plain=_place(platform, plain), candidates=candidates, asked_cpus=asked)


def plain_pod() -> Json:
    """Return a pod without selection, tolerations and GPUs."""
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


def _place(platform: Platform, plain: Json) -> PodPlacement:
    labelled = _labelled(plain)
    with applied(platform, labelled):
        platform.say(f"pod {name_of(plain)} applied, without a selection")
        (placed,) = platform.wait_for_pods(
            f"{SCENARIO}={PLAIN}",
            lambda found: len(found) == 1 and all(map(is_running, found)),
            f"{name_of(plain)} runs",
        )
        platform.say(f"{placed.pod} runs on {placed.capacity} {placed.machine} (pool {placed.pool})")
        return placed


def _labelled(pod: Json) -> Json:
    return {**pod, "metadata": {**mapping(pod.get("metadata")), "labels": {SCENARIO: PLAIN}}}


def _occupants(provisioner: Provisioner, *, on_gpus: bool) -> list[Json]:
    """Pods that leave CPUs of their nodes free: one on spot, and one on a GPU node if there is an on-demand pool of them.

    `on_gpus`: the pools of the namespace's ladder have GPUs, and its pods run on no other spot pool.
    """
    gpus_on_spot = 0 if provisioner.has_plain_spot() and not on_gpus else 1
    spot = _occupant("occupant-spot", provisioner.on_spot(), gpus=gpus_on_spot)
    if not provisioner.has_gpus_on_demand():
        return [spot]
    return [spot, _occupant("occupant-gpu", provisioner.on_demand(), gpus=1)]


def _occupant(name: str, capacity: Json, *, gpus: int) -> Json:
    limits = {GPU_RESOURCE: str(gpus)} if gpus else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {SCENARIO: OCCUPANT}},
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


NODE_TYPE = "ray.io/node-type"


@dataclass(frozen=True, kw_only=True)
class RayJobPlacement:
    """Where the pods of a RayJob run, and its deployment status (`Running`)."""

    rayjob: str
    state: str
    head: PodPlacement
    workers: tuple[PodPlacement, ...]
    submitters: tuple[PodPlacement, ...]


def rayjob_placement(platform: Platform, rayjob: Json) -> RayJobPlacement:
    """Run the scenario with this RayJob. Raises KubeTimeout if it does not run."""
    name, workers = name_of(rayjob), worker_count(rayjob)
    with applied(platform, rayjob):
        platform.say(f"RayJob {name} applied: {workers} workers select spot, the head selects nothing")
        found = platform.client.wait_for(
            "ray.io/v1",
            "RayJob",
            name,
            namespace=platform.namespace,
            timeout_seconds=WAIT_SECONDS,
            condition=lambda obj: _state(obj) == "Running",
            what=f"RayJob {name} runs",
        )
        cluster = str(mapping((found or {}).get("status")).get("rayClusterName"))
        in_cluster = f"ray.io/cluster={cluster}"
        (head,) = platform.wait_for_pods(
            f"{in_cluster},{NODE_TYPE}=head",
            lambda pods: len(pods) == 1 and all(map(is_running, pods)),
            f"the head of {name} runs",
        )
        placed_workers = platform.wait_for_pods(
            f"{in_cluster},{NODE_TYPE}=worker",
            lambda pods: len(pods) == workers and all(map(is_running, pods)),
            f"the workers of {name} run",
        )
        submitters = placements(platform.pods(f"batch.kubernetes.io/job-name={name}"), platform.nodes())
        for each in (head, *placed_workers, *submitters):
            platform.say(f"{each.pod} runs on {each.capacity} {each.machine} (pool {each.pool})")
    return RayJobPlacement(
        rayjob=name, state=_state(found), head=head, workers=placed_workers, submitters=submitters
    )


def worker_count(rayjob: Json) -> int:
    """The number of workers a RayJob starts with."""
    cluster = mapping(mapping(rayjob.get("spec")).get("rayClusterSpec"))
    counts = [mapping(each).get("replicas", 1) for each in sequence(cluster.get("workerGroupSpecs"))]
    return sum(count for count in counts if isinstance(count, int))


def _state(rayjob: "Json | None") -> str:
    return str(mapping((rayjob or {}).get("status")).get("jobDeploymentStatus") or "")
