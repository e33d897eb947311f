"""The API server and the checks in Python decide the same about a job, within the cost limit of CEL. HOLDFAST_SEED draws the same jobs again."""

import json
import os
from collections.abc import Callable
from itertools import count
from typing import Final

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from holdfast.components.admission.job_validation import CAN_FALL_BACK
from holdfast.scheduling.json import Json
from holdfast.scheduling.labels import (
    ARCH,
    CAPACITY_TYPE,
    FOLLOWS,
    HOSTNAME,
    INSTANCE_TYPE,
    OS,
    SPOT,
    TRAINING,
    TRAINING_VALUE,
    ZONE,
)
from holdfast.scheduling.ladder import MOST_TIERS, Ladder, Tier
from holdfast.scheduling.pool_and_job_fields import MOST_LABELS, MOST_TAINTS
from holdfast.scheduling.reachability.machine_capacity import MOST_CAPACITIES, MOST_LABEL_VALUES
from holdfast.scheduling.reachability.shape import MOST_DEVICES
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.errors import KubeError
from tests.soak.seeds import SEED_VARIABLE, seed_of
from tests.support.builders.training_jobs import POOLS, expression, jobset, ladder, required_affinity
from tests.support.clusters.admission import make_namespace, wait_until_enforced
from tests.support.clusters.job_admission import SMALL, Judging, admitted_job, gang, is_judged, told, training
from tests.support.expected_admission import facts_of, ladder_with, refusal_of, tiers_of
from tests.support.soak import sized
from tests.support.strategies.admitted_jobs import KnownLadder, known_ladders, walking_jobs

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]


SEED: Final = seed_of(None, os.environ.get(SEED_VARIABLE))
LADDERS: Final = sized(12, soak=96)
JOBS_OF_EACH: Final = 6
NAMESPACE: Final = "agreeing"
SIGN: Final = "agreed"

_numbers = count()


@pytest.fixture(scope="module")
def agreeing(judging: Judging) -> Judging:
    """The cluster with two more namespaces: for the ladders, and for the sign that one has been taken up."""
    print(f"{SEED_VARIABLE}={SEED}")
    for name in (NAMESPACE, SIGN):
        make_namespace(judging.client, name, {TRAINING: TRAINING_VALUE})
    return judging


def taken_up(client: KubeClient, known: KnownLadder) -> None:
    """Put a ladder up and wait until the API server judges by it.

    It hears of ladders in their order: so it is judged by this one once it is by another that was put up after it.
    """
    client.apply(ladder_with(known.pools, known.ladder, NAMESPACE), field_manager="tests", force=True)
    name = f"sign-{next(_numbers)}"
    sign = {name: facts_of(POOLS[0], SMALL)}
    client.apply(ladder_with(sign, Ladder(tiers=(Tier(pool=name),)), SIGN), field_manager="tests", force=True)
    hopeless = jobset(
        gang(training(cpu="9000", gpus="0")), namespace=SIGN, labels={"holdfast.dev/fallback": "true"}
    )
    wait_until_enforced(
        client, lambda found: f"pool {name}: none of its machine types" in (verdict(found, hopeless) or "")
    )


def verdict(client: KubeClient, job: Json) -> str | None:
    """In which words a job is refused, None where it is let in."""
    try:
        admitted_job(client, job)
    except KubeError as error:
        return told(str(error)) if "can-fall-back" in str(error) else str(error)
    return None


@seed(SEED)
@settings(
    max_examples=LADDERS,
    deadline=None,
    database=None,
    phases=(Phase.generate,),
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
    ],
)
@given(
    known=known_ladders(),
    jobs=st.lists(walking_jobs(NAMESPACE), min_size=JOBS_OF_EACH, max_size=JOBS_OF_EACH),
)
def test_both_reject_the_same_jobs_with_the_same_message(
    agreeing: Judging, known: KnownLadder, jobs: list[Json]
) -> None:
    taken_up(agreeing.client, known)
    for job in jobs:
        expected = refusal_of(job, tiers_of(known.ladder, known.pools))
        found = verdict(agreeing.client, job)
        assert found == expected, f"{SEED_VARIABLE}={SEED}\n{job}\n{known}"


LARGEST = "largest"
TEMPLATES = 16


def tier(number: int, *, is_last: bool) -> Json:
    """A tier with as much about its pool as the schema takes."""
    devices: Json = {f"example.com/device-{place}": 8 for place in range(MOST_DEVICES)}
    rooms = [
        {
            "name": f"m-{size}",
            "cpu": f"{100 - size}",
            "memory": f"{100 + size}Gi",
            "gpus": 0,
            "pods": 110,
            "devices": devices,
            "allDevices": True,
        }
        for size in range(MOST_CAPACITIES)
    ]
    facts: Json = {
        "capacity": "on-demand" if is_last else "spot",
        "labels": {f"example.com/label-{place}": "there" for place in range(MOST_LABELS)},
        "labelValues": {
            INSTANCE_TYPE: [f"m-{size}" for size in range(MOST_LABEL_VALUES)],
            ARCH: ["amd64", "arm64"],
            OS: ["linux"],
            ZONE: [f"zone-{place}" for place in range(MOST_LABEL_VALUES)],
        },
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
    make_namespace(judging.client, LARGEST, {TRAINING: TRAINING_VALUE})
    tiers = [tier(number, is_last=number == MOST_TIERS - 1) for number in range(MOST_TIERS)]
    judging.client.apply(ladder(*tiers, namespace=LARGEST), field_manager="tests")
    wait_until_enforced(judging.client, lambda client: is_judged(client, LARGEST))
    return judging


def large_job(cpu: str, templates: int = TEMPLATES, namespace: str = LARGEST) -> Json:
    """A job that looks at everything the ladder says, and has all its templates judged against it."""
    devices: Json = {f"example.com/device-{place}": "1" for place in range(4)}
    terms = [
        [
            expression(f"example.com/label-{place}", "In", "elsewhere", "there")
            for place in range(each, each + 3)
        ]
        for each in range(3)
    ]
    # The last label of each is another one, so that all of them are compared.
    labels: Json = {f"example.com/label-{place}": "there" for place in range(4)}
    apart: Json = {
        "topologyKey": HOSTNAME,
        "labelSelector": {"matchLabels": {**labels, "example.com/other": "elsewhere"}},
    }
    anti_affinity: Json = {"requiredDuringSchedulingIgnoredDuringExecution": [apart] * 4}
    spec: Json = {
        "affinity": {**required_affinity(*terms), "podAntiAffinity": anti_affinity},
        "tolerations": [
            {"key": f"example.com/taint-{place}", "operator": "Exists"} for place in range(MOST_TAINTS)
        ],
    }
    last = f"m-{MOST_LABEL_VALUES - 1}"
    for term in terms:
        term += [expression(INSTANCE_TYPE, "NotIn", "m-0"), expression(INSTANCE_TYPE, "In", last)]
        term += [expression(ZONE, "In", "zone-0", f"zone-{MOST_LABEL_VALUES - 1}")]
    selector = {
        CAPACITY_TYPE: SPOT,
        INSTANCE_TYPE: last,
        **{f"example.com/label-{place}": "there" for place in range(4)},
    }
    template = training(selector, cpu=cpu, memory="1Gi", gpus="0", spec=spec, devices=devices)
    labeled: Json = {**template, "metadata": {"labels": labels}}
    jobs = [gang(labeled, 2, f"worker-{number}") for number in range(templates)]
    return jobset(*jobs, namespace=namespace, labels={FOLLOWS: "true"})


def test_a_large_job_on_the_longest_ladder_is_validated(largest: Judging) -> None:
    assert admitted_job(largest.client, large_job("90")), "it has room on every tier"
    found = largest.refusal(large_job("101"))
    assert f"tier {MOST_TIERS} → pool pool-{MOST_TIERS - 1}: none of its machine types fits" in found, (
        "an expression that is broken off for its cost would let it in"
    )


METRIC = "apiserver_validating_admission_policy_check_total"


def unchecked(judging: Judging) -> float:
    """How many JobSets the API server has admitted although their check failed, as it counts them itself."""
    metrics = judging.kubectl("get", "--raw", "/metrics").stdout.splitlines()
    counted = {
        "policy": f"training-jobsets{CAN_FALL_BACK}",
        "policy_binding": f"training-jobsets{CAN_FALL_BACK}",
        "enforcement_action": "allow",
    }
    return sum(
        sample.value
        for family in text_string_to_metric_families("\n".join(each for each in metrics if METRIC in each))
        for sample in family.samples
        if sample.name == METRIC and counted.items() <= sample.labels.items()
    )


def beyond_cost() -> Json:
    """A job of which the check alone costs more than the API server grants."""
    return large_job("90", templates=128)


def beyond_quantities() -> Json:
    """A job with an amount that no quantity holds."""
    devices: Json = {"example.com/device-0": "1e99999999999999999999"}
    return jobset(gang(training(gpus="0", devices=devices)), namespace=LARGEST, labels={FOLLOWS: "true"})


@pytest.mark.parametrize("job", [beyond_cost, beyond_quantities])
def test_a_job_whose_check_fails_is_created_with_a_warning_and_counted(
    largest: Judging, job: Callable[[], Json]
) -> None:
    before = unchecked(largest)
    found = largest.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(job()))
    assert found.returncode == 0, f"a job that cannot be checked is not rejected: {found.stderr}"
    assert "Warning: Validation failed for ValidatingAdmissionPolicy 'training-jobsets-not-checked'" in (
        found.stderr
    ), f"its author reads that nothing was proved: {found.stderr}"
    assert unchecked(largest) > before, "and the alert HoldfastJobsNotChecked sees it"
