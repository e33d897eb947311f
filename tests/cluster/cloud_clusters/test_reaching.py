"""A cloud's API server is there as long as its cluster is, and for whom the cluster lets in."""

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.pulumi import EngineFailure
from tests.support.clusters.cloud_program import EKS_CLUSTER, eks
from tests.support.clusters.cloud_stack import CloudStack
from tests.support.command_line import nothing

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json

pytestmark = [pytest.mark.cluster, pytest.mark.engine, pytest.mark.timeout(300)]


def _remove_cluster(stack: CloudStack) -> None:
    with stack.cloud().changing() as console:
        for one in console.of_type(EKS_CLUSTER):
            console.remove(one.type, one.id)


def _lock_out(stack: CloudStack) -> None:
    """Take from the cluster's creator what the creation gave."""
    with stack.cloud().changing() as console:
        (cluster,) = console.of_type(EKS_CLUSTER)
        access: Json = {"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": False}
        console.put(replace(cluster, inputs={**cluster.inputs, "accessConfig": access}))


def test_the_first_preview_asks_no_cluster_and_the_first_up_makes_it_in_time(
    stack: CloudStack, client: KubeClient
) -> None:
    assert stack.preview(eks(name=stack.name)).changes["create"] > 8, (
        "what is inside is planned before there is a cluster"
    )
    assert stack.up(eks(name=stack.name)).changed, "the cluster was not there when what is inside was made"
    assert client.get("v1", "ConfigMap", f"conf-{stack.name}") is not None, "nothing was made inside"
    assert stack.up(eks(name=stack.name)).changed == 0, "a second up has something to do"
    stack.destroy()
    assert client.get("v1", "ConfigMap", f"conf-{stack.name}") is None, "what was inside outlived the stack"


def test_a_cluster_that_is_gone_is_told_in_the_plugins_words(stack: CloudStack) -> None:
    stack.up(eks(name=stack.name))
    _remove_cluster(stack)
    with pytest.raises(EngineFailure) as failure:
        stack.destroy()
    told = str(failure.value)
    assert "configured Kubernetes cluster is unreachable: unable to load schema information" in told, told
    assert "no such host" in told, "it does not say that nothing is there"
    assert "PULUMI_K8S_DELETE_UNREACHABLE" in told, "nobody learns how to go on"


def test_what_was_inside_a_lost_cluster_is_dropped_when_one_says_so(
    stack: CloudStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack.up(eks(name=stack.name))
    _remove_cluster(stack)
    monkeypatch.setenv("PULUMI_K8S_DELETE_UNREACHABLE", "true")
    stack.destroy()
    assert stack.checkpoint().resources == (), "the stack cannot be got rid of"


def test_a_deployer_who_lost_access_is_refused_before_anything_is_done(
    stack: CloudStack, client: KubeClient
) -> None:
    stack.up(eks(name=stack.name))
    _lock_out(stack)
    with pytest.raises(EngineFailure, match="the server has asked for the client to provide credentials"):
        stack.destroy(nothing)
    assert client.get("v1", "ConfigMap", f"conf-{stack.name}") is not None, "it was deleted all the same"
    assert stack.objects(EKS_CLUSTER), "the cluster went before what is inside it"


def test_a_replaced_cluster_replaces_what_is_inside(stack: CloudStack, client: KubeClient) -> None:
    stack.up(eks(name=f"{stack.name}-one"))
    outcome = stack.up(eks(name=f"{stack.name}-two"))
    replaced = {step.told for step in outcome.steps if step.operation == "replace"}
    assert "replace conf (kubernetes:core/v1:ConfigMap)" in replaced, replaced
    assert client.get("v1", "ConfigMap", f"conf-{stack.name}-one") is None, "the old one is left"
    stack.destroy()
