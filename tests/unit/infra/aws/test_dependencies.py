"""The dependencies of an AWS stack's resources; read backwards, the order of their deletion."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.builders.aws_stacks import PLATFORMS, stack
from tests.support.inputs import value

if TYPE_CHECKING:
    from tests.support.fakes.pulumi_engine import Recorded

OPERATORS = frozenset({"operators-jobset-controller", "operators-kuberay-controller"})
KARPENTER = frozenset({"karpenter-operator-controller", "karpenter-operator-crds"})
PLUGINS = frozenset({"device-plugins-nvidia"})

pytestmark = pytest.mark.parametrize("name", PLATFORMS)


def names(name: str, *kinds: str) -> set[str]:
    """The logical names of a stack's resources of these types."""
    return {resource.name for kind in kinds for resource in stack(name).of(kind)}


def before(name: str, resource: Recorded) -> set[str]:
    """The resources that a resource depends on, which are deleted after it."""
    return stack(name).everything_before(resource)


def inside(name: str) -> list[Recorded]:
    """The resources in the cluster."""
    return [resource for resource in stack(name) if resource.type.startswith("kubernetes:")]


def test_namespaces_are_deleted_before_what_their_finalizers_need(name: str) -> None:
    namespaces = [found for found in stack(name).of(":Namespace") if found.parent.startswith("namespace-")]
    assert namespaces, "teams train somewhere"
    for namespace in namespaces:
        earlier = before(name, namespace)
        assert earlier >= OPERATORS, (
            "a RayJob has KubeRay's finalizer: without KubeRay the namespace is never deleted"
        )
        assert earlier >= names(name, ":NodePool"), (
            "pods that still run hold their nodes, and with them the pools"
        )
        assert "fallback-policy-crd" in earlier, "its ladder is one of these"
        assert "fallback-controller-deployment" in earlier, "a job that is half way is not left there"
        assert earlier >= names(name, "MutatingAdmissionPolicyBinding"), (
            "pods without tolerations stay pending"
        )
        assert f"checkpoint-access-of-{namespace.parent.removeprefix('namespace-')}-association" in earlier, (
            "a pod is given its identity when it is admitted, and writes its last checkpoint with it"
        )


def test_pools_are_deleted_before_what_removes_their_nodes(name: str) -> None:
    for pool in stack(name).of(":NodePool"):
        earlier = before(name, pool)
        assert earlier >= KARPENTER, "it alone takes the finalizers off NodeClaims"
        assert earlier >= OPERATORS | PLUGINS, (
            "what drains may be a job of theirs, and nodes are ready by plugins"
        )
        assert pool.name.replace("node-pool", "node-class") in earlier, "its machines are ended as it says"
        assert "node-access-entry" in earlier, (
            "a node that is not let in cannot tell that its pods have ended"
        )


def test_node_classes_are_deleted_before_karpenter(name: str) -> None:
    classes = stack(name).of(":EC2NodeClass")
    assert len(classes) == len(stack(name).of(":NodePool")), "each pool has its own"
    for node_class in classes:
        assert before(name, node_class) >= KARPENTER, (
            "it removes the instance profile it made, then the finalizer"
        )


def test_spot_pools_depend_on_the_spot_role(name: str) -> None:
    spot = [pool for pool in stack(name).of(":NodePool") if "spot" in str(value(pool, "spec", "template"))]
    assert spot, "that is what the stack is for"
    for pool in spot:
        assert "spot-role-role" in before(name, pool), "AuthFailure.ServiceLinkedRoleCreationNotPermitted"


def test_karpenter_is_deleted_before_its_permissions(name: str) -> None:
    recording = stack(name)
    earlier = before(name, recording.one(":Release", "karpenter-operator-controller"))
    own = {
        resource.name
        for resource in recording
        if resource.custom and resource.type.startswith("aws:") and resource.name.startswith("karpenter-")
    }
    assert len(own) > 15, "its nodes' role, its own role with six policies, the queue with five rules"
    assert earlier >= own, "on its way out it still ends instances and reads the queue"


def test_pod_identities_depend_on_the_agent(name: str) -> None:
    for association in stack(name).of(":PodIdentityAssociation"):
        if association.name != "cluster-services-ebs-identity":
            assert "cluster-addons-pod-identity" in before(name, association), (
                f"{association.name} needs the agent"
            )


def test_objects_in_the_cluster_are_deleted_before_access_and_nodes(name: str) -> None:
    kinds = (":AccessPolicyAssociation", ":Addon", ":NodeGroup", ":SecurityGroupIngressRule", ":Cluster")
    access = {found for found in names(name, *kinds) if found.startswith("cluster-")}
    assert access >= {"cluster-control-plane-eks", "cluster-system-nodes", "cluster-services-coredns"}, (
        "the cluster with its nodes and its DNS"
    )
    for resource in inside(name):
        assert resource.provider == "cluster-kubernetes", f"{resource.name} would go to another cluster"
        assert before(name, resource) >= access, (
            f"{resource.name} could not be deleted, and its operator not run"
        )


def test_the_cluster_depends_on_its_log_group_key_and_role(name: str) -> None:
    earlier = before(name, stack(name).one(":Cluster"))
    assert earlier >= {
        "cluster-control-plane-logs",
        "cluster-control-plane-secrets-key",
        "cluster-control-plane-iam-AmazonEKSClusterPolicy",
    }, "EKS would make the group itself, and cannot read its own state without the key"


def test_add_ons_depend_on_nodes_or_nodes_on_add_ons(name: str) -> None:
    recording = stack(name)
    agents = {"cluster-addons-vpc-cni", "cluster-addons-kube-proxy", "cluster-addons-pod-identity"}
    assert before(name, recording.one(":NodeGroup")) >= agents, "a node without a network never gets ready"
    for addon in ("cluster-services-coredns", "cluster-services-ebs"):
        assert "cluster-system-nodes" in before(name, recording.one(":Addon", addon)), (
            "EKS waits 20 minutes for them and fails"
        )


def test_the_network_is_deleted_last(name: str) -> None:
    recording = stack(name)
    kinds = (
        ":Vpc",
        ":Subnet",
        ":Route",
        ":NatGateway",
        ":VpcEndpoint",
        ":RouteTableAssociation",
        ":InternetGateway",
    )
    network = {found for found in names(name, *kinds) if found.startswith("network-")}
    assert bool(network) == (name != "brought"), "a network that is brought stays as it is"
    for resource in [*recording.of(":Cluster"), *recording.of(":NodeGroup"), *recording.of(":EC2NodeClass")]:
        assert before(name, resource) >= network, f"what {resource.name} starts drains through it"


def test_the_fallback_controller_is_deleted_before_the_pools(name: str) -> None:
    controller = stack(name).one(":Deployment", "fallback-controller-deployment")
    assert before(name, controller) >= names(name, ":NodePool"), (
        "nodes that go would look like evictions to it"
    )
    assert not before(name, controller) & names(name, "TrainingNamespace"), "and jobs go before it"
