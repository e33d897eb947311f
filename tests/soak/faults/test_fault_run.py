"""Runs jobs on a ladder while the components around them fail; `make chaos` runs it longer."""

import os
from pathlib import Path
from typing import Final

import pytest

from pulumi_holdfast.rehearsal.control_plane.configuration import Layout
from tests.soak.faults.environment import FaultEnvironment
from tests.soak.faults.manifests import plain_jobs
from tests.soak.faults.plan import Side, draw_plan, draw_two_clusters
from tests.soak.faults.run import run_faults
from tests.soak.faults.two_clusters import two_environments
from tests.soak.seeds import SEED_VARIABLE, seed_of
from tests.support.clusters.fallback import ladder_cluster

pytestmark = [pytest.mark.soak, pytest.mark.cluster, pytest.mark.timeout(1800)]

JOBS: Final = 8


def test_jobs_end_up_where_their_ladder_says_whatever_fails_around_them(tmp_path: Path) -> None:
    plan = draw_plan(seed_of(None, os.environ.get(SEED_VARIABLE)), jobs=JOBS, rounds=1)
    told: list[str] = []
    with ladder_cluster(tmp_path) as cluster:
        layout = Layout.of(cluster.stack, cluster.workspace)
        environment = FaultEnvironment(client=cluster.client, layout=layout, folder=tmp_path)
        outcome = run_faults({Side.HOME: environment}, plan, say=told.append)
    assert not outcome.problems, f"seed {plan.seed}: {told}: {outcome}"
    assert sum(outcome.places.values()) == JOBS
    assert outcome.moves > 0, f"seed {plan.seed} had no job move"


def test_jobs_run_in_one_of_two_clusters_whatever_fails_in_both_and_between_them(tmp_path: Path) -> None:
    seed = seed_of(None, os.environ.get(SEED_VARIABLE))
    plan = draw_two_clusters(seed, jobs=plain_jobs(JOBS // 2), faults=JOBS)
    told: list[str] = []
    with two_environments(tmp_path) as environments:
        outcome = run_faults(environments, plan, say=told.append)
    assert not outcome.problems, f"seed {plan.seed}: {told}: {outcome}"
    assert sum(outcome.places.values()) == JOBS // 2
    assert outcome.transfers > 0, f"seed {plan.seed} had no job move to the other cluster"
