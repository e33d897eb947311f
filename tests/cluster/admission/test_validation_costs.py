"""A policy whose expressions cost too much judges nothing: the largest ladder and a large job stay below the limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.components.fallback_policy.schema import MOST_TIERS
from holdfast.components.fallback_policy.tier_schema import MOST_LABELS, MOST_TAINTS
from holdfast.scheduling.labels import CAPACITY_TYPE, FOLLOWS, SPOT, TRAINING, TRAINING_VALUE
from holdfast.scheduling.reachability.machine_capacity import MOST_CAPACITIES
from tests.support.builders.training_jobs import expression, jobset, ladder, required_affinity
from tests.support.clusters.admission import make_namespace, wait_until_in_force
from tests.support.clusters.job_admission import admitted_job, gang, is_judged, training

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json
    from tests.support.clusters.job_admission import Judging

pytestmark = pytest.mark.cluster

NAMESPACE = "largest"
TEMPLATES = 16


def tier(number: int, *, is_last: bool) -> Json:
    """A tier with as much about its pool as the schema takes."""
    rooms = [
        {"name": f"m-{size}", "cpu": f"{100 - size}", "memory": f"{100 + size}Gi", "gpus": 0, "pods": 110}
        for size in range(MOST_CAPACITIES)
    ]
    facts: Json = {
        "capacity": "on-demand" if is_last else "spot",
        "labels": {f"example.com/label-{place}": "there" for place in range(MOST_LABELS)},
        "taints": [
            {"key": f"example.com/taint-{place}", "value": "there", "effect": "NoSchedule"}
            for place in range(MOST_TAINTS)
        ],
        "machines": rooms,
        "maxNodes": 1000,
    }
    leaving = {} if is_last else {"maxFailures": 5, "procurementTimeout": "5m"}
    return {"pool": f"pool-{number}", "facts": facts, **leaving}


@pytest.fixture(scope="module")
def largest(judging: Judging) -> Judging:
    """The cluster with a ladder that could not be longer."""
    make_namespace(judging.client, NAMESPACE, {TRAINING: TRAINING_VALUE})
    tiers = [tier(number, is_last=number == MOST_TIERS - 1) for number in range(MOST_TIERS)]
    judging.client.apply(ladder(*tiers, namespace=NAMESPACE), field_manager="tests")
    wait_until_in_force(judging.client, lambda client: is_judged(client, NAMESPACE))
    return judging


def large_job(cpu: str) -> Json:
    """A job that looks at everything the ladder says, and has all its templates judged against it."""
    terms = [
        [
            expression(f"example.com/label-{place}", "In", "elsewhere", "there")
            for place in range(each, each + 3)
        ]
        for each in range(3)
    ]
    spec: Json = {
        "affinity": required_affinity(*terms),
        "tolerations": [
            {"key": f"example.com/taint-{place}", "operator": "Exists"} for place in range(MOST_TAINTS)
        ],
    }
    selector = {CAPACITY_TYPE: SPOT, **{f"example.com/label-{place}": "there" for place in range(4)}}
    jobs = [
        gang(training(selector, cpu=cpu, memory="1Gi", gpus="0", spec=spec), 2, f"worker-{number}")
        for number in range(TEMPLATES)
    ]
    return jobset(*jobs, namespace=NAMESPACE, labels={FOLLOWS: "true"})


def test_a_large_job_on_the_longest_ladder_is_judged(largest: Judging) -> None:
    assert admitted_job(largest.client, large_job("90")), "it has room on every tier"
    found = largest.refusal(large_job("101"))
    assert f"tier {MOST_TIERS} → pool pool-{MOST_TIERS - 1}: none of its machine types fits" in found, (
        "an expression that is broken off for its cost would let it in"
    )
