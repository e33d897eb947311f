"""The manifests of a fault run: pools, the FallbackPolicy and jobs. Pure."""

from collections.abc import Mapping, Sequence
from typing import Final

from holdfast.scheduling.json import Json
from holdfast.scheduling.labels import CAPACITY_TYPE, LADDER, ON_DEMAND, POOL, SPOT
from tests.support.builders.gang_jobset import gang_jobset

NAMESPACE: Final = "faults"
POOLS: Final = ("faults-spot-a", "faults-spot-b", "faults-on-demand")
PODS: Final = 2
#: Longer than the faults of one round take, so that a round is one outage for each job.
OUTAGE_SECONDS: Final = 8
#: Karpenter batches pods for up to 10 s.
PROCUREMENT_SECONDS: Final = 40
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
        {
            **_tier(pool, SPOT),
            "maxFailures": count,
            "procurementTimeout": f"{PROCUREMENT_SECONDS}s",
        }
        for pool, count in zip(POOLS, failures, strict=False)
    ]
    return {
        "apiVersion": "holdfast.dev/v1alpha1",
        "kind": "FallbackPolicy",
        "metadata": {"name": LADDER, "namespace": NAMESPACE},
        "spec": {
            "tiers": [*spot, _tier(POOLS[-1], ON_DEMAND)],
            "outageWindow": f"{OUTAGE_SECONDS}s",
            "applicationFailures": -1,
            **settings,
        },
    }


def job(number: int, *, ends_in: str) -> Json:
    """Return a JobSet that follows the ladder; its pods take `ends_in` to terminate."""
    return gang_jobset(
        job_name(number),
        NAMESPACE,
        pods=PODS,
        pool=POOLS[0],
        cpu="1500m",
        failure_policy={"maxRestarts": 1000},
        pod={"tolerations": [{**_SPOT_TAINT, "operator": "Equal"}], "terminationGracePeriodSeconds": 60},
        annotations={"holdfast.dev/terminates-in": ends_in},
    )


def job_name(number: int) -> str:
    """Return the name of a job."""
    return f"job-{number:04}"


def _tier(pool: str, capacity: str) -> Json:
    return {
        "pool": pool,
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
