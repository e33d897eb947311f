"""Two replicas: one leads, and a deposed leader writes nothing."""

from pathlib import Path

import pytest

from pulumi_holdfast.ladder.labels import CONTROLLER_NAMESPACE, LEASE
from tests.soak.fault_proxy import ApiRequest, Fault, running_proxy
from tests.support.clusters.reconciler import LoopCluster, Replica, jobset, replica, wait_until
from tests.support.json_objects import obj

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]


def holder(cluster: LoopCluster) -> str:
    """The holder of the Lease."""
    lease = cluster.client.get("coordination.k8s.io/v1", "Lease", LEASE, CONTROLLER_NAMESPACE)
    return str(obj((lease or {}).get("spec")).get("holderIdentity") or "")


def lose_leases(asked: ApiRequest) -> Fault:
    """Drop every request about a Lease."""
    return Fault.LOSE if "/leases" in asked.path else Fault.PASS


def test_a_standby_takes_over_at_once_when_the_leader_exits_cleanly(
    cluster: LoopCluster, tmp_path: Path
) -> None:
    with replica(cluster.kubeconfig, tmp_path) as first:
        first.wait(Replica.leads, "the first leads")
        with replica(cluster.kubeconfig, tmp_path) as second:
            second.wait_ready()
            assert not second.leads()
            cluster.apply(jobset("handed-on"))
            cluster.wait_on("handed-on", "spot-a")
            assert first.terminate() == 0
            second.wait(Replica.leads, "the second leads before the Lease expires", seconds=10)
            cluster.evict_one("handed-on")
            cluster.wait_on("handed-on", "spot-b")
            assert holder(cluster)


def test_a_standby_completes_the_move_of_a_killed_leader(cluster: LoopCluster, tmp_path: Path) -> None:
    with replica(cluster.kubeconfig, tmp_path) as first:
        first.wait(Replica.leads, "the first leads")
        with replica(cluster.kubeconfig, tmp_path) as second:
            second.wait_ready()
            cluster.apply(jobset("orphaned", terminates_in="4s"))
            cluster.wait_on("orphaned", "spot-a")
            cluster.evict_one("orphaned")
            wait_until(lambda: cluster.state("orphaned").get("phase") == "Suspending", "the move begins")
            first.kill()
            cluster.wait_on("orphaned", "spot-b")
            assert second.leads()
            assert cluster.state("orphaned")["moves"] == 1


def test_a_leader_frozen_until_deposed_writes_nothing(cluster: LoopCluster, tmp_path: Path) -> None:
    with running_proxy(cluster.kubeconfig, tmp_path) as api, replica(api.kubeconfig, tmp_path) as first:
        first.wait(Replica.leads, "the first leads")
        cluster.apply(jobset("contested"))
        cluster.wait_on("contested", "spot-a")
        with replica(cluster.kubeconfig, tmp_path) as second:
            second.wait_ready()
            first.freeze()
            written = api.writes
            cluster.evict_one("contested")
            cluster.wait_on("contested", "spot-b")
            assert second.leads()
            first.thaw()
            first.wait(
                lambda each: not each.leads() and each.answers("/healthz") == "ok", "the first stands by"
            )
            cluster.evict_one("contested")
            cluster.wait_on("contested", "on-demand")
            assert api.writes == written
            second.terminate()
            first.wait(Replica.leads, "the first can lead again")


def test_a_leader_that_cannot_renew_its_lease_stops_before_another_can_lead(
    cluster: LoopCluster, tmp_path: Path
) -> None:
    with running_proxy(cluster.kubeconfig, tmp_path) as api, replica(api.kubeconfig, tmp_path) as controller:
        controller.wait(Replica.leads, "it leads")
        cluster.apply(jobset("unrenewed"))
        cluster.wait_on("unrenewed", "spot-a")
        api.decide = lose_leases
        controller.wait(lambda each: not each.leads(), "it stops leading")
        written = api.writes
        cluster.evict_one("unrenewed")
        wait_until(lambda: cluster.runs_on("unrenewed", "spot-a"), "JobSet restarts the job by itself")
        assert api.writes == written
        assert controller.answers("/readyz") == "ok"
        api.decide = lambda _: Fault.PASS
        cluster.wait_on("unrenewed", "spot-b")
