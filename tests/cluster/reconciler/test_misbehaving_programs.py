"""Real programs that misbehave, under the real JobSet and the controller: each job ends right, or the reason is said."""

from pathlib import Path

import pytest

from pulumi_holdfast.rehearsal.scenarios.training import TrainingPlace
from tests.support.clusters.misbehaving import (
    PROGRAMS,
    MisbehavingJobs,
    misbehaving_job,
    programs_of,
    undisturbed,
)
from tests.support.clusters.operators import STACK
from tests.support.clusters.reconciler import NAMESPACE, LoopCluster, policy, replica

pytestmark = pytest.mark.cluster


def test_jobs_whose_programs_misbehave_end_right_or_with_the_reason_that_a_person_would_give(
    cluster: LoopCluster, tmp_path: Path
) -> None:
    place = TrainingPlace.of(cluster.workspace, STACK)
    weights = undisturbed(tmp_path)
    cluster.apply(policy({"pool": "spot-a", "maxFailures": 1000}, {"pool": "on-demand"}))
    jobs = MisbehavingJobs(client=cluster.client, place=place, namespace=NAMESPACE, names=list(PROGRAMS))
    with replica(cluster.kubeconfig, tmp_path) as controller:
        controller.wait_ready()
        cluster.apply(*programs_of(place, NAMESPACE))
        cluster.apply(*(misbehaving_job(how, NAMESPACE, "spot-a") for how in PROGRAMS))
        jobs.run(seconds=180)
    assert not jobs.problems(weights)
