"""What the proof says of a job on a tier is what the real scheduler and the real Karpenter do.

Of each job the whole gang is made on every tier of its ladder, all at once in pools that have nothing to do with each
other: pools as the components write them, with what a hand may have written over them, read by what the policy pack
reads them with. Machines are simulated; who decides about them is not. The cluster autoscalers of GKE and AKS cannot be
run here: of their pools the same links are judged, with what their documentation says of taints and of what is reserved.

`HOLDFAST_SEED` draws the same jobs again; `make soak` draws more of them.
"""

import os
from collections.abc import Sequence
from typing import Final

import pytest

from pulumi_holdfast.kubernetes.admission.rules import TolerationRule
from pulumi_holdfast.ladder.labels import TRAINING as TRAINING_LABEL
from pulumi_holdfast.ladder.labels import TRAINING_VALUE, CapacityType
from pulumi_holdfast.ladder.reachability.walk import Outcome
from pulumi_holdfast.ladder.taints import SPOT
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.soak.seeds import SEED_VARIABLE, seed_of
from tests.support.builders.reachability_edges import OPEN, edges
from tests.support.builders.tried_jobs import ELSEWHERE, TRAINING, TriedJob, rules_of, takes
from tests.support.clusters.admission import (
    admission_objects,
    make_namespace,
    tolerations_of,
    wait_until_enforced,
)
from tests.support.clusters.operators import OperatorCluster
from tests.support.clusters.reachability import Trial, try_out
from tests.support.fakes.job_market import MarketTier, end_of
from tests.support.soak import sized
from tests.support.strategies.reachability_jobs import drawn_jobs
from tests.support.strategies.reachability_pools import open_jobs

pytestmark = [pytest.mark.cluster, pytest.mark.seeded, pytest.mark.timeout(900)]

DRAWN: Final = sized(4, soak=8)

#: Jobs on NodePools with open requirements, two tiers or three each.
DRAWN_OPEN: Final = sized(6, soak=12)


@pytest.fixture(scope="module")
def seed() -> int:
    found = seed_of(None, os.environ.get(SEED_VARIABLE))
    print(f"{SEED_VARIABLE}={found}")
    return found


@pytest.fixture(scope="module")
def jobs(seed: int) -> tuple[TriedJob, ...]:
    return (*edges(), *drawn_jobs(seed, DRAWN), *open_jobs(seed, DRAWN_OPEN))


@pytest.fixture(scope="module")
def trials(karpenter: OperatorCluster, jobs: tuple[TriedJob, ...]) -> tuple[Trial, ...]:
    """What came of all jobs on all tiers."""
    make_namespace(karpenter.client, TRAINING, {TRAINING_LABEL: TRAINING_VALUE})
    make_namespace(karpenter.client, ELSEWHERE, {})
    karpenter.apply(*admission_objects(rules_of(jobs)))
    spot = next(job for job in jobs if job.name == "spot")
    asks = {**spot.pod(spot.tiers[0], "asks"), "metadata": {"name": "asks", "namespace": TRAINING}}

    def tolerates_spot(client: KubeClient) -> bool:
        admitted = client.apply(asks, field_manager="tests", dry_run=True)
        return SPOT.as_toleration() in tolerations_of(admitted)

    wait_until_enforced(karpenter.client, tolerates_spot)
    return try_out(karpenter.client, jobs)


def test_a_tier_is_reachable_exactly_if_the_whole_gang_gets_nodes(
    seed: int, jobs: tuple[TriedJob, ...], trials: tuple[Trial, ...]
) -> None:
    rules = rules_of(jobs)
    wrong = [described(trial, rules) for trial in trials if told(trial, rules) not in {None, trial.is_whole}]
    assert not wrong, f"seed {seed}: the proof is wrong of {len(wrong)} tiers:\n" + "\n\n".join(wrong)
    left_open = {trial.tier.name for trial in trials if told(trial, rules) is None and not trial.tier.is_open}
    assert left_open == OPEN, f"seed {seed}: it has a verdict on every other tier"


def test_the_end_of_a_ladder_follows_from_its_tiers(
    seed: int, jobs: tuple[TriedJob, ...], trials: tuple[Trial, ...]
) -> None:
    rules = rules_of(jobs)
    for job in (each for each in jobs if not each.tiers[0].is_open):
        tiers = [played_tier(trial) for trial in trials if trial.job is job]
        outcome = job.walk(rules).outcome
        assert outcome in {end_of(tiers), Outcome.UNDETERMINED}, f"seed {seed}: {job} with {tiers}"
        assert outcome is not Outcome.UNDETERMINED or job.tiers[-1].name in OPEN, (
            f"seed {seed}: of {job} all is known"
        )


def test_karpenter_reports_every_gang_without_capacity(seed: int, trials: Sequence[Trial]) -> None:
    silent = [
        trial.tier.name
        for trial in trials
        if not trial.tier.is_open and not trial.is_whole and not trial.said
    ]
    assert not silent, f"seed {seed}: nothing is taken for a refusal that is none"


def played_tier(trial: Trial) -> MarketTier:
    """The tier as it turned out."""
    return MarketTier(
        takes_the_job=trial.is_whole,
        is_on_demand=trial.tier.capacity is CapacityType.ON_DEMAND,
        max_failures=trial.tier.max_failures,
        has_timeout=trial.tier.has_timeout,
    )


def told(trial: Trial, rules: Sequence[TolerationRule]) -> bool | None:
    return takes(trial.job.results(trial.tier, rules))


def described(trial: Trial, rules: Sequence[TolerationRule]) -> str:
    return (
        f"{trial.tier.name}: told {told(trial, rules)} for {trial.job.results(trial.tier, rules)}, and {trial.bound} of "
        f"{trial.job.shape.pods} pods came\n{trial.job.shape}\nadmitted: {trial.job.is_admitted}\n{trial.tier}\n"
        f"{trial.job.facts(trial.tier, rules)}\nKarpenter: {trial.said}"
    )
