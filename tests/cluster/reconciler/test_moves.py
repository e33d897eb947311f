"""The controller process moves JobSets down their ladder on a real API server."""

import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.controller.kube.objects import labels_of, name_of
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import STATE, STOP
from pulumi_holdfast.ladder.windows import format_time
from tests.support.clusters.gangs import Gangs, watched_gangs
from tests.support.clusters.operators import STACK
from tests.support.clusters.reconciler import (
    NAMESPACE,
    LoopCluster,
    jobset,
    namespace,
    policy,
    replica,
    wait_until,
)
from tests.support.json_objects import obj, objects

pytestmark = pytest.mark.cluster


def test_a_job_moves_down_its_ladder_with_events_status_and_metrics(
    cluster: LoopCluster, tmp_path: Path
) -> None:
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
        # One more if JobSet has restarted the job on spot-b, and its pods have nodes, before the eviction is observed.
        wait_until(lambda: cluster.said("walks").count("Placed") >= 3, "each arrival is an Event")
        # The status is debounced: it shows the job on an earlier tier, or waiting on the last one, first.
        wait_until(
            lambda: (_jobs_by_tier(cluster), _status(cluster).get("summary")) == ([0, 0, 1], "1 running"),
            "the status shows the job running on the last tier",
        )
        assert _is_ready(cluster)
        labels = labels_of(cluster.job("walks"))
        assert labels["holdfast.dev/tier"] == "on-demand"
        used = {str(use["pool"]): float(str(use["node_time"])) for use in _uses(cluster, "walks")}
        assert used.keys() >= {"spot-a", "spot-b"}
        assert min(used["spot-a"], used["spot-b"]) > 0
        node_seconds = controller.number(
            'holdfast_fallback_node_seconds_total{capacity="spot",namespace="vision",pool="spot-a"}'
        )
        assert node_seconds == pytest.approx(used["spot-a"])
        moves = 'holdfast_fallback_moves_total{namespace="vision",pool="on-demand",purpose="Failover"}'
        assert controller.number(moves) == 1
        # The restart can be observed before the eviction that explains it: pods and jobs are two watches.
        outages = [
            controller.number(
                f'holdfast_fallback_outages_total{{cause="{cause}",namespace="vision",pool="spot-b"}}'
            )
            for cause in ("eviction", "unexplained")
        ]
        assert sum(outages) == 1
        assert controller.terminate() == 0
    assert not gangs.overlaps, "gangs on two tiers would write the same checkpoint"
    reasons = cluster.said("walks")
    assert reasons.count("Moved") == 2


@contextmanager
def slow_move(cluster: LoopCluster, folder: Path, name: str) -> Generator[Gangs]:
    """Watch the gangs of a job for the length of the block, which begins in the middle of its move to spot-b."""
    with replica(cluster.kubeconfig, folder) as controller, watched_gangs(cluster.client, NAMESPACE) as gangs:
        controller.wait_ready()
        cluster.apply(jobset(name, terminates_in="3s"))
        cluster.wait_on(name, "spot-a")
        cluster.evict_one(name)
        wait_until(lambda: cluster.state(name).get("phase") == "Suspending", "the move begins")
        yield gangs


def test_a_move_waits_for_slowly_terminating_pods(cluster: LoopCluster, tmp_path: Path) -> None:
    with slow_move(cluster, tmp_path, "slow") as gangs:
        wait_until(lambda: _is_stopping(cluster, "slow"), "every pod is terminating")
        job = cluster.job("slow")
        assert _is_stopping(cluster, "slow")
        assert obj(job["spec"])["suspend"] is True
        cluster.wait_on("slow", "spot-b")
    assert not gangs.overlaps


def test_a_job_is_stopped_by_its_user_in_the_middle_of_a_move_and_resumed_on_the_next_tier(
    cluster: LoopCluster, tmp_path: Path
) -> None:
    with slow_move(cluster, tmp_path, "stops") as gangs:
        _patch(cluster, "stops", {"metadata": {"annotations": {STOP: "true"}}})
        wait_until(lambda: cluster.state("stops").get("phase") == "Stopped", "the move is not completed")
        wait_until(lambda: not cluster.pods("stops"), "its pods terminate")
        assert obj(cluster.job("stops")["spec"])["suspend"] is True
        _patch(cluster, "stops", {"metadata": {"annotations": {STOP: None}}, "spec": {"suspend": False}})
        cluster.wait_on("stops", "spot-b")
    assert not gangs.overlaps


def test_a_job_whose_state_is_unreadable_in_the_middle_of_a_move_is_resumed(
    cluster: LoopCluster, tmp_path: Path
) -> None:
    with slow_move(cluster, tmp_path, "rolled-back") as gangs:
        _patch(
            cluster, "rolled-back", {"metadata": {"annotations": {STATE: '{"format": "of another version"}'}}}
        )
        cluster.wait_on("rolled-back", "spot-b")
    assert "StateUnreadable" in cluster.said("rolled-back")
    assert not gangs.overlaps


def test_a_job_leaves_a_block_that_ends(cluster: LoopCluster, tmp_path: Path) -> None:
    def ladder(ends: datetime) -> Json:
        window = {"begins": "2026-01-01T00:00:00Z", "ends": format_time(ends)}
        block: Json = {
            "pool": "spot-a",
            "maxFailures": 9,
            "procurementTimeout": "1h",
            "facts": {"capacity": "reserved", "window": window},
        }
        return policy(block, {"pool": "on-demand"}, returnAfter="never")

    with replica(cluster.kubeconfig, tmp_path) as controller:
        controller.wait_ready()
        cluster.apply(ladder(datetime.now(UTC) + timedelta(hours=1)))
        cluster.apply(jobset("on-block"))
        cluster.wait_on("on-block", "spot-a")
        cluster.apply(ladder(datetime.now(UTC) - timedelta(seconds=1)))
        cluster.wait_on("on-block", "on-demand")
    said = cluster.said("on-block")
    assert "CapacityEnds" in said
    assert "OutageCounted" not in said


def test_pods_ended_by_a_restart_are_no_failures_however_late_they_are_removed(
    cluster: LoopCluster, tmp_path: Path
) -> None:
    cluster.apply(policy({"pool": "spot-a", "maxFailures": 9}, {"pool": "on-demand"}, outageWindow="1s"))
    with replica(cluster.kubeconfig, tmp_path):
        cluster.apply(jobset("dropped", terminates_in="3s", removed_in="4s"))
        cluster.wait_on("dropped", "spot-a")
        for outages in (1, 2):
            before = _pods_there(cluster)
            cluster.evict_one("dropped")
            wait_until(lambda before=before: not before & _pods_there(cluster), "both pods are removed")
            cluster.wait_on("dropped", "spot-a")
            wait_until(
                lambda outages=outages: cluster.state("dropped").get("evictions") == outages,
                "the eviction is counted",
            )
        assert cluster.state("dropped").get("application_failures", 0) == 0


def test_a_namespace_may_become_a_training_namespace_later(cluster: LoopCluster, tmp_path: Path) -> None:
    with replica(cluster.kubeconfig, tmp_path) as controller:
        controller.wait_ready()
        cluster.apply(namespace("speech"), policy(within="speech"))
        cluster.apply(jobset("early", within="speech"))
        wait_until(lambda: cluster.runs_on("early", "spot-a", within="speech"), "it runs")
        assert not obj(cluster.job("early", "speech")["metadata"]).get("annotations")
        cluster.apply(namespace("speech", training=True))
        wait_until(
            lambda: bool(obj(cluster.job("early", "speech")["metadata"]).get("annotations")),
            "the controller adopts it",
        )
        cluster.evict_one("early", "speech")
        wait_until(lambda: cluster.runs_on("early", "spot-b", within="speech"), "it moves down its ladder")


def test_a_kind_defined_later_is_watched(cluster: LoopCluster, tmp_path: Path) -> None:
    with replica(cluster.kubeconfig, tmp_path) as controller:
        controller.wait_ready()
        pools = 'holdfast_fallback_cached_objects{kind="nodepools"}'
        assert controller.number(pools) == 0
        cluster.apply(_node_pools())
        # Discovery lists a kind some time after its definition is established.
        wait_until(lambda: _serves_node_pools(cluster), "NodePools are served")
        cluster.apply({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "spot-a"}})
        controller.wait(lambda each: each.number(pools) == 1, "the NodePool is seen")
        cluster.client.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", "nodepools.karpenter.sh")
        controller.wait(
            lambda each: each.number(pools) == 0, "the cache is empty after the definition is deleted"
        )


def _patch(cluster: LoopCluster, name: str, patch: Json) -> None:
    cluster.client.merge_patch("jobset.x-k8s.io/v1alpha2", "JobSet", name, patch, namespace=NAMESPACE)


def _is_ready(cluster: LoopCluster) -> bool:
    wait = ["wait", "--for=condition=Ready", "fallbackpolicy/ladder", "-n", NAMESPACE, "--timeout=180s"]
    ended = subprocess.run(
        ["kubectl", f"--kubeconfig={cluster.workspace.kubeconfig(STACK)}", *wait], check=False
    )
    return ended.returncode == 0


def _uses(cluster: LoopCluster, name: str) -> Sequence[Json]:
    return objects(obj(cluster.state(name)["ledger"])["uses"])


def _status(cluster: LoopCluster) -> Json:
    found = cluster.client.get("holdfast.dev/v1alpha1", "FallbackPolicy", "ladder", NAMESPACE)
    return obj((found or {}).get("status"))


def _jobs_by_tier(cluster: LoopCluster) -> list[object]:
    return [tier["jobs"] for tier in objects(_status(cluster).get("tiers"))]


def _is_stopping(cluster: LoopCluster, name: str) -> bool:
    """Whether pods of a job are left and all of them are terminating."""
    pods = cluster.pods(name)
    return bool(pods) and all(obj(pod["metadata"]).get("deletionTimestamp") for pod in pods)


def _serves_node_pools(cluster: LoopCluster) -> bool:
    cluster.client.forget_kinds("karpenter.sh/v1")
    try:
        return cluster.client.list("karpenter.sh/v1", "NodePool") == []
    except ApiError:
        return False


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
    """The names of all pods, including terminated ones."""
    return {name_of(pod) for pod in cluster.client.list("v1", "Pod", namespace=NAMESPACE)}
