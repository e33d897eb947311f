"""Clusters of a simulated cloud: their node groups are nodes, and their kubeconfig reaches the control plane."""

from dataclasses import replace

import pytest

from pulumi_holdfast.controller.kube.objects import labels_of, name_of
from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.ladder.labels import INSTANCE_TYPE, SYSTEM, ZONE
from pulumi_holdfast.rehearsal.engine import EngineFailure
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.support.clusters.cloud_program import EKS_CLUSTER, NODE_GROUP, eks
from tests.support.clusters.cloud_stack import CloudStack
from tests.support.command_line import nothing

pytestmark = [pytest.mark.cluster, pytest.mark.engine, pytest.mark.timeout(300)]


def test_a_node_group_creates_and_deletes_its_machines(stack: CloudStack, client: KubeClient) -> None:
    stack.preview(eks())
    assert client.list("v1", "Node") == []
    stack.up(eks())
    nodes = client.list("v1", "Node")
    assert len(nodes) == 2
    assert sorted(str(labels_of(node)[ZONE]) for node in nodes) == ["eu-west-1a", "eu-west-1b"]
    (group,) = stack.objects(NODE_GROUP)
    for node in nodes:
        labels = labels_of(node)
        assert labels["eks.amazonaws.com/nodegroup"] == group.outputs["nodeGroupName"]
        assert (labels[SYSTEM], labels[INSTANCE_TYPE]) == ("true", "m7i.large")
        taints = [mapping(each) for each in sequence(mapping(node["spec"]).get("taints"))]
        assert {"key": "CriticalAddonsOnly", "value": "true", "effect": "NoSchedule"} in taints
        assert mapping(mapping(node["status"])["capacity"])["cpu"] == "2"
    stack.destroy()
    assert client.list("v1", "Node") == []


def test_a_group_that_scales_down_drains_the_removed_machine(stack: CloudStack, client: KubeClient) -> None:
    stack.up(eks(machines=2))
    nodes = sorted(name_of(node) for node in client.list("v1", "Node"))
    for node in nodes:
        client.apply(_pod(f"on-{node[:8]}", node), field_manager="test")
    stack.up(eks(machines=1, labels={"team": "platform"}))
    (left,) = client.list("v1", "Node")
    assert labels_of(left)["team"] == "platform"
    pods = client.list("v1", "Pod", namespace="default")
    assert [mapping(pod["spec"])["nodeName"] for pod in pods] == [mapping(left["metadata"])["name"]]
    stack.destroy()


def _pod(name: str, node: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "c"}]},
    }


def test_other_nodes_are_unchanged(stack: CloudStack, client: KubeClient) -> None:
    by_hand: Json = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "by-hand"}}
    client.apply(by_hand, field_manager="test")
    stack.up(eks())
    assert len(client.list("v1", "Node")) == 3
    stack.destroy()
    (left,) = client.list("v1", "Node")
    assert mapping(left["metadata"])["name"] == "by-hand"
    client.delete("v1", "Node", "by-hand")


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


def test_the_first_preview_needs_no_cluster_and_the_first_up_creates_it_in_time(
    stack: CloudStack, client: KubeClient
) -> None:
    assert stack.preview(eks(name=stack.name)).changes["create"] > 8
    assert stack.up(eks(name=stack.name)).changed
    assert client.get("v1", "ConfigMap", f"conf-{stack.name}") is not None
    assert stack.up(eks(name=stack.name)).changed == 0
    stack.destroy()
    assert client.get("v1", "ConfigMap", f"conf-{stack.name}") is None


def test_a_missing_cluster_is_reported_as_by_the_plugin(stack: CloudStack) -> None:
    stack.up(eks(name=stack.name))
    _remove_cluster(stack)
    with pytest.raises(EngineFailure) as failure:
        stack.destroy()
    told = str(failure.value)
    assert "configured Kubernetes cluster is unreachable" in told
    assert "PULUMI_K8S_DELETE_UNREACHABLE" in told


def test_objects_of_a_lost_cluster_are_dropped_on_request(
    stack: CloudStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    stack.up(eks(name=stack.name))
    _remove_cluster(stack)
    monkeypatch.setenv("PULUMI_K8S_DELETE_UNREACHABLE", "true")
    stack.destroy()
    assert stack.checkpoint().resources == (), "the stack cannot be got rid of"


def test_a_deployer_without_access_is_rejected_before_any_change(
    stack: CloudStack, client: KubeClient
) -> None:
    stack.up(eks(name=stack.name))
    _lock_out(stack)
    with pytest.raises(EngineFailure, match="configured Kubernetes cluster is unreachable"):
        stack.destroy(nothing)
    assert client.get("v1", "ConfigMap", f"conf-{stack.name}") is not None
    assert stack.objects(EKS_CLUSTER)


def test_a_replaced_cluster_replaces_its_objects(stack: CloudStack, client: KubeClient) -> None:
    stack.up(eks(name=f"{stack.name}-one"))
    outcome = stack.up(eks(name=f"{stack.name}-two"))
    replaced = {step.summary for step in outcome.steps if step.operation == "replace"}
    assert "replace conf (kubernetes:core/v1:ConfigMap)" in replaced
    assert client.get("v1", "ConfigMap", f"conf-{stack.name}-one") is None
    stack.destroy()
