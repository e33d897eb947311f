"""The controller as a process walks JobSets down their ladder on a real API server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.clusters.reconciler import (
    NAMESPACE,
    jobset,
    namespace,
    policy,
    replica,
    wait_until,
    watched_gangs,
)
from tests.support.json_objects import obj, objects

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.scheduling.json import Json
    from tests.support.clusters.reconciler import LoopCluster

pytestmark = pytest.mark.cluster


def test_a_job_walks_its_ladder_and_everything_says_so(cluster: LoopCluster, tmp_path: Path) -> None:
    with (
        replica(cluster.kubeconfig, tmp_path) as controller,
        watched_gangs(cluster.client, NAMESPACE) as gangs,
    ):
        controller.wait_ready()
        cluster.apply(jobset("walks"))
        for pool in ("spot-a", "spot-b"):
            cluster.wait_on("walks", pool)
            cluster.evict_one("walks")
        cluster.wait_on("walks", "on-demand")
        wait_until(lambda: cluster.said("walks").count("Placed") == 3, "each arrival is an Event")
        wait_until(lambda: _status(cluster).get("summary") == "1 running", "the policy sums it up")
        tiers = objects(_status(cluster).get("tiers"))
        assert [tier["jobs"] for tier in tiers] == [0, 0, 1], "the job is on the last tier"
        moves = 'holdfast_fallback_moves_total{namespace="vision",pool="on-demand",purpose="Failover"}'
        assert controller.number(moves) == 1, "each move is counted by where it led"
        outages = 'holdfast_fallback_outages_total{cause="eviction",namespace="vision",pool="spot-b"}'
        assert controller.number(outages) == 1, "and why"
        assert controller.terminate() == 0, "a controller that is told to end does"
    assert not gangs.overlaps, "the gangs of two tiers would write one checkpoint"
    reasons = cluster.said("walks")
    assert reasons.count("Moved") == 2, "two tiers were entered"


def test_pods_that_end_slowly_are_waited_for(cluster: LoopCluster, tmp_path: Path) -> None:
    with (
        replica(cluster.kubeconfig, tmp_path) as controller,
        watched_gangs(cluster.client, NAMESPACE) as gangs,
    ):
        controller.wait_ready()
        cluster.apply(jobset("slow", terminates_in="3s"))
        cluster.wait_on("slow", "spot-a")
        cluster.evict_one("slow")
        wait_until(lambda: cluster.state("slow").get("phase") == "Suspending", "the move begins")
        wait_until(lambda: _is_stopping(cluster, "slow"), "every pod is told to end")
        job = cluster.job("slow")
        assert _is_stopping(cluster, "slow"), "its pods are there all the while"
        assert obj(job["spec"])["suspend"] is True, "so it was suspended still"
        cluster.wait_on("slow", "spot-b")
    assert not gangs.overlaps, "no pod of the next tier was made before the last one of the old was gone"


def test_a_pod_that_its_jobs_restart_ended_is_no_failure_however_late_its_kubelet_drops_it(
    cluster: LoopCluster, tmp_path: Path
) -> None:
    cluster.apply(policy({"pool": "spot-a", "maxFailures": 9}, {"pool": "on-demand"}, outageWindow="1s"))
    with replica(cluster.kubeconfig, tmp_path):
        cluster.apply(jobset("dropped", terminates_in="3s", removed_in="4s"))
        cluster.wait_on("dropped", "spot-a")
        for outages in (1, 2):
            before = _pods_there(cluster)
            cluster.evict_one("dropped")
            wait_until(lambda before=before: not before & _pods_there(cluster), "both have been dropped")
            cluster.wait_on("dropped", "spot-a")
            wait_until(
                lambda outages=outages: cluster.state("dropped").get("evictions") == outages, "it counts"
            )
        assert cluster.state("dropped").get("application_failures", 0) == 0, (
            "the peers were told to end, long before they were dropped"
        )


def test_a_namespace_may_become_a_training_namespace_later(cluster: LoopCluster, tmp_path: Path) -> None:
    with replica(cluster.kubeconfig, tmp_path) as controller:
        controller.wait_ready()
        cluster.apply(namespace("speech"), policy(within="speech"))
        cluster.apply(jobset("early", within="speech"))
        wait_until(lambda: cluster.runs_on("early", "spot-a", within="speech"), "it runs")
        assert not obj(cluster.job("early", "speech")["metadata"]).get("annotations"), "and nobody minds it"
        cluster.apply(namespace("speech", training=True))
        wait_until(
            lambda: bool(obj(cluster.job("early", "speech")["metadata"]).get("annotations")), "it is taken up"
        )
        cluster.evict_one("early", "speech")
        wait_until(lambda: cluster.runs_on("early", "spot-b", within="speech"), "it follows its ladder")


def test_a_kind_that_nobody_served_is_taken_up_when_it_comes(cluster: LoopCluster, tmp_path: Path) -> None:
    with replica(cluster.kubeconfig, tmp_path) as controller:
        controller.wait_ready()
        pools = 'holdfast_fallback_cached_objects{kind="nodepools"}'
        assert controller.number(pools) == 0, "there are no NodePools in a cluster without Karpenter"
        cluster.apply(_node_pools())
        cluster.client.wait_for(
            "apiextensions.k8s.io/v1",
            "CustomResourceDefinition",
            "nodepools.karpenter.sh",
            timeout_seconds=30,
            condition=lambda found: "Established" in str(found),
            what="NodePools are served",
        )
        cluster.client.forget_kinds("karpenter.sh/v1")
        cluster.apply({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "spot-a"}})
        controller.wait(lambda each: each.number(pools) == 1, "the NodePool is seen")
        cluster.client.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", "nodepools.karpenter.sh")
        controller.wait(lambda each: each.number(pools) == 0, "they are gone with their definition")


def _status(cluster: LoopCluster) -> Json:
    found = cluster.client.get("holdfast.dev/v1alpha1", "FallbackPolicy", "ladder", NAMESPACE)
    return obj((found or {}).get("status"))


def _is_stopping(cluster: LoopCluster, name: str) -> bool:
    """Whether pods of a job are left, all of which were told to end."""
    pods = cluster.pods(name)
    return bool(pods) and all(obj(pod["metadata"]).get("deletionTimestamp") for pod in pods)


def _node_pools() -> Json:
    schema: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "nodepools.karpenter.sh"},
        "spec": {
            "group": "karpenter.sh",
            "scope": "Cluster",
            "names": {"kind": "NodePool", "plural": "nodepools"},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
            ],
        },
    }


def _pods_there(cluster: LoopCluster) -> set[str]:
    """The pods that there are, ended ones included."""
    return {
        str(obj(pod["metadata"])["name"]) for pod in cluster.client.list("v1", "Pod", namespace=NAMESPACE)
    }
