"""No number and size of a tenant's objects stops the controller: its probe, its memory, other tenants' moves, its next start."""

from collections.abc import Callable
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
from tests.support.clusters.reconciler import jobset, loop_cluster, policy, replica
from tests.support.soak import sized

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(sized(1200, soak=14_400))]

#: What the API server admits of the large ones takes it seconds each; a controller without bounds stops at the first one.
ATTACKS: dict[Callable[[int], Json], int] = {
    large_jobset: sized(1, soak=300),
    large_rayjob: sized(1, soak=300),
    large_pod: sized(4, soak=1000),
    pod_of_victim: sized(100, soak=12_000),
    event: sized(100, soak=30_000),
}


def test_a_hostile_tenant_neither_stops_nor_fills_the_controller(tmp_path: Path) -> None:
    with loop_cluster(tmp_path, has_ray=True) as cluster, replica(cluster.kubeconfig, tmp_path) as controller:
        cluster.apply(policy(), jobset("other"))
        admit_hostile(cluster)
        cluster.wait_on("other", "spot-a", seconds=600)
        with judged(controller) as found:
            for make, number in ATTACKS.items():
                assert throw(cluster.client, [make(each) for each in range(number)]) == number
        with judged(controller):
            cluster.evict_one("other")
            cluster.wait_on("other", "spot-b", seconds=600)
        with replica(cluster.kubeconfig, tmp_path) as standby:
            standby.wait(lambda each: each.answers("/healthz") == "ok", "it has started", seconds=600)
            with judged(standby) as at_start:
                standby.wait(lambda each: each.answers("/readyz") == "ok", "it is ready", seconds=600)
        print(f"beside it {found}, at the start {at_start}")
        assert controller.terminate() == 0
