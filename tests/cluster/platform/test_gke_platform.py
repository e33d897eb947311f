"""The examples for GKE run unchanged on the stack gcp-prod: a JobSet on spot GPUs, and a RayJob with workers on spot.

The tests share one stack and run in their order; each removes what it created.
"""

from collections.abc import Callable, Generator

import pytest

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.lifecycle.run import provisioner_for
from pulumi_holdfast.rehearsal.scenarios.expectations import unmet_by_rayjob, unmet_by_restart
from pulumi_holdfast.rehearsal.scenarios.manifests import acting_as, load_example
from pulumi_holdfast.rehearsal.scenarios.platform import Platform
from pulumi_holdfast.rehearsal.scenarios.pod_placement import rayjob_placement
from pulumi_holdfast.rehearsal.scenarios.spot_restart import restart_on_spot
from pulumi_holdfast.rehearsal.stacks import Stack
from tests.support.clusters.cloud_workspaces import cloud_workspace
from tests.support.clusters.control_plane import CHECKOUT

pytestmark = [pytest.mark.soak, pytest.mark.cluster, pytest.mark.engine, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stack]:
    """The stack gcp-prod, which has pools of GPUs, up."""
    found = Stack.named("gcp-prod", cloud_workspace(tmp_path_factory.mktemp("gke")), report=lambda _: None)
    try:
        found.environment.start()
        with found.session() as rehearsal:
            rehearsal.up()
        yield found
    finally:
        found.environment.remove()


@pytest.fixture
def client(stack: Stack) -> Generator[KubeClient]:
    found = KubeClient.from_kubeconfig(stack.kubeconfig)
    yield found
    found.close()


def _platform(
    stack: Stack, client: KubeClient, namespace: str, say: Callable[[str], None] = lambda _: None
) -> Platform:
    return Platform(client=client, namespace=namespace, say=say, machines=provisioner_for(stack, client))


def _example(platform: Platform, name: str) -> Json:
    return acting_as(load_example(CHECKOUT, name, cloud="gcp"), platform.trainer())


def test_a_job_on_spot_gpus_restarts_after_a_lost_node(stack: Stack, client: KubeClient) -> None:
    said: list[str] = []
    platform = _platform(stack, client, "vision", said.append)
    seen = restart_on_spot(platform, _example(platform, "jobset-spot-gpu"))
    assert unmet_by_restart(seen) == []
    assert {(each.pool, each.gpus) for each in (*seen.before, *seen.after)} == {("a100-spot", 8)}
    assert any(line.endswith("is preempted, with a grace period of 25 s for pods") for line in said)


def test_only_the_workers_of_a_rayjob_run_on_spot(stack: Stack, client: KubeClient) -> None:
    platform = _platform(stack, client, "tabular")
    seen = rayjob_placement(platform, _example(platform, "rayjob-spot"))
    assert unmet_by_rayjob(seen) == []
    assert {each.pool for each in seen.workers} == {"cpu-spot"}
