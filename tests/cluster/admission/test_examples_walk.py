"""The examples can follow their ladder down to on-demand on every cloud without changes.

Each example goes through the admission of one of its cloud's stacks on a real API server; then its pods do, on every tier
of its ladder, as the fallback controller places them: by the pool's name and nothing else.
"""

from collections.abc import Callable, Generator
from contextlib import ExitStack
from functools import cache

import pytest

from pulumi_holdfast.ladder.labels import POOL
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.support.builders.training_jobs import marked, selectors_of, templates_of
from tests.support.clusters.admitted_examples import (
    NAMESPACES,
    STACKS,
    Walk,
    running_for_examples,
    unmatched,
    untolerated,
    walking,
)
from tests.support.clusters.job_admission import is_judged
from tests.support.json_objects import obj

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Generator[Callable[[str], KubeClient]]:
    """A control plane for a cloud: GKE's has admission of its own, the others share one."""
    with ExitStack() as running:

        @cache
        def started(profile: str) -> KubeClient:
            folder = tmp_path_factory.mktemp(f"walk-{profile}")
            return running.enter_context(running_for_examples(folder, profile))

        yield lambda cloud: started("gcp" if cloud == "gcp" else "local")


@pytest.fixture(scope="module", params=STACKS)
def walk(request: pytest.FixtureRequest, clusters: Callable[[str], KubeClient]) -> Generator[Walk]:
    """One cloud's admission, ladders and examples."""
    cloud = str(request.param)
    with walking(cloud, clusters(cloud)) as found:
        yield found


def test_every_example_follows_from_the_first_tier_of_its_ladder(walk: Walk) -> None:
    found = list(walk.jobs())
    assert len(found) >= 3
    for namespace, job in found:
        first = walk.ladders[namespace][0]["pool"]
        assert marked(job) == ["worker"]
        assert selectors_of(job)["worker"] == {POOL: first}


def test_an_example_that_requests_too_much_would_be_rejected(walk: Walk) -> None:
    for namespace in NAMESPACES:
        assert is_judged(walk.client, namespace), "so that all the others are admitted means something"


def test_its_workers_fit_every_tier_down_to_on_demand(walk: Walk) -> None:
    for namespace, job in walk.jobs():
        tiers = walk.ladders[namespace]
        assert obj(tiers[-1]["facts"])["capacity"] == "on-demand"
        for tier in tiers:
            pod = walk.pod_of(templates_of(job)["worker"], namespace, str(tier["pool"]))
            assert not unmatched(pod, tier), f"{job['kind']}: {tier['pool']} has no such nodes"
            assert not untolerated(pod, tier), f"{job['kind']}: {tier['pool']} keeps its pods out"


def test_other_pods_of_the_examples_do_not_select_spot(walk: Walk) -> None:
    for namespace, job in walk.jobs():
        for name in templates_of(job).keys() - {"worker"}:
            pod = walk.pod_of(templates_of(job)[name], namespace, None)
            assert not obj(obj(pod["spec"]).get("nodeSelector")), f"{name} belongs on the default pool"
            spot = walk.ladders[namespace][0]
            assert untolerated(pod, spot), f"{name} must not land on {spot['pool']} by chance"
