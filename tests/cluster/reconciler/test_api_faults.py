"""The controller is killed; its API server throttles it, fails, stops answering and restarts on another port."""

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from tests.soak.fault_proxy import ApiRequest, Fault, running_proxy
from tests.soak.seeds import SEED_VARIABLE, seed_of
from tests.support.clusters.gangs import watched_gangs
from tests.support.clusters.reconciler import NAMESPACE, LoopCluster, Replica, jobset, replica, wait_until
from tests.support.json_objects import obj
from tests.support.soak import sized

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(300)]

# A move is four writes: the counted failure, the suspension, the deletion of the child Job, the resumption.
WRITES = range(1, 5)


@pytest.mark.seeded
@pytest.mark.parametrize("fault", [pytest.param(Fault.LOSE, marks=pytest.mark.soak), Fault.LOSE_ANSWER])
def test_a_move_interrupted_by_a_kill_at_any_write_is_completed_by_the_next_process(
    cluster: LoopCluster, tmp_path: Path, fault: Fault
) -> None:
    seed = seed_of(None, os.environ.get(SEED_VARIABLE))
    print(f"{SEED_VARIABLE}={seed}")
    with (
        running_proxy(cluster.kubeconfig, tmp_path) as api,
        watched_gangs(cluster.client, NAMESPACE) as gangs,
    ):
        for write in sorted(Random(seed).sample(WRITES, sized(2, soak=len(WRITES)))):
            name = f"killed-at-{write}"
            cluster.apply(jobset(name))
            with replica(api.kubeconfig, tmp_path) as doomed:
                cluster.wait_on(name, "spot-a")
                api.decide = _kill_at(write, doomed, fault)
                cluster.evict_one(name)
                wait_until(lambda doomed=doomed: doomed.process.poll() is not None, "it is killed")
            api.decide = lambda _: Fault.PASS
            cluster.forget_leader()
            with replica(api.kubeconfig, tmp_path):
                cluster.wait_on(name, "spot-b")
            state = cluster.state(name)
            assert (state["moves"], state["rank"]) == (1, 1), (
                f"one move, killed at write {write} (seed {seed})"
            )
            cluster.clear()
            cluster.forget_leader()
    assert not gangs.overlaps


def test_a_throttled_controller_waits_for_retry_after(cluster: LoopCluster, tmp_path: Path) -> None:
    with running_proxy(cluster.kubeconfig, tmp_path) as api, replica(api.kubeconfig, tmp_path) as controller:
        cluster.apply(jobset("throttled"))
        cluster.wait_on("throttled", "spot-a")
        refused = Counter[str]()

        def refuse_three(asked: ApiRequest) -> Fault:
            if not asked.is_write or refused["writes"] >= 3:
                return Fault.PASS
            refused["writes"] += 1
            return Fault.THROTTLE

        api.decide = refuse_three
        cluster.evict_one("throttled")
        cluster.wait_on("throttled", "spot-b")
        assert refused["writes"] == 3
        assert controller.number('holdfast_fallback_failed_writes_total{reason="429"}') == 3
        assert controller.leads()


def test_failed_requests_are_retried(cluster: LoopCluster, tmp_path: Path) -> None:
    with running_proxy(cluster.kubeconfig, tmp_path) as api, replica(api.kubeconfig, tmp_path):
        cluster.apply(jobset("failing"))
        cluster.wait_on("failing", "spot-a")
        seen = Counter[str]()

        def fail_every_other(asked: ApiRequest) -> Fault:
            if not asked.is_write:
                return Fault.PASS
            seen["writes"] += 1
            return (Fault.FAIL, Fault.PASS, Fault.LOSE_ANSWER, Fault.PASS)[seen["writes"] % 4]

        api.decide = fail_every_other
        cluster.evict_one("failing")
        cluster.wait_on("failing", "spot-b")
        assert cluster.state("failing")["moves"] == 1


def test_broken_watches_lose_no_event(cluster: LoopCluster, tmp_path: Path) -> None:
    with running_proxy(cluster.kubeconfig, tmp_path) as api, replica(api.kubeconfig, tmp_path) as controller:
        cluster.apply(jobset("unwatched"))
        cluster.wait_on("unwatched", "spot-a")
        lists = controller.number('holdfast_fallback_informer_lists{kind="pods"}')
        api.decide = lambda asked: Fault.LOSE if asked.watch else Fault.PASS
        api.break_watches()
        cluster.evict_one("unwatched")
        wait_until(lambda: cluster.runs_on("unwatched", "spot-a"), "JobSet restarts it meanwhile")
        api.decide = lambda _: Fault.PASS
        cluster.wait_on("unwatched", "spot-b")
        assert controller.number('holdfast_fallback_informer_lists{kind="pods"}') <= lists + 4


def test_the_controller_reconnects_to_an_api_server_that_restarts_on_another_port(
    cluster: LoopCluster, tmp_path: Path
) -> None:
    with replica(cluster.kubeconfig, tmp_path) as controller:
        cluster.apply(jobset("survives"))
        cluster.wait_on("survives", "spot-a")
        cluster.kill_api_server()
        controller.wait(lambda each: each.says("does not answer"), "it notices")
        cluster.start_again()
        controller.wait(Replica.leads, "the controller leads again")
        cluster.wait_on("survives", "spot-a")
        cluster.evict_one("survives")
        cluster.wait_on("survives", "spot-b")
        assert controller.process.poll() is None
        assert obj(cluster.job("survives")["spec"])["suspend"] is False


def _kill_at(write: int, doomed: Replica, fault: Fault) -> Callable[[ApiRequest], Fault]:
    seen = Counter[str]()

    def decide(asked: ApiRequest) -> Fault:
        if not asked.is_write or "/jobs" not in asked.path:
            return Fault.PASS
        seen["writes"] += 1
        if seen["writes"] != write:
            return Fault.PASS
        doomed.process.kill()
        return fault

    return decide
