"""Two replicas: one leads, and one that was deposed writes nothing more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.scheduling.labels import CONTROLLER_NAMESPACE, LEASE
from tests.soak.fault_proxy import ApiRequest, Fault, running_proxy
from tests.support.clusters.reconciler import Replica, jobset, replica, wait_until
from tests.support.json_objects import obj

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.clusters.reconciler import LoopCluster

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]


def holder(cluster: LoopCluster) -> str:
    """Who leads by the Lease."""
    lease = cluster.client.get("coordination.k8s.io/v1", "Lease", LEASE, CONTROLLER_NAMESPACE)
    return str(obj((lease or {}).get("spec")).get("holderIdentity") or "")


def lose_leases(asked: ApiRequest) -> Fault:
    """A fate that no request about a Lease survives."""
    return Fault.LOSE if "/leases" in asked.path else Fault.PASS


def test_one_leads_and_the_other_takes_over_at_once_when_it_ends_well(
    cluster: LoopCluster, tmp_path: Path
) -> None:
    with replica(cluster.kubeconfig, tmp_path) as first:
        first.wait(Replica.leads, "the first leads")
        with replica(cluster.kubeconfig, tmp_path) as second:
            second.wait_ready()
            assert not second.leads(), "one leads"
            cluster.apply(jobset("handed-on"))
            cluster.wait_on("handed-on", "spot-a")
            assert first.terminate() == 0, "it ends well"
            second.wait(Replica.leads, "the second need not wait for the lease to run out", seconds=10)
            cluster.evict_one("handed-on")
            cluster.wait_on("handed-on", "spot-b")
            assert holder(cluster), "the lease says who"


def test_a_killed_leader_is_replaced_in_the_middle_of_a_move(cluster: LoopCluster, tmp_path: Path) -> None:
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
            assert second.leads(), "the second ended it"
            assert cluster.state("orphaned")["moves"] == 1, "as one move"


def test_a_leader_that_was_frozen_until_it_was_deposed_writes_nothing(
    cluster: LoopCluster, tmp_path: Path
) -> None:
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
            assert second.leads(), "the second leads"
            first.thaw()
            first.wait(
                lambda each: not each.leads() and each.answers("/healthz") == "ok", "the first stands by"
            )
            cluster.evict_one("contested")
            cluster.wait_on("contested", "on-demand")
            assert api.writes == written, "whoever was deposed has asked for no change since"
            second.terminate()
            first.wait(Replica.leads, "it may lead again")


def test_a_leader_that_cannot_renew_stands_back_before_another_may_lead(
    cluster: LoopCluster, tmp_path: Path
) -> None:
    with running_proxy(cluster.kubeconfig, tmp_path) as api, replica(api.kubeconfig, tmp_path) as controller:
        controller.wait(Replica.leads, "it leads")
        cluster.apply(jobset("unrenewed"))
        cluster.wait_on("unrenewed", "spot-a")
        api.fate = lose_leases
        controller.wait(lambda each: not each.leads(), "it stands back")
        written = api.writes
        cluster.evict_one("unrenewed")
        wait_until(lambda: cluster.runs_on("unrenewed", "spot-a"), "JobSet restarts the job by itself")
        assert api.writes == written, "nothing was written although all but the Lease could be"
        assert controller.answers("/readyz") == "ok", "it still watches"
        api.fate = lambda _: Fault.PASS
        cluster.wait_on("unrenewed", "spot-b")
