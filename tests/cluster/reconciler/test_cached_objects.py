"""The trimmed objects in the caches hold every field that the adapters read."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from pulumi_holdfast.controller.jobs.cached_objects import cached_job, trim_child
from pulumi_holdfast.controller.jobs.kinds import KINDS
from pulumi_holdfast.controller.jobs.pod_history import PodHistory
from pulumi_holdfast.controller.jobs.pods_and_nodes import Snapshot
from pulumi_holdfast.controller.jobs.trimmed_objects import trim_node, trim_pod
from pulumi_holdfast.controller.kube.client import JOB
from tests.support.clusters.reconciler import NAMESPACE, LoopCluster, jobset, wait_until
from tests.support.json_objects import obj

pytestmark = pytest.mark.cluster


def whole(cluster: LoopCluster, name: str) -> Snapshot:
    """A JobSet and what is around it, as the API server has it."""
    labels = f"jobset.sigs.k8s.io/jobset-name={name}"
    nodes = {str(obj(node["metadata"])["name"]): node for node in cluster.client.list("v1", "Node")}
    return Snapshot(
        job=cluster.job(name),
        now=datetime.now(UTC),
        pods=tuple(cluster.client.list("v1", "Pod", namespace=NAMESPACE, label_selector=labels)),
        children=tuple(cluster.client.list("batch/v1", "Job", namespace=NAMESPACE, label_selector=labels)),
        nodes=nodes,
    )


def kept(seen: Snapshot) -> Snapshot:
    """The same as the controller keeps it."""
    children = (trim_child(JOB)(child) for child in seen.children)
    return replace(
        seen,
        job=cached_job(seen.job).read(),
        pods=tuple(trim_pod(pod) for pod in seen.pods),
        children=tuple(child for child in children if child is not None),
        nodes={name: trim_node(node) for name, node in seen.nodes.items()},
    )


def test_a_trimmed_job_is_observed_like_the_whole_job(cluster: LoopCluster) -> None:
    cluster.apply(jobset("kept"))
    wait_until(lambda: cluster.runs_on("kept", "spot-a"), "it runs")
    running = whole(cluster, "kept")
    cluster.client.merge_patch(
        "jobset.x-k8s.io/v1alpha2", "JobSet", "kept", {"spec": {"suspend": True}}, namespace=NAMESPACE
    )
    wait_until(lambda: not cluster.pods("kept"), "it is suspended")
    for seen in (running, whole(cluster, "kept")):
        assert (seen.children, seen.nodes) != ((), {})
        by_whole, _ = KINDS["JobSet"].observe(seen, PodHistory())
        by_kept, _ = KINDS["JobSet"].observe(kept(seen), PodHistory())
        assert by_kept == by_whole, "an adapter that reads another field must have it kept"
