"""No number and size of a tenant's objects stops the controller: its probe, its Lease, its memory, other tenants' moves."""

from collections.abc import Callable, Generator
from pathlib import Path

import pytest

from pulumi_holdfast.ladder.json import Json
from tests.support.clusters.hostile import (
    admit_hostile,
    event,
    judged,
    large_jobset,
    large_pod,
    large_rayjob,
    pod_of_victim,
    throw,
)
from tests.support.clusters.reconciler import LoopCluster, Replica, jobset, loop_cluster, policy, replica
from tests.support.soak import sized

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(sized(400, soak=7200))]

# What the API server admits of the large ones takes it a second each.
ATTACKS = {
    "jobsets": (large_jobset, sized(8, soak=300)),
    "rayjobs": (large_rayjob, sized(6, soak=300)),
    "large-pods": (large_pod, sized(40, soak=1000)),
    "pods": (pod_of_victim, sized(600, soak=12_000)),
    "events": (event, sized(600, soak=30_000)),
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Generator[LoopCluster]:
    """A cluster with a well-behaved tenant and a hostile one."""
    with loop_cluster(tmp_path_factory.mktemp("bounds"), has_ray=True) as found:
        found.apply(policy())
        admit_hostile(found)
        yield found


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_hostile_tenant_neither_stops_nor_fills_the_controller(
    cluster: LoopCluster, tmp_path: Path, attack: str
) -> None:
    make: Callable[[int], Json] = ATTACKS[attack][0]
    number = ATTACKS[attack][1]
    with replica(cluster.kubeconfig, tmp_path) as controller:
        controller.wait(Replica.leads, "it leads")
        cluster.apply(jobset(attack))
        cluster.wait_on(attack, "spot-a")
        with judged(cluster, controller) as found:
            assert throw(cluster.client, [make(each) for each in range(number)]) == number
            cluster.evict_one(attack)
            cluster.wait_on(attack, "spot-b", seconds=600)
            with replica(cluster.kubeconfig, tmp_path) as standby:
                standby.wait(lambda each: each.answers("/healthz") == "ok", "it has started")
                with judged(cluster, standby):
                    standby.wait_ready()
        cluster.delete(attack)
        print(f"{attack}: {number} objects, {found}")
        assert controller.terminate() == 0
