"""A RayJob is accepted; its workers are on spot, and its head on the default pool."""

from dataclasses import dataclass

from holdfast.rehearsal.scenarios.placement import Placement, is_running, name_of, placements
from holdfast.rehearsal.scenarios.platform import Platform, played
from holdfast.rehearsal.scenarios.waiting import SECONDS
from holdfast.scheduling.json import Json
from holdfast.simulator.kubernetes_client.summary import mapping, sequence

NODE_TYPE = "ray.io/node-type"


@dataclass(frozen=True, kw_only=True)
class RayJobPlacement:
    """Where the pods of a RayJob are, and what KubeRay says of the job (`Running`)."""

    rayjob: str
    state: str
    head: Placement
    workers: tuple[Placement, ...]
    submitters: tuple[Placement, ...]


def rayjob_placement(platform: Platform, rayjob: Json) -> RayJobPlacement:
    """Play the scene with this RayJob. Raises KubeTimeout where it does not run."""
    name, workers = name_of(rayjob), worker_count(rayjob)
    with played(platform, rayjob):
        platform.say(f"RayJob {name} applied: {workers} workers select spot, the head selects nothing")
        found = platform.client.wait_for(
            "ray.io/v1",
            "RayJob",
            name,
            namespace=platform.namespace,
            timeout_seconds=SECONDS,
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
    """How many workers a RayJob starts with."""
    cluster = mapping(mapping(rayjob.get("spec")).get("rayClusterSpec"))
    counts = [mapping(each).get("replicas", 1) for each in sequence(cluster.get("workerGroupSpecs"))]
    return sum(count for count in counts if isinstance(count, int))


def _state(rayjob: "Json | None") -> str:
    return str(mapping((rayjob or {}).get("status")).get("jobDeploymentStatus") or "")
