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


def test_a_job_that_pod_security_forbids_and_one_without_pods_are_said_at_once(
    cluster: LoopCluster, tmp_path: Path
) -> None:
    level = "pod-security.kubernetes.io/enforce"

    def enforce(value: str | None) -> None:
        cluster.client.merge_patch("v1", "Namespace", NAMESPACE, {"metadata": {"labels": {level: value}}})

    with replica(cluster.kubeconfig, tmp_path) as controller:
        controller.wait_ready()
        enforce("baseline")
        try:
            metadata: Json = {"name": "empty", "namespace": NAMESPACE}
            cluster.apply(with_pods(jobset("forbidden"), hostNetwork=True))
            cluster.apply({"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metadata})
            wait_until(lambda: cluster.state("forbidden").get("phase") == "Refused", "it is judged")
            assert "violates PodSecurity" in str(cluster.state("forbidden")["refusal"])
            assert "waitingSince" not in cluster.state("forbidden")
            wait_until(lambda: "CannotFollow" in cluster.said("empty"), "an Event says why")
        finally:
            enforce(None)
        assert "NoCapacity" not in cluster.said("forbidden")
        assert controller.terminate() == 0
