"""A job whose pods the real API server refuses is suspended at once, and runs once it accepts them."""

from pathlib import Path

import pytest

from holdfast.scheduling.json import Json
from tests.support.clusters.reconciler import NAMESPACE, LoopCluster, jobset, replica, wait_until
from tests.support.json_objects import obj, objects

pytestmark = pytest.mark.cluster


def with_pods(job: Json, **fields: str) -> Json:
    """A JobSet whose pods have these fields."""
    spec = obj(job["spec"])
    (first,) = objects(spec["replicatedJobs"])
    template = obj(first["template"])
    child = obj(template["spec"])
    pods = obj(child["template"])
    changed: Json = {**child, "template": {**pods, "spec": {**obj(pods["spec"]), **fields}}}
    return {**job, "spec": {**spec, "replicatedJobs": [{**first, "template": {**template, "spec": changed}}]}}


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
