"""Controllers of two real clusters move a job to a tier in the other cluster and back, and never run it twice."""

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.kubernetes.fallback_policy import API_VERSION, KIND
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import LADDER
from pulumi_holdfast.ladder.ladder import ELSEWHERE_NEEDS_TIMEOUT
from tests.soak.fault_proxy import Fault
from tests.support.background import repeating
from tests.support.clusters.reconciler import (
    JOBSET,
    NAMESPACE,
    RAY,
    LoopCluster,
    Replica,
    job_of_kind,
    jobset,
    policy,
    replica,
    wait_until,
)
from tests.support.clusters.transfers import CLUSTER, POOL, TwoClusters
from tests.support.json_objects import obj, objects

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

#: A tier in the other cluster, which one failure ends.
AWAY: Final[Json] = {"cluster": CLUSTER, "pool": POOL, "maxFailures": 1, "procurementTimeout": "15m"}
TIER: Final = f"{CLUSTER}/{POOL}"


@dataclass
class BothSides:
    """Two clusters with their controllers. `overlaps`: when a job had pods in both at once."""

    clusters: TwoClusters
    controller: Replica
    overlaps: list[str] = field(default_factory=list[str])

    @property
    def home(self) -> LoopCluster:
        """The job's own cluster."""
        return self.clusters.home

    @property
    def there(self) -> LoopCluster:
        """The other one."""
        return self.clusters.there

    def wait_away(self, name: str) -> None:
        """Wait until a job runs there, and its home knows."""
        wait_until(
            lambda: self.there.runs_on(name, POOL) and "waiting_since" not in self.home.state(name),
            f"{name} runs there",
        )
        state = self.home.state(name)
        assert (state["phase"], state["pool"]) == ("Away", TIER)
        assert not self.home.pods(name)

    def wait_gone(self, cluster: LoopCluster, name: str) -> None:
        """Wait until a cluster has neither the job nor a pod of it."""
        wait_until(lambda: not cluster.job(name) and not cluster.pods(name), f"nothing of {name} is left")

    def look(self, name: str) -> None:
        """Record a job with pods at home while one and the same pod was there, before and after it."""
        before, at_home, after = (_uids(each, name) for each in (self.there, self.home, self.there))
        if at_home and before & after:
            self.overlaps.append(f"{name} at home: {at_home}, and there: {before & after}")


def _uids(cluster: LoopCluster, name: str) -> set[str]:
    return {str(obj(pod["metadata"])["uid"]) for pod in cluster.pods(name)}


@contextmanager
def controllers(
    clusters: TwoClusters, folder: Path, name: str, *tiers: Json, **options: str
) -> Generator[BothSides]:
    """Both controllers for the length of the block, with a job on the ladder of `tiers` at home."""
    clusters.home.apply(policy(*tiers, **options))
    clusters.there.apply(policy({"pool": POOL, "maxFailures": 3}, {"pool": "on-demand"}))
    for each in (clusters.home, clusters.there):
        each.forget_leader()
    with ExitStack() as stack:
        stack.enter_context(replica(clusters.there.kubeconfig, folder)).wait_ready()
        both = BothSides(clusters, stack.enter_context(home_controller(clusters, folder)))
        stack.enter_context(repeating(lambda: both.look(name), 0.05))
        yield both
    assert not both.overlaps, "two generations would write one checkpoint"


@contextmanager
def home_controller(clusters: TwoClusters, folder: Path) -> Generator[Replica]:
    """A controller at home that knows the other cluster."""
    with replica(
        clusters.home.kubeconfig, folder, "--cluster", f"{CLUSTER}={clusters.front.kubeconfig}"
    ) as started:
        yield started.wait_ready()


@pytest.mark.parametrize("name", ["dry", f"{RAY}dry"])
def test_a_job_without_capacity_at_home_runs_there_until_its_failures_there_are_spent(
    clusters: TwoClusters, tmp_path: Path, name: str
) -> None:
    dry: Json = {"pool": "spot-dry", "procurementTimeout": "2s"}
    with controllers(clusters, tmp_path, name, dry, AWAY, {"pool": "on-demand"}) as both:
        both.home.apply(job_of_kind(name, pool="spot-dry"))
        both.wait_away(name)

        both.there.evict_one(name)
        both.home.wait_on(name, "on-demand")
        assert {"NoCapacity", "Moved", "MaxFailuresReached"} <= set(both.home.said(name))
        uses = objects(obj(both.home.state(name)["ledger"])["uses"])
        assert TIER in [use["pool"] for use in uses]
        both.wait_gone(both.there, name)
        both.home.clear()


def test_a_job_comes_back_to_capacity_that_is_held_for_it_at_home(
    clusters: TwoClusters, tmp_path: Path
) -> None:
    spot: Json = {"pool": "spot-a", "maxFailures": 1}
    with controllers(
        clusters, tmp_path, "returns", spot, AWAY, {"pool": "on-demand"}, returnAfter="5s"
    ) as both:
        both.home.apply(jobset("returns"))
        both.home.wait_on("returns", "spot-a")
        both.home.evict_one("returns")
        wait_until(lambda: "FailbackStarted" in both.home.said("returns"), "capacity is bought at home")
        both.home.wait_on("returns", "spot-a")
        assert "Moved" in both.home.said("returns")
        both.wait_gone(both.there, "returns")
        both.home.clear()


def test_a_separation_stops_and_starts_nothing_and_a_job_that_is_deleted_in_it_is_deleted_there(
    clusters: TwoClusters, tmp_path: Path
) -> None:
    spot: Json = {"pool": "spot-a", "maxFailures": 1}
    with controllers(clusters, tmp_path, "cut", spot, AWAY, {"pool": "on-demand"}) as both:
        both.home.apply(jobset("cut"))
        both.home.wait_on("cut", "spot-a")
        both.home.evict_one("cut")
        both.wait_away("cut")
        pods = _uids(both.there, "cut")

        clusters.front.decide = lambda _: Fault.LOSE
        both.controller.wait(lambda each: each.says("does not answer"), "home notices the separation")
        both.home.client.delete(JOBSET, "JobSet", "cut", namespace=NAMESPACE)
        wait_until(lambda: clusters.stage("cut") == "Returning", "home records the recall")
        both.controller.kill()
        assert _uids(both.there, "cut") == pods
        assert both.home.job("cut"), "the name is taken until the copy is gone"
        assert not both.home.pods("cut")

        clusters.front.decide = lambda _: Fault.PASS
        both.home.forget_leader()
        with home_controller(clusters, tmp_path):
            both.wait_gone(both.home, "cut")
            both.wait_gone(both.there, "cut")


FIRST: Final[Json] = {"pool": "spot-a", "procurementTimeout": "15m"}
LAST: Final[Json] = {"pool": "on-demand"}


@pytest.mark.parametrize(
    ("refusal", "tiers"),
    [
        (None, [FIRST, AWAY, {**AWAY, "pool": "spot-a"}, {**AWAY, "cluster": "us-west-2"}, LAST]),
        (None, [FIRST, {**AWAY, "pool": "on-demand"}, LAST]),
        ("each pool may be in a ladder once", [FIRST, AWAY, AWAY, LAST]),
        (ELSEWHERE_NEEDS_TIMEOUT, [FIRST, {"pool": "on-demand", "cluster": CLUSTER, "maxFailures": 1}, LAST]),
        ("the first and the last tier are in", [AWAY, LAST]),
        ("the first and the last tier are in", [FIRST, {"pool": POOL, "cluster": CLUSTER}]),
    ],
)
def test_a_tier_elsewhere_has_a_limit_and_a_tier_of_its_own_cluster_on_both_sides(
    clusters: TwoClusters, refusal: str | None, tiers: Sequence[Json]
) -> None:
    ladder: Json = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": LADDER, "namespace": NAMESPACE},
        "spec": {"tiers": list(tiers)},
    }
    found = _refusal(clusters.home, ladder)
    assert (found is None) == (refusal is None)
    assert (refusal or "") in (found or "")


def _refusal(cluster: LoopCluster, manifest: Json) -> str | None:
    try:
        cluster.client.apply(manifest, field_manager="test", dry_run=True)
    except ApiError as error:
        return str(error)
    return None
