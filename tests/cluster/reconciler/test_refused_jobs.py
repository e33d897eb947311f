"""A job whose pods the real API server refuses is suspended at once, and runs once it accepts them."""

from pathlib import Path

import pytest

from pulumi_holdfast.ladder.json import Json
from tests.support.clusters.reconciler import NAMESPACE, LoopCluster, jobset, replica, wait_until, with_pods
from tests.support.json_objects import obj

pytestmark = pytest.mark.cluster


def test_a_job_that_cannot_be_created_is_suspended_and_runs_once_it_can(
    cluster: LoopCluster, tmp_path: Path
) -> None:
    with replica(cluster.kubeconfig, tmp_path) as controller:
        controller.wait_ready()
        cluster.apply(with_pods(jobset("refused"), serviceAccountName="later"))
        wait_until(lambda: cluster.state("refused").get("phase") == "Refused", "it is judged", seconds=60)
        assert 'serviceaccount "later" not found' in str(cluster.state("refused")["refusal"])
        assert obj(cluster.job("refused")["spec"])["suspend"] is True
        wait_until(lambda: "Refused" in cluster.said("refused"), "an Event says why")
        assert "NoCapacity" not in cluster.said("refused")
        account: Json = {"name": "later", "namespace": NAMESPACE}
        cluster.apply({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
        cluster.wait_on("refused", "spot-a")
        assert controller.terminate() == 0
