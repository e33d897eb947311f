"""The manifests of a fault run: pools, the FallbackPolicy and jobs. Pure."""

import itertools
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.ladder.labels import (
    CAPACITY_TYPE,
    FINISH_BY,
    LADDER,
    ON_DEMAND,
    POOL,
    SPOT,
    WORK,
    CapacityType,
)
from tests.soak.faults import deadlines
from tests.soak.faults.ledgers import TierFacts
from tests.support.builders.gang_jobset import gang_jobset
from tests.support.builders.gang_rayjob import gang_rayjob

NAMESPACE: Final = "faults"
#: Of the names of pools: the cluster has others.
PREFIX: Final = "faults-"
POOLS: Final = tuple(PREFIX + pool for pool in ("spot-a", "spot-b", "on-demand"))
PODS: Final = 2
#: Longer than the faults of one round take, so that a round is one outage for each job.
OUTAGE_SECONDS: Final = 8
#: Karpenter batches pods for up to 10 s.
PROCUREMENT_SECONDS: Final = 40
TIERS: Final = {
    POOLS[0]: TierFacts(capacity=CapacityType.SPOT, price=0.3),
    POOLS[1]: TierFacts(capacity=CapacityType.SPOT, price=0.4),
    POOLS[2]: TierFacts(capacity=CapacityType.ON_DEMAND, price=1.0),
}
# Of 20 jobs, 5 are RayJobs and 4 have a deadline, one of them a RayJob.
_RAY_EVERY: Final = 4
_DEADLINE_EVERY: Final = 5
_MACHINES: Final = ("m7i.4xlarge",)
_CPUS: Final = 16
_MEMORY: Final = "65536Mi"
_MAX_NODES: Final = 100
_SPOT_TAINT: Final[Json] = {"key": CAPACITY_TYPE, "value": SPOT, "effect": "NoSchedule"}


def pool_objects() -> list[Json]:
    """Return the node class and the NodePool of each tier."""
    return [
        each for pool in POOLS for each in (_node_class(pool), _node_pool(pool, is_spot=pool != POOLS[-1]))
    ]


def limits(*, has_capacity: bool) -> Json:
    """Return the limits of a NodePool: all its nodes, or none."""
    return {"nodes": str(_MAX_NODES if has_capacity else 0)}


def ladder(failures: Sequence[int], settings: Mapping[str, str]) -> Json:
    """Return the policy with `failures` as the maxFailures of the spot tiers, and other fields of its `spec` in `settings`.

    No job is ever given up, so that a job that is suspended at the end is always an error.
    """
    spot = [
        {**_tier(pool, SPOT), "maxFailures": count, "procurementTimeout": f"{PROCUREMENT_SECONDS}s"}
        for pool, count in zip(POOLS, failures, strict=False)
    ]
    return _policy([*spot, _tier(POOLS[-1], ON_DEMAND)], settings)


def two_ladders(
    cluster: str, failures: tuple[int, int, int], settings: Mapping[str, str]
) -> tuple[Json, Json]:
    """Return the policy at home, whose second tier is in `cluster`, and the policy there; `settings` are of that at home."""
    first, elsewhere, there = failures
    spot: Json = {"procurementTimeout": f"{PROCUREMENT_SECONDS}s"}
    # It contains the time in which the copy moves from one tier there to another.
    away: Json = {"cluster": cluster, "pool": POOLS[1], "procurementTimeout": f"{3 * PROCUREMENT_SECONDS}s"}
    last = _tier(POOLS[-1], ON_DEMAND)
    return (
        _policy(
            [
                {**_tier(POOLS[0], SPOT), **spot, "maxFailures": first},
                {**away, "maxFailures": elsewhere},
                last,
            ],
            settings,
        ),
        _policy([{**_tier(POOLS[1], SPOT), **spot, "maxFailures": there}, last], {}),
    )


def _policy(tiers: Sequence[Json], settings: Mapping[str, str]) -> Json:
    return {
        "apiVersion": "holdfast.dev/v1alpha1",
        "kind": "FallbackPolicy",
        "metadata": {"name": LADDER, "namespace": NAMESPACE},
        "spec": {
            "tiers": list(tiers),
            "outageWindow": f"{OUTAGE_SECONDS}s",
            "applicationFailures": -1,
            "restartCost": f"{deadlines.RESTART_COST.total_seconds():.0f}s",
            **settings,
        },
    }


def is_rayjob(number: int) -> bool:
    """Whether a job is a RayJob; the others are JobSets."""
    return number % _RAY_EVERY == _RAY_EVERY - 1


def has_deadline(number: int) -> bool:
    """Whether a job has a deadline."""
    return number % _DEADLINE_EVERY == _DEADLINE_EVERY - 1


def plain_jobs(count: int) -> Sequence[int]:
    """Return the numbers of the first jobs without a deadline."""
    return list(itertools.islice(itertools.filterfalse(has_deadline, itertools.count()), count))


def job(number: int, *, ends_in: str, finish_by: datetime) -> Json:
    """Return a job that follows the ladder; its pods take `ends_in` to terminate. Some jobs have the deadline."""
    pod: Json = {"tolerations": [{**_SPOT_TAINT, "operator": "Equal"}], "terminationGracePeriodSeconds": 60}
    annotations: Json = {"holdfast.dev/terminates-in": ends_in}
    made = (
        gang_rayjob(
            job_name(number),
            NAMESPACE,
            pods=PODS,
            pool=POOLS[0],
            cpu=_CPU,
            pod=pod,
            worker_annotations=annotations,
        )
        if is_rayjob(number)
        else gang_jobset(
            job_name(number),
            NAMESPACE,
            pods=PODS,
            pool=POOLS[0],
            cpu=_CPU,
            failure_policy={"maxRestarts": 1000},
            pod=pod,
            annotations=annotations,
        )
    )
    if not has_deadline(number):
        return made
    deadline: Json = {
        FINISH_BY: finish_by.isoformat(timespec="seconds"),
        WORK: f"{deadlines.WORK.total_seconds():.0f}s",
    }
    return {**made, "metadata": {**mapping(made["metadata"]), "annotations": deadline}}


def job_name(number: int) -> str:
    """Return the name of a job."""
    return f"{'ray' if is_rayjob(number) else 'job'}-{number:04}"


_CPU: Final = "1500m"


def _tier(pool: str, capacity: str) -> Json:
    return {
        "pool": pool,
        "price": TIERS[pool].price,
        "facts": {
            "capacity": capacity,
            "labels": {POOL: pool},
            "taints": [_SPOT_TAINT] if capacity == SPOT else [],
            "machine": {"cpu": str(_CPUS), "memory": _MEMORY, "gpus": 0},
            "maxNodes": _MAX_NODES,
        },
    }


def _node_class(pool: str) -> Json:
    return {
        "apiVersion": "karpenter.kwok.sh/v1alpha1",
        "kind": "KWOKNodeClass",
        "metadata": {"name": pool},
        "spec": {},
    }


def _node_pool(pool: str, *, is_spot: bool) -> Json:
    wanted = {
        CAPACITY_TYPE: [SPOT if is_spot else ON_DEMAND],
        "node.kubernetes.io/instance-type": list(_MACHINES),
        "kubernetes.io/arch": ["amd64"],
        "kubernetes.io/os": ["linux"],
    }
    reference: Json = {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": pool}
    spec: Json = {
        "expireAfter": "Never",
        "nodeClassRef": reference,
        "requirements": [{"key": key, "operator": "In", "values": values} for key, values in wanted.items()],
        "taints": [_SPOT_TAINT] if is_spot else [],
        "terminationGracePeriod": "10m",
    }
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": pool},
        "spec": {
            "disruption": {"consolidateAfter": "1m", "consolidationPolicy": "WhenEmpty"},
            "limits": limits(has_capacity=True),
            "template": {"metadata": {"labels": {POOL: pool}}, "spec": spec},
        },
    }
