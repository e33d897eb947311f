"""JobSet and KubeRay run with two replicas, as on a cloud: one leads, and both serve."""

import pytest

from pulumi_holdfast.ladder.json import Json, mapping
from tests.support.clusters.operators import OWN_CHARTS, SYSTEM_TOLERATIONS, OperatorCluster, is_ready

pytestmark = pytest.mark.cluster


def jobset() -> Json:
    """A JobSet of one Job of one pod."""
    pod: Json = {"spec": {"restartPolicy": "Never", "containers": [{"name": "train", "image": "train"}]}}
    job: Json = {"name": "workers", "replicas": 1, "template": {"spec": {"template": pod}}}
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "run", "namespace": "default"},
        "spec": {"replicatedJobs": [job]},
    }


def test_jobset_runs_twice_and_its_webhook_answers(charts: OperatorCluster) -> None:
    twice: Json = {
        "controller": {"replicas": 2, "leaderElection": {"enable": True}, "tolerations": SYSTEM_TOLERATIONS}
    }
    charts.install("jobset-crds", OWN_CHARTS / "jobset-crds", "jobset-system")
    charts.install("jobset", charts.workspace.charts_dir / "jobset", "jobset-system", twice)
    pods = charts.pods("jobset-system")
    assert [is_ready(pod) for pod in pods] == [True, True]
    charts.apply(jobset())
    made = charts.client.wait_for(
        "batch/v1",
        "Job",
        "run-workers-0",
        namespace="default",
        timeout_seconds=180,
        condition=lambda job: job is not None,
        what="the leader makes the Job",
    )
    assert mapping((made or {}).get("metadata")).get("name")
    assert charts.leader("jobset-system", "6d4f6a47.jobset.x-k8s.io")


def test_kuberay_runs_twice_and_one_leads(charts: OperatorCluster) -> None:
    twice: Json = {"replicas": 2, "leaderElectionEnabled": True, "tolerations": SYSTEM_TOLERATIONS}
    charts.install("kuberay-crds", OWN_CHARTS / "kuberay-crds", "kuberay-system")
    charts.install(
        "kuberay-operator", charts.workspace.charts_dir / "kuberay-operator", "kuberay-system", twice
    )
    pods = charts.pods("kuberay-system")
    assert [is_ready(pod) for pod in pods] == [True, True]
    assert charts.leader("kuberay-system", "ray-operator-leader")
