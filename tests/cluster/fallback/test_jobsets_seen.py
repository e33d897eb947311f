"""What is seen of real JobSets, and what JobSet makes of our updates: no controller of ours runs here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.fallback.state_machine.actions import Resume, Suspend
from holdfast.fallback.state_machine.observation import Cause
from holdfast.fallback.state_machine.state import JobState, Phase
from holdfast.simulator.kubernetes_client.errors import KubeError
from tests.support.clusters.fallback import NAMESPACE, Looker
from tests.support.clusters.fallback_jobs import (
    NEVER_ENDS,
    applied,
    end,
    fail,
    interrupt,
    is_inactive,
    name_of,
    node_of,
    pods_of,
    pools_of,
    real_jobset,
    vanish,
)
from tests.support.fallback_objects import NOW
from tests.support.json_objects import obj

if TYPE_CHECKING:
    from holdfast.simulator.kubernetes_client.client import KubeClient
    from tests.support.clusters.fallback import LadderCluster

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

STATE = JobState(uid="u", phase=Phase.SUSPENDING, pool="cpu", rank=2, since=NOW)


def running(client: KubeClient, name: str, pods: int = 2) -> Looker:
    """A looker at a JobSet all of whose pods run."""
    looker = Looker(client, "JobSet", name)
    looker.wait(lambda seen: seen.pods_started == pods, f"the {pods} pods of {name} run")
    return looker


def suspended(looker: Looker, pool: str = "cpu") -> None:
    """Suspend as the controller does it."""
    action = Suspend(state=STATE, pool=pool)
    looker.patch(looker.kind.suspension(looker.job(), action, "state"))


def resumed(looker: Looker, pool: str = "cpu") -> None:
    """Resume as the controller does it."""
    looker.patch(looker.kind.resumption(looker.job(), Resume(state=STATE, pool=pool), "state"))


def test_a_job_is_moved_to_another_pool_without_a_restart(cluster: LadderCluster) -> None:
    client = cluster.client
    spot = {"holdfast.dev/pool": "spot-a", "karpenter.sh/capacity-type": "spot"}
    with applied(client, real_jobset("moved", selector=spot)) as name:
        looker = running(client, name)
        assert pools_of(client, name) == ["spot-a", "spot-a"], "it selects that pool"
        suspended(looker)
        seen = looker.wait(
            lambda seen: seen.is_suspension_complete and seen.pods_remaining == 0, "nothing is left of it"
        )
        assert (seen.suspended, seen.pool, seen.outdated_children) == (True, "cpu", 1), (
            "its Job was made from the old template, and JobSet would merge the new one into it"
        )
        looker.delete_outdated_children()
        looker.wait(lambda seen: seen.outdated_children == 0, "JobSet makes it anew from the new template")
        resumed(looker)
        seen = looker.wait(lambda seen: seen.pods_started == 2, "it runs again")
        assert pools_of(client, name) == ["cpu", "cpu"], "on-demand: no spot selector is left in any pod"
        assert (seen.restarts, seen.losses) == (0, ()), "a move is neither a restart nor a loss"


def test_a_job_whose_template_is_not_changed_keeps_its_children(cluster: LadderCluster) -> None:
    with applied(cluster.client, real_jobset("stays")) as name:
        looker = running(cluster.client, name)
        suspended(looker, "spot-a")
        looker.wait(
            lambda seen: seen.is_suspension_complete and seen.pods_remaining == 0, "nothing is left of it"
        )
        assert looker.look().outdated_children == 0, "they are what they are to be"


def test_a_suspended_job_is_not_gone_while_a_pod_of_it_terminates(cluster: LadderCluster) -> None:
    client = cluster.client
    with applied(client, real_jobset("slow", annotations=NEVER_ENDS)) as name:
        looker = running(client, name)
        suspended(looker)
        looker.wait(lambda _: is_inactive(looker.job()), "JobSet calls it suspended")
        seen = looker.look()
        assert (seen.is_suspension_complete, seen.pods_remaining) == (False, 2), (
            "`active` says none, and both pods still write to the checkpoint"
        )
        first, second = pods_of(client, name)
        end(client, first)
        looker.wait(lambda seen: seen.pods_remaining == 1, "one has ended")
        end(client, second)
        looker.wait(lambda seen: seen.is_suspension_complete and seen.pods_remaining == 0, "both have")


def test_an_evicted_pod_is_a_loss_and_its_peers_are_not(cluster: LadderCluster) -> None:
    client = cluster.client
    with applied(client, real_jobset("evicted", pods=3)) as name:
        looker = running(client, name, 3)
        with looker.watching():
            victim = pods_of(client, name)[0]
            client.evict(NAMESPACE, name_of(victim))
            seen = looker.wait(lambda seen: seen.restarts == 1 and seen.pods_started == 3, "it is restarted")
        assert [(loss.pod, loss.cause) for loss in seen.losses] == [
            (obj(victim["metadata"])["uid"], Cause.EVICTION)
        ], "JobSet ended the other two"
        assert seen.disrupted_restarts == 1, "and put it down to the eviction"


def test_an_interrupted_machine_is_an_eviction(cluster: LadderCluster) -> None:
    client = cluster.client
    with applied(client, real_jobset("interrupted")) as name:
        looker = running(client, name)
        with looker.watching():
            lost = pods_of(client, name)[0]
            interrupt(client, node_of(lost))
            seen = looker.wait(lambda seen: seen.restarts == 1 and seen.pods_started == 2, "it is restarted")
        assert {loss.cause for loss in seen.losses} == {Cause.EVICTION}, "Karpenter drained it"
        assert obj(lost["metadata"])["uid"] in {loss.pod for loss in seen.losses}, "the pod that was on it"


def test_a_machine_that_vanishes_takes_its_pod_along(cluster: LadderCluster) -> None:
    client = cluster.client
    with applied(client, real_jobset("vanished")) as name:
        looker = running(client, name)
        with looker.watching():
            lost = pods_of(client, name)[0]
            vanish(client, node_of(lost))
            seen = looker.wait(lambda seen: bool(seen.losses), "its loss is seen at once, by its node")
            assert [loss.cause for loss in seen.losses] == [Cause.NODE_GONE], "the node was there before"
            assert seen.dead_pods == (name_of(lost),), "nobody will end that pod"
            assert (seen.restarts, seen.pods_placed) == (0, 1), "the Job controller has seen nothing yet"
            end(client, lost)


def test_a_program_that_fails_is_no_eviction(cluster: LadderCluster) -> None:
    client = cluster.client
    with applied(client, real_jobset("failing")) as name:
        looker = running(client, name)
        with looker.watching():
            fail(client, pods_of(client, name)[0])
            seen = looker.wait(lambda seen: seen.restarts == 1, "JobSet restarts it")
        assert [loss.cause for loss in seen.losses] == [Cause.APPLICATION], "its node was in order"
        assert seen.disrupted_restarts == 0, "JobSet sees it alike"


def test_an_update_of_a_job_that_has_changed_is_refused(cluster: LadderCluster) -> None:
    with applied(cluster.client, real_jobset("fenced")) as name:
        looker = running(cluster.client, name)
        patch = looker.kind.suspension(looker.job(), Suspend(state=STATE, pool="cpu"), "state")
        looker.patch({"metadata": {"labels": {"changed": "meanwhile"}}})
        with pytest.raises(KubeError) as refused:
            looker.patch(patch)
        assert refused.value.status == 409, "whoever decided did so on what is not true any more"


def test_an_update_of_another_job_of_the_same_name_is_refused(cluster: LadderCluster) -> None:
    job = real_jobset("another")
    with applied(cluster.client, job) as name:
        looker = running(cluster.client, name)
        patch = looker.kind.suspension(looker.job(), Suspend(state=STATE, pool="cpu"), "state")
    with applied(cluster.client, job), pytest.raises(KubeError) as refused:
        looker.patch(patch)
    assert refused.value.status == 409, "it was deleted and made anew meanwhile"
