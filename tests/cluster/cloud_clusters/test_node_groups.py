"""The machines of a stand-in cloud's node groups are nodes of the stack's control plane."""

import pytest

from holdfast.scheduling.json import Json
from holdfast.scheduling.labels import INSTANCE_TYPE, SYSTEM, ZONE
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.objects import mapping, sequence
from tests.support.clusters.cloud_program import NODE_GROUP, eks
from tests.support.clusters.cloud_stack import CloudStack

pytestmark = [pytest.mark.cluster, pytest.mark.engine, pytest.mark.timeout(300)]


def _labels(node: Json) -> Json:
    return mapping(mapping(node["metadata"]).get("labels"))


def test_a_node_group_brings_its_machines_and_takes_them_with_it(
    stack: CloudStack, client: KubeClient
) -> None:
    stack.preview(eks())
    assert client.list("v1", "Node") == [], "a preview bought machines"
    stack.up(eks())
    nodes = client.list("v1", "Node")
    assert len(nodes) == 2, "as many machines as the group desires"
    assert sorted(str(_labels(node)[ZONE]) for node in nodes) == ["eu-west-1a", "eu-west-1b"], (
        "one in each subnet's zone"
    )
    (group,) = stack.objects(NODE_GROUP)
    for node in nodes:
        labels = _labels(node)
        assert labels["eks.amazonaws.com/nodegroup"] == group.outputs["nodeGroupName"], "it is the group's"
        assert (labels[SYSTEM], labels[INSTANCE_TYPE]) == ("true", "m7i.large"), "as the group labels it"
        taints = [mapping(each) for each in sequence(mapping(node["spec"]).get("taints"))]
        assert {"key": "CriticalAddonsOnly", "value": "true", "effect": "NoSchedule"} in taints, (
            "the group's taint is in EKS's own words"
        )
        assert mapping(mapping(node["status"])["capacity"])["cpu"] == "2", "it holds what its type holds"
    stack.destroy()
    assert client.list("v1", "Node") == [], "machines outlived their group"


def test_a_group_that_is_scaled_down_drains_the_machine_that_goes(
    stack: CloudStack, client: KubeClient
) -> None:
    stack.up(eks(machines=2))
    nodes = sorted(str(mapping(node["metadata"])["name"]) for node in client.list("v1", "Node"))
    for node in nodes:
        client.apply(_pod(f"on-{node[:8]}", node), field_manager="test")
    stack.up(eks(machines=1, labels={"team": "platform"}))
    (left,) = client.list("v1", "Node")
    assert _labels(left)["team"] == "platform", "a label of the group reaches the machines that run"
    pods = client.list("v1", "Pod", namespace="default")
    assert [mapping(pod["spec"])["nodeName"] for pod in pods] == [mapping(left["metadata"])["name"]], (
        "a pod is left on a machine that is gone"
    )
    stack.destroy()


def _pod(name: str, node: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "c"}]},
    }


def test_nodes_that_others_made_are_left_alone(stack: CloudStack, client: KubeClient) -> None:
    by_hand: Json = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "by-hand"}}
    client.apply(by_hand, field_manager="test")
    stack.up(eks())
    assert len(client.list("v1", "Node")) == 3, "the machines join what is there"
    stack.destroy()
    (left,) = client.list("v1", "Node")
    assert mapping(left["metadata"])["name"] == "by-hand", "a node of somebody else's went with the group"
    client.delete("v1", "Node", "by-hand")
