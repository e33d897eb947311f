"""A hostile tenant of one namespace, and the judge of what it does to a running controller."""

from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import psutil

from pulumi_holdfast.controller.kube.client import ApiError, Unreachable
from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.ladder.labels import POOL, PROGRESS
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.support.background import repeating
from tests.support.builders.gang_jobset import gang_jobset
from tests.support.builders.gang_rayjob import gang_rayjob
from tests.support.clusters.reconciler import LoopCluster, Replica, namespace, policy
from tests.support.json_objects import obj

HOSTILE: Final = "hostile"
#: The job of the tenant of which hostile pods claim to be.
VICTIM: Final = "victim"
#: What a kubelet waits for the answer to a probe that names no time. It is counted in the controller's own CPU time, which is
#: that of a clock where no other process takes the core.
PROBE_SECONDS: Final = 1.0
_NO_ANSWER_SECONDS: Final = 60.0
MOST_MIB: Final = 512
_PROBE_INTERVAL: Final = 0.2
_AT_ONCE: Final = 2
_TIMES: Final = 20


def _containers(number: int) -> list[JsonValue]:
    requests: Json = {"requests": {"cpu": "1m", "memory": "1Mi"}}
    return [{"name": f"c{each:04}", "image": "x" * 60, "resources": requests} for each in range(number)]


def _sidecars(number: int) -> list[JsonValue]:
    """Each with a resource of its own: what is begun beside it grows with each, so that a walk over that is quadratic."""
    return [
        {
            "name": f"i{each:04}",
            "image": "x",
            "restartPolicy": "Always",
            "resources": {"requests": {f"e.x/{each}": "1"}},
        }
        for each in range(number)
    ]


def large_jobset(number: int, *, pool: str = "spot-a") -> Json:
    """A JobSet of 6,000 init containers; with what the API server adds it is as large as etcd takes."""
    pod: Json = {"initContainers": _sidecars(6000)}
    job = gang_jobset(
        f"large-{number}",
        HOSTILE,
        pods=2,
        pool="spot-a",
        cpu="1",
        failure_policy={"maxRestarts": 20},
        pod=pod,
    )
    return {**job, "spec": {**obj(job["spec"]), "suspend": True}}


def large_rayjob(number: int) -> Json:
    """A RayJob of as many init containers, in two templates."""
    pod: Json = {"initContainers": _sidecars(3000)}
    suspended: Json = {"suspend": True}
    return gang_rayjob(f"large-{number}", HOSTILE, pods=2, pool="spot-a", cpu="1", pod=pod, spec=suspended)


def pod_of_victim(number: int, *, containers: int = 1, progress: str = "1") -> Json:
    """A pod that claims to be of the tenant's job, by every label; no scheduler places it."""
    labels: Json = {
        "jobset.sigs.k8s.io/jobset-name": VICTIM,
        "jobset.sigs.k8s.io/replicatedjob-name": "worker",
        "batch.kubernetes.io/job-name": f"{VICTIM}-worker-0",
        "ray.io/cluster": VICTIM,
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "of-victim-",
            "namespace": HOSTILE,
            "labels": labels,
            "annotations": {PROGRESS: progress, "example.com/number": str(number)},
        },
        "spec": {
            "schedulingGates": [{"name": "example.com/never"}],
            "nodeSelector": {POOL: "spot-a"},
            "containers": _containers(containers),
        },
    }


def large_pod(number: int) -> Json:
    """A pod of a thousand containers and an annotation as long as they may be."""
    return pod_of_victim(number, containers=1000, progress="9" * 200_000)


def event(number: int) -> Json:
    """An Event as a tenant may write it, about the job of another namespace."""
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"event-{number}", "namespace": HOSTILE},
        "involvedObject": {"kind": "Pod", "namespace": HOSTILE, "name": VICTIM},
        "reason": "Hostile",
        "message": "x" * 1024,
    }


def admit_hostile(cluster: LoopCluster) -> None:
    """Create the namespace of the tenant, its ladder and its job."""
    cluster.apply(namespace(HOSTILE, training=True), policy(within=HOSTILE))
    cluster.apply(
        gang_jobset(VICTIM, HOSTILE, pods=1, pool="spot-a", cpu="1", failure_policy={"maxRestarts": 20})
    )


def throw(client: KubeClient, manifests: Sequence[Json]) -> int:
    """Create objects, several at once, and return how many the API server has admitted.

    One that it could not judge in time is sent again: JobSet's webhook has 10 s for an object that takes a slow machine longer.
    """

    def is_admitted(manifest: Json) -> bool:
        for _ in range(_TIMES):
            try:
                client.create(manifest)
            except Unreachable:
                continue
            except ApiError as error:
                if not error.is_overload:
                    return error.is_conflict
            else:
                return True
        return False

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return sum(pool.map(is_admitted, manifests))


@dataclass
class Findings:
    """The CPU seconds of the slowest answer to a probe, and the most memory in MiB."""

    slowest_probe: float = 0.0
    most_mib: float = 0.0


@contextmanager
def judged(controller: Replica) -> Generator[Findings]:
    """Probe a controller as a kubelet does for the length of the block; yields what is found so far.

    At the end: each probe was answered in time, and the memory is bounded.
    """
    process = psutil.Process(controller.process.pid)
    found = Findings()

    def probe() -> None:
        began = sum(process.cpu_times()[:2])
        answer = controller.answers("/healthz", seconds=_NO_ANSWER_SECONDS)
        took = sum(process.cpu_times()[:2]) - began if answer == "ok" else _NO_ANSWER_SECONDS
        found.slowest_probe = max(found.slowest_probe, took)
        found.most_mib = max(found.most_mib, process.memory_info().rss / 2**20)

    with repeating(probe, _PROBE_INTERVAL):
        yield found
    assert found.slowest_probe < PROBE_SECONDS
    assert found.most_mib < MOST_MIB
