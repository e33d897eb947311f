"""An AWS stack with live machines is destroyed in an order that leaves nothing, or says what it waits for.

The tests run in the order they stand in, on one stack: the first takes Karpenter away and is told what that holds up,
the second brings it back and goes on.
"""

import re
from collections.abc import Generator
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from holdfast.rehearsal.lifecycle.checks import left_in_clouds, left_in_cluster, retained
from holdfast.rehearsal.scenarios.manifests import load_example
from holdfast.rehearsal.scenarios.platform import training_platform
from holdfast.rehearsal.scenarios.spot_restart import leave_running
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.objects import mapping
from holdfast.simulator.kubernetes_provider import deletion
from holdfast.simulator.pulumi import EngineFailure
from holdfast.simulator.pulumi.faults import Faults
from holdfast.simulator.stacks import Stack
from tests.support.clusters.cloud_workspaces import cloud_workspace
from tests.support.clusters.control_plane import CHECKOUT

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json

pytestmark = [pytest.mark.cluster, pytest.mark.engine, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stack]:
    """The stack aws-dev, up, with a job that runs on spot."""
    workspace = cloud_workspace(tmp_path_factory.mktemp("aws"))
    found = Stack.named("aws-dev", workspace, report=lambda _: None)
    try:
        found.environment.start()
        with found.session() as rehearsal:
            rehearsal.up()
        client = KubeClient.from_kubeconfig(found.kubeconfig)
        platform = training_platform(client, found.name, lambda _: None)
        leave_running(platform, load_example(CHECKOUT, "jobset-spot", cloud="aws"))
        client.close()
        yield found
    finally:
        found.environment.remove()


@pytest.fixture
def client(stack: Stack) -> Generator[KubeClient]:
    found = KubeClient.from_kubeconfig(stack.kubeconfig)
    yield found
    found.close()


def _scale_karpenter(client: KubeClient, replicas: int) -> None:
    client.merge_patch(
        "apps/v1", "Deployment", "karpenter", {"spec": {"replicas": replicas}}, namespace="karpenter"
    )

    def is_so(found: "Json | None") -> bool:
        status = mapping((found or {}).get("status"))
        return (status.get("readyReplicas") or 0) == replicas and (status.get("replicas") or 0) == replicas

    client.wait_for(
        "apps/v1",
        "Deployment",
        "karpenter",
        namespace="karpenter",
        timeout_seconds=120,
        condition=is_so,
        what=f"Karpenter has {replicas} controllers",
    )


def test_what_karpenter_alone_can_end_is_named_when_karpenter_is_not_there(
    stack: Stack, client: KubeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deletion, "LONGEST_SECONDS", 20.0)
    _scale_karpenter(client, 0)
    with stack.session() as rehearsal, pytest.raises(EngineFailure) as failure:
        rehearsal.destroy()
    told = str(failure.value)
    assert re.search(
        r"NodePool cpu-spot still exists 20 s after its deletion: it owns NodeClaim cpu-spot-", told
    ), told
    assert "finalizer karpenter.sh/termination blocks it (Karpenter removes it when" in told, told
    assert client.list("karpenter.sh/v1", "NodeClaim"), "the machines are there, and nobody forgot them"


def test_the_next_destroy_goes_on_in_an_order_that_leaves_nothing(stack: Stack, client: KubeClient) -> None:
    _scale_karpenter(client, 2)
    kept = retained(stack.checkpoint())
    with stack.session() as rehearsal:
        said = rehearsal.destroy().stdout
    assert left_in_cluster(client) == [], "machines, pools or releases are left"
    assert left_in_clouds(stack.simulators(Faults()).clouds.objects(), kept) == [], "something is left in AWS"

    def at(what: str, name: str, done: str) -> int:
        found = re.search(rf"- +{re.escape(what)} {re.escape(name)} {done} ", said)
        assert found, f"{what} {name} was not {done}"
        return found.start()

    order = [
        ("kubernetes:karpenter.sh/v1:NodePool", "pool-cpu-spot-node-pool"),
        ("kubernetes:karpenter.k8s.aws/v1:EC2NodeClass", "pool-cpu-spot-node-class"),
        ("kubernetes:helm.sh/v3:Release", "karpenter-operator-controller"),
        ("aws:eks:Cluster", "cluster-control-plane-eks"),
        ("aws:ec2:Vpc", "network-private-vpc"),
    ]
    for earlier, later in pairwise(order):
        assert at(*earlier, "deleted") < at(*later, "deleting"), f"{later} went before {earlier} was gone"
