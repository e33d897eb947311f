"""Transfers between two real control planes, each with JobSet and KubeRay, through a proxy that cuts and loses."""

from datetime import UTC, datetime
from itertools import count
from random import Random

import pytest

from pulumi_holdfast.controller.jobs.observation import JobOutcome
from pulumi_holdfast.controller.jobs.pod_history import PodHistory
from pulumi_holdfast.controller.jobs.pods_and_nodes import Snapshot
from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.controller.other_clusters import copies
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import TRANSFER
from tests.soak.fault_proxy import ApiRequest, Fault
from tests.support.clusters.reconciler import NAMESPACE, RAY, LoopCluster, kind_of, wait_until
from tests.support.clusters.transfers import CLUSTER, HOME_ID, POOL, TwoClusters
from tests.support.json_objects import obj

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]


def is_gone(cluster: LoopCluster, name: str) -> bool:
    """Whether a cluster has neither a job with this name nor a pod of it."""
    return not cluster.job(name) and not cluster.pods(name)


def go_away(clusters: TwoClusters, name: str) -> None:
    """Move a job that runs at home to the other cluster."""
    clusters.apply_job(name)
    clusters.drive(
        name, cluster=CLUSTER, until=lambda: clusters.there.runs_on(name, POOL), what=f"{name} runs there"
    )


def write(cluster: LoopCluster, name: str, patch: Json) -> str | None:
    """Write to a job as its administrator; return the refusal, None if it is written."""
    try:
        cluster.change(name, patch)
    except ApiError as error:
        return str(error)
    return None


@pytest.mark.parametrize(
    ("kind", "fault"),
    [
        ("", Fault.PASS),
        ("", Fault.LOSE),
        ("", Fault.LOSE_ANSWER),
        (RAY, Fault.LOSE),
        (RAY, Fault.LOSE_ANSWER),
    ],
)
def test_a_job_runs_there_and_again_at_home_whatever_every_other_write_meets(
    clusters: TwoClusters, kind: str, fault: Fault
) -> None:
    name, writes, beside = f"{kind}away-{fault.value.replace('_', '-')}", count(), list[str]()

    def every_other(request: ApiRequest) -> Fault:
        if not request.is_write:
            return Fault.PASS
        if clusters.home.pods(name):
            beside.append(f"{request.method} while the job has pods at home")
        return Fault.PASS if next(writes) % 2 else fault

    clusters.front.decide = every_other
    go_away(clusters, name)

    refusal = write(clusters.home, name, {"spec": {"suspend": False}})
    assert refusal is not None
    assert "may run in another cluster" in refusal
    refusal = write(clusters.home, name, {"metadata": {"finalizers": None}})
    assert refusal is not None
    with pytest.raises(ApiError, match="deleted by its home"):
        clusters.there.delete(name)

    clusters.drive(name, cluster="", until=lambda: clusters.stage(name) == "Home", what=f"{name} is home")
    assert is_gone(clusters.there, name)
    clusters.suspend(name, suspended=False)
    wait_until(lambda: clusters.home.runs_on(name, "spot-a"), "it runs at home again")
    assert not beside
    clusters.home.delete(name)
    wait_until(lambda: is_gone(clusters.home, name), "without a transfer nothing holds a deleted job")


def test_a_copy_runs_on_while_the_clusters_are_separated_and_a_deleted_job_waits_for_it(
    clusters: TwoClusters,
) -> None:
    name = "separated"
    go_away(clusters, name)
    clusters.front.decide = lambda _: Fault.LOSE
    for _ in range(3):
        clusters.step(name, cluster="")

    assert clusters.stage(name) == "Returning"
    assert clusters.there.runs_on(name, POOL)
    assert obj(clusters.home.job(name)["spec"]).get("suspend") is True

    clusters.home.delete(name)
    clusters.step(name, cluster="")
    assert obj(clusters.home.job(name)["metadata"]).get("deletionTimestamp")

    clusters.front.decide = lambda _: Fault.PASS
    clusters.drive(name, cluster="", until=lambda: is_gone(clusters.home, name), what="the job is deleted")
    assert is_gone(clusters.there, name)


@pytest.mark.parametrize("name", ["completes", f"{RAY}completes"])
def test_a_copy_that_completes_completes_its_job(clusters: TwoClusters, name: str) -> None:
    go_away(clusters, name)
    complete: Json = {"metadata": {"annotations": {"holdfast.dev/complete": "true"}}}
    pods, gang = clusters.there.pods(name), clusters.there.gang(name)
    # A RayJob's program runs on its head.
    for pod in [each for each in pods if each not in gang] or gang:
        pod_name = str(obj(pod["metadata"])["name"])
        clusters.there.client.merge_patch("v1", "Pod", pod_name, complete, namespace=NAMESPACE)

    def outcome() -> JobOutcome | None:
        seen, _ = kind_of(name).observe(
            Snapshot(job=clusters.home.job(name), now=datetime.now(UTC)), PodHistory()
        )
        return seen.outcome

    clusters.drive(
        name, cluster=CLUSTER, until=lambda: outcome() is JobOutcome.COMPLETED, what="the job has completed"
    )
    clusters.drive(
        name, cluster=CLUSTER, until=lambda: clusters.stage(name) == "Home", what="the copy is removed"
    )
    assert is_gone(clusters.there, name)
    assert TRANSFER not in str(obj(clusters.home.job(name)["metadata"]).get("finalizers"))
    assert not clusters.home.pods(name)
    clusters.suspend(name, suspended=False)
    with pytest.raises(ApiError, match="only to end it as its copy"):
        clusters.end_at_home(name)
    assert outcome() is JobOutcome.COMPLETED
    clusters.home.delete(name)
    wait_until(lambda: is_gone(clusters.home, name), "it ran nowhere again")


@pytest.mark.parametrize("name", ["late", f"{RAY}late"])
def test_a_copy_that_a_late_request_creates_never_runs_and_is_removed(
    clusters: TwoClusters, name: str
) -> None:
    clusters.apply_job(name)
    job = clusters.home.job(name)
    copy = copies.copy_of(kind_of(name), job, home=HOME_ID, epoch=1, pool=POOL)
    clusters.there.client.create(copy)

    refusal = write(clusters.there, name, {"spec": {"suspend": False}})
    assert refusal is not None
    assert "only with the permit" in refusal

    def is_removed() -> bool:
        clusters.remove_leftovers()
        return is_gone(clusters.there, name)

    wait_until(is_removed, "a copy that no record names is removed")
    assert clusters.stage(name) == ""
    clusters.home.delete(name)


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["", RAY])
@pytest.mark.parametrize("seed", range(6))
def test_a_job_that_its_ladder_sends_to_and_fro_never_runs_twice_whatever_is_drawn(
    clusters: TwoClusters, seed: int, kind: str
) -> None:
    name, draw = f"{kind}drawn-{seed}", Random(seed)
    faults = [*[Fault.PASS] * 5, Fault.LOSE, Fault.LOSE_ANSWER, Fault.FAIL]
    clusters.apply_job(name)
    for _ in range(12):
        wanted, is_cut = draw.choice([CLUSTER, CLUSTER, ""]), draw.random() < 0.2
        clusters.front.decide = lambda _, is_cut=is_cut: Fault.LOSE if is_cut else draw.choice(faults)
        for _ in range(draw.randint(1, 12)):
            clusters.follow_ladder(name, wanted)
            clusters.step(name, cluster=wanted)
            counts = len(clusters.home.pods(name)), len(clusters.there.pods(name))
            assert 0 in counts, f"pods at home and there: {counts}"

    clusters.front.decide = lambda _: Fault.PASS

    def runs_at_home() -> bool:
        clusters.follow_ladder(name, "")
        return clusters.stage(name) in {"", "Home"} and clusters.home.runs_on(name, "spot-a")

    clusters.drive(name, cluster="", until=runs_at_home, what="it runs at home once nothing fails")
    assert is_gone(clusters.there, name)
    clusters.home.delete(name)
