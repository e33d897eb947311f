"""The manifests of the moves benchmark: nodes, a ladder of two pools, and jobs. Pure."""

from typing import Final

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import LADDER, POOL
from pulumi_holdfast.ladder.ladder import UNLIMITED
from tests.support.builders.gang_jobset import gang_jobset

NAMESPACE: Final = "bench"
POOLS: Final = ("bench-first", "bench-second")
PODS: Final = 2
_NODES: Final = 4
_ROOM: Final = "1000"
# Shorter than any measured step, so that each eviction is an outage of its own.
_OUTAGE: Final = "1s"
# Longer than any run.
_WAIT: Final[Json] = {"procurementTimeout": "2h"}


def nodes() -> list[Json]:
    """Return the nodes of both pools: with capacity in place, no measurement includes the start of machines."""
    return [_node(f"{pool}-{number}", pool) for pool in POOLS for number in range(_NODES)]


def ladder(*failures: int) -> Json:
    """Return the policy, with the maxFailures of each tier."""
    first, *others = (
        {"pool": pool, "maxFailures": count} for pool, count in zip(POOLS, failures, strict=True)
    )
    return {
        "apiVersion": "holdfast.dev/v1alpha1",
        "kind": "FallbackPolicy",
        "metadata": {"name": LADDER, "namespace": NAMESPACE},
        "spec": {
            "tiers": [{**_WAIT, **first}, *others],
            "outageWindow": _OUTAGE,
            "applicationFailures": UNLIMITED,
        },
    }


def job(number: int) -> Json:
    """Return a JobSet of two pods that stop at once on SIGTERM."""
    ignoring: Json = {
        "name": "evicted",
        "action": "RestartJobSetAndIgnoreMaxRestarts",
        "onJobFailureReasons": ["PodFailurePolicy"],
    }
    return gang_jobset(
        job_name(number),
        NAMESPACE,
        pods=PODS,
        pool=POOLS[0],
        cpu="10m",
        failure_policy={"maxRestarts": 100, "rules": [ignoring]},
    )


def job_name(number: int) -> str:
    """Return the name of a job."""
    return f"job-{number:04}"


def _node(name: str, pool: str) -> Json:
    capacity: Json = {"cpu": _ROOM, "memory": "4Ti", "pods": _ROOM}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {"kwok.x-k8s.io/node": "fake"},
            "labels": {"kubernetes.io/hostname": name, POOL: pool},
        },
        "status": {"capacity": capacity, "allocatable": capacity},
    }
