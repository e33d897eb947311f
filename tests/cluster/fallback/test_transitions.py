"""JobSets and RayJobs move along their ladder, with the controller, JobSet, KubeRay and Karpenter running."""

from datetime import UTC, datetime, timedelta

import pytest

from pulumi_holdfast.controller.kube.objects import annotations_of, labels_of, name_of
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.taints import SPOT
from pulumi_holdfast.ladder.windows import format_time
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.support.clusters.fallback import NAMESPACE
from tests.support.clusters.fallback_jobs import (
    NEVER_ENDS,
    Ladder,
    annotate,
    applied,
    end,
    fail,
    interrupt,
    is_inactive,
    node_of,
    pods_of,
    pools_of,
    real_jobset,
    real_rayjob,
    stop_answering,
    tier,
    vanish,
)
from tests.support.clusters.gangs import watched_gangs
from tests.support.json_objects import obj, objects

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]


def evict_one(client: KubeClient, name: str, part: str = "worker") -> None:
    """Evict a pod of a job."""
    client.evict(NAMESPACE, name_of(workers(client, name, part)[0]))


def workers(client: KubeClient, name: str, part: str = "worker") -> list[Json]:
    """The pods of a part of a job that are not ending."""
    return [
        pod
        for pod in pods_of(client, name)
        if f"-{part}-" in name_of(pod) and not obj(pod["metadata"]).get("deletionTimestamp")
    ]


def test_a_job_moves_down_after_failures_and_after_waits(ladder: Ladder) -> None:
    ladder.says(
        tier("spot-a", maxFailures=2),
        tier("spot-b", maxFailures=1, procurementTimeout="5s"),
        tier("cpu"),
        outageWindow="1s",
    )
    ladder.sells("spot-b", anything=False)
    client = ladder.client
    try:
        with applied(client, real_jobset("walks")) as name, watched_gangs(client, NAMESPACE) as gangs:
            ladder.wait_running(name, "spot-a")
            evict_one(client, name)
            ladder.wait(lambda: ladder.state(name).get("evictions") == 1, name, "it is counted")
            _wait_restarted(ladder, name, restarts=1)
            evict_one(client, name)
            kept = ladder.wait_running(name, "cpu")
            assert (kept["moves"], kept["rank"]) == (2, 2)
            said = ladder.said(name)
            assert {"MaxFailuresReached", "NoCapacity", "Moved"} <= said.keys()
            assert obj(ladder.job(name)["status"])["restarts"] in {1, 2}
            assert not gangs.overlaps
    finally:
        ladder.sells("spot-b", anything=True)


def _wait_restarted(ladder: Ladder, name: str, *, restarts: int, pods: int = 2) -> None:
    """Wait until JobSet has started a job over so often, all of it runs, and the outage before is a second old."""

    def has_restarted() -> bool:
        seen_at = ladder.state(name).get("outage_counted_at")
        running = [
            pod for pod in workers(ladder.client, name) if obj(pod["status"]).get("phase") == "Running"
        ]
        return (
            obj(ladder.job(name)["status"])["restarts"] == restarts
            and len(running) == pods
            and isinstance(seen_at, str)
            and datetime.now(UTC) - datetime.fromisoformat(seen_at) > timedelta(seconds=3)
        )

    ladder.wait(has_restarted, name, f"it has restarted {restarts} times")


def test_a_job_is_resumed_only_after_its_last_pod_has_ended(ladder: Ladder) -> None:
    ladder.says(tier("spot-a", maxFailures=1), tier("cpu"))
    client = ladder.client
    job = real_jobset("slow-to-end", annotations=NEVER_ENDS)
    with applied(client, job) as name, watched_gangs(client, NAMESPACE) as gangs:
        ladder.wait_running(name, "spot-a")
        evict_one(client, name)
        ladder.wait_phase(name, "Suspending")
        jobset_says_so = 'JobSet calls it suspended, with "active" at 0'
        ladder.wait(lambda: is_inactive(ladder.job(name)), name, jobset_says_so)
        first, last = pods_of(client, name)
        end(client, first)
        ladder.wait(lambda: len(pods_of(client, name)) == 1, name, "one is left")
        assert ladder.is_suspended(name)
        assert pools_of(client, name) == ["spot-a"]
        end(client, last)
        ladder.wait_running(name, "cpu")
        assert not gangs.overlaps


def test_a_wave_of_reclaims_counts_once(ladder: Ladder) -> None:
    ladder.says(tier("spot-a", maxFailures=2), tier("cpu"), outageWindow="2m")
    client = ladder.client
    with applied(client, real_jobset("wave", pods=3)) as name:
        ladder.wait_running(name, "spot-a", pods=3)
        for restarts in (1, 2):
            interrupt(client, node_of(workers(client, name)[0]))
            _wait_restarted(ladder, name, restarts=restarts, pods=3)
        kept = ladder.state(name)
        assert (kept["evictions"], kept.get("moves", 0)) == (1, 0)


def test_a_machine_that_vanishes_moves_its_job_on(ladder: Ladder) -> None:
    ladder.says(tier("spot-a", maxFailures=1), tier("cpu"))
    client = ladder.client
    with applied(client, real_jobset("vanishes")) as name:
        ladder.wait_running(name, "spot-a")
        vanish(client, node_of(workers(client, name)[0]))
        kept = ladder.wait_running(name, "cpu")
        assert kept["moves"] == 1, "no other component ended its pod; its Job would have waited for a minute"


def test_an_unreachable_machine_counts_as_lost_after_a_timeout(ladder: Ladder) -> None:
    ladder.says(tier("spot-a", maxFailures=1), tier("cpu"))
    client = ladder.client
    with applied(client, real_jobset("unreachable", pods=1, annotations=NEVER_ENDS)) as name:
        ladder.wait_running(name, "spot-a", pods=1)
        node = node_of(workers(client, name)[0])

        def is_suspending() -> bool:
            # A heartbeat that was on its way may come after it.
            stop_answering(client, node)
            return ladder.state(name).get("phase") == "Suspending"

        ladder.wait(is_suspending, name, "it is not waited for any longer")
        ladder.wait(lambda: not workers(client, name), name, "its pod is terminating, without a kubelet")
        assert ladder.state(name)["evictions"] == 1
        assert ladder.is_suspended(name)
        vanish(client, node)
        ladder.wait_running(name, "cpu", pods=1)


def test_a_failing_program_does_not_move_a_job_that_counts_evictions(ladder: Ladder) -> None:
    ladder.says(tier("spot-a", maxFailures=1), tier("cpu"), failures="evictions", outageWindow="1s")
    client = ladder.client
    with applied(client, real_jobset("fails-itself")) as name:
        ladder.wait_running(name, "spot-a")
        fail(client, workers(client, name)[0])
        ladder.wait(lambda: ladder.state(name).get("application_failures") == 1, name, "it is counted apart")
        ladder.wait_running(name, "spot-a")
        assert ladder.state(name).get("moves", 0) == 0, "another machine would not fix the program"


def test_a_job_returns_to_a_tier_with_reserved_capacity(ladder: Ladder) -> None:
    facts: Json = {"capacity": "spot", "taints": [SPOT.as_taint()]}
    ladder.says(
        tier("spot-a", maxFailures=1, procurementTimeout="5s", facts=facts),
        tier("cpu"),
        returnAfter="5s",
        holdTimeout="2m",
    )
    ladder.sells("spot-a", anything=False)
    client = ladder.client
    try:
        with applied(client, real_jobset("returns")) as name, watched_gangs(client, NAMESPACE) as gangs:
            ladder.wait_running(name, "cpu")
            ladder.sells("spot-a", anything=True)
            kept = ladder.wait_running(name, "spot-a")
            assert kept["entered_by_failback"] is True
            assert {"FailbackStarted", "FailbackMoving"} <= ladder.said(name).keys()
            ladder.wait(lambda: not _held_nodes(client), name, "its nodes are anybody's again")
            assert not client.list("v1", "Pod", namespace="holdfast-reservations")
            assert not gangs.overlaps
    finally:
        ladder.sells("spot-a", anything=True)


def test_a_job_goes_from_a_block_that_ends_to_spot_and_back_when_the_next_begins(ladder: Ladder) -> None:
    def says(begins: timedelta, ends: timedelta) -> None:
        now = datetime.now(UTC)
        window: Json = {"begins": format_time(now + begins), "ends": format_time(now + ends)}
        facts: Json = {"capacity": "reserved", "taints": [SPOT.as_taint()], "window": window}
        block = tier("spot-a", procurementTimeout="2m", facts=facts)
        ladder.says(block, tier("spot-b"), tier("cpu"), returnAfter="12h", holdTimeout="2m")

    client, hour = ladder.client, timedelta(hours=1)
    says(-hour, hour)
    with applied(client, real_jobset("on-blocks")) as name, watched_gangs(client, NAMESPACE) as gangs:
        ladder.wait_running(name, "spot-a")
        says(-hour, timedelta(0))
        ladder.wait_running(name, "spot-b")
        assert "CapacityEnds" in ladder.said(name)
        says(timedelta(seconds=2), 24 * hour)
        kept = ladder.wait_running(name, "spot-a")
        assert kept["entered_by_failback"] is True
        assert "OutageCounted" not in ladder.said(name)
        assert not gangs.overlaps


def _held_nodes(client: KubeClient) -> list[str]:
    return [
        name_of(node)
        for node in client.list("v1", "Node")
        if "holdfast.dev/reserved-for" in labels_of(node)
        or any(
            taint["key"] == "holdfast.dev/reserved-for" for taint in objects(obj(node["spec"]).get("taints"))
        )
    ]


def test_a_suspension_by_a_user_is_kept(ladder: Ladder) -> None:
    ladder.says(tier("spot-a", maxFailures=1), tier("cpu"))
    client = ladder.client
    with applied(client, real_jobset("stopped")) as name:
        ladder.wait_running(name, "spot-a")
        ladder.patch(name, {"spec": {"suspend": True}})
        ladder.wait_phase(name, "Stopped")
        ladder.wait(lambda: not pods_of(client, name), name, "its pods are gone")
        assert "Stopped" in ladder.said(name)
        assert ladder.is_suspended(name)
        ladder.patch(name, {"spec": {"suspend": False}})
        kept = ladder.wait_running(name, "spot-a")
        assert (kept.get("moves", 0), kept.get("evictions", 0)) == (0, 0)


def test_an_evicted_worker_moves_a_ray_job_but_not_its_head(ladder: Ladder) -> None:
    ladder.says(tier("spot-a", maxFailures=1), tier("spot-b", maxFailures=1), tier("cpu"))
    client = ladder.client
    with applied(client, real_rayjob("ray-walks")) as name:
        ladder.wait_running(name, "spot-a", kind="RayJob")
        evict_one(client, name)
        kept = ladder.wait_running(name, "spot-b", kind="RayJob")
        assert (kept["moves"], obj(ladder.job(name, "RayJob")["status"])["failed"]) == (1, 0)
        assert sorted(pools_of(client, name)) == ["cpu", "spot-b", "spot-b"]


def test_a_failed_attempt_of_a_ray_job_counts(ladder: Ladder) -> None:
    ladder.says(tier("spot-a", maxFailures=1), tier("cpu"))
    client = ladder.client
    with applied(client, real_rayjob("ray-attempts")) as name:
        ladder.wait_running(name, "spot-a", kind="RayJob")
        ladder.wait(lambda: _status(ladder, name) == "Running", name, "its job runs", "RayJob")
        (head,) = workers(client, name, "head")
        annotate(client, head, fail="true")
        kept = ladder.wait_running(name, "cpu", kind="RayJob")
        assert kept["moves"] == 1
        assert "AppFailed" in ladder.said(name)["AttemptFailed"]


def test_a_ray_job_with_an_unready_head_restarts(ladder: Ladder) -> None:
    ladder.says(tier("spot-a", maxFailures=3), tier("cpu"), failures="evictions")
    client = ladder.client
    with applied(client, real_rayjob("ray-silent")) as name:
        ladder.wait_running(name, "spot-a", kind="RayJob")
        ladder.wait(lambda: _status(ladder, name) == "Running", name, "its job runs", "RayJob")
        before = obj(ladder.job(name, "RayJob")["status"])["rayClusterName"]
        (head,) = workers(client, name, "head")
        _make_unready(client, head)
        # As long as a head may need to come back by itself, and some.
        ladder.wait(
            lambda: "HeadLost" in ladder.said(name), name, "its head is given up", "RayJob", seconds=200
        )
        kept = ladder.wait_running(name, "spot-a", kind="RayJob")
        assert kept.get("moves", 0) == 0
        assert obj(ladder.job(name, "RayJob")["status"])["rayClusterName"] != before


def _status(ladder: Ladder, name: str) -> str:
    return str(obj(ladder.job(name, "RayJob").get("status")).get("jobDeploymentStatus") or "")


def _make_unready(client: KubeClient, pod: Json) -> None:
    """Let a head's dashboard stop answering its kubelet."""
    unready = [
        {**each, "status": "False"} if each.get("type") in {"Ready", "ContainersReady"} else each
        for each in objects(obj(pod["status"]).get("conditions"))
    ]
    patch: Json = {"status": {"conditions": unready}}
    client.merge_patch("v1", "Pod", name_of(pod), patch, namespace=NAMESPACE, subresource="status")


def test_a_ray_job_that_failed_by_an_eviction_is_recreated_on_request(ladder: Ladder) -> None:
    client = ladder.client
    ladder.says(tier("spot-a", maxFailures=3), tier("cpu"))
    job = real_rayjob("ray-anew", annotations={"fallback.holdfast.dev/recreate": "true"}, backoffLimit=0)
    with applied(client, job) as name:
        ladder.wait_running(name, "spot-a", kind="RayJob")
        ladder.wait(lambda: _status(ladder, name) == "Running", name, "its job runs", "RayJob")
        # A driver that does not survive the loss of its worker.
        evict_one(client, name)
        ladder.wait(
            lambda: ladder.state(name, "RayJob").get("evictions") == 1, name, "it is counted", "RayJob"
        )
        (head,) = workers(client, name, "head")
        annotate(client, head, fail="true")
        ladder.wait_said(name, "Recreated", "RayJob")
        successor = str(annotations_of(ladder.job(name, "RayJob"))["fallback.holdfast.dev/successor"])
        try:
            kept = ladder.wait_running(successor, "spot-a", kind="RayJob")
            assert kept["recreations"] == 1
        finally:
            client.delete("ray.io/v1", "RayJob", successor, namespace=NAMESPACE)
