"""Objects with extreme values, which a real API server admits, do not stop the controller."""

from collections.abc import Generator
from pathlib import Path

import pytest

from pulumi_holdfast.ladder.json import Json
from tests.support.clusters.reconciler import NAMESPACE, LoopCluster, jobset, replica
from tests.support.json_objects import obj

pytestmark = pytest.mark.cluster

# Seconds; the API server's own sum of the time of day and the third one wraps.
GRACE_PERIODS = (9_000_000_000, 70_000_000_000, 2**62)


@pytest.fixture
def hostile(cluster: LoopCluster) -> Generator[LoopCluster]:
    """The cluster; pods with a finalizer are removed after the test."""
    yield cluster
    for grace in GRACE_PERIODS:
        free: Json = {"metadata": {"finalizers": None}}
        cluster.client.merge_patch("v1", "Pod", _pod(grace), free, namespace=NAMESPACE)
        cluster.client.delete("v1", "Pod", _pod(grace), namespace=NAMESPACE, grace_seconds=0)


def test_pods_deleted_with_extreme_grace_periods_stop_no_controller(
    hostile: LoopCluster, tmp_path: Path
) -> None:
    for grace in GRACE_PERIODS:
        hostile.apply(pod(grace))
        hostile.client.delete("v1", "Pod", _pod(grace), namespace=NAMESPACE)
    ends = {str(obj(each["metadata"]).get("deletionTimestamp")) for each in pods(hostile)}
    assert len(ends) == len(GRACE_PERIODS)
    with replica(hostile.kubeconfig, tmp_path) as controller:
        controller.wait_ready()
        hostile.apply(jobset("goes-on"))
        hostile.wait_on("goes-on", "spot-a")
        hostile.evict_one("goes-on")
        hostile.wait_on("goes-on", "spot-b")
        errors = 'holdfast_fallback_object_errors{kind="pods"}'
        assert controller.number(errors) == 0
        assert controller.terminate() == 0


def pods(cluster: LoopCluster) -> list[Json]:
    """The terminating pods."""
    found = cluster.client.list(
        "v1", "Pod", namespace=NAMESPACE, label_selector="batch.kubernetes.io/job-name"
    )
    return [each for each in found if str(obj(each["metadata"])["name"]).startswith("grace-")]


def pod(grace: int) -> Json:
    """A pod as any user of the namespace may create it, on a node that runs it."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": _pod(grace),
            "namespace": NAMESPACE,
            "labels": {"batch.kubernetes.io/job-name": "any", "ray.io/cluster": "any-bcdfg"},
            "annotations": {"holdfast.dev/terminates-in": "1h"},
            "finalizers": ["example.com/stays"],
        },
        "spec": {
            "nodeName": "spot-a-0",
            "terminationGracePeriodSeconds": grace,
            "containers": [{"name": "any", "image": "any"}],
        },
    }


def _pod(grace: int) -> str:
    return f"grace-{grace}"
