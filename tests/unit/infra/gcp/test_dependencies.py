"""The dependencies of a GCP stack's resources; read backwards, the order of their deletion."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.builders.gcp_stacks import CLASSES, PLATFORMS, stack
from tests.support.inputs import value

if TYPE_CHECKING:
    from tests.support.fakes.pulumi_engine import Recorded

OPERATORS = frozenset({"operators-jobset-controller", "operators-kuberay-controller"})
CLUSTER = "cluster-control-plane-gke"
SYSTEM = "cluster-system-nodes"
NODE_ROLES = frozenset({"cluster-node-logs-and-metrics", "cluster-node-images"})

every_stack = pytest.mark.parametrize("name", PLATFORMS)


def names(name: str, *kinds: str) -> set[str]:
    """The logical names of a stack's resources of these types."""
    return {resource.name for kind in kinds for resource in stack(name).of(kind)}


def before(name: str, resource: Recorded) -> set[str]:
    """The resources that a resource depends on, which are deleted after it."""
    return stack(name).everything_before(resource)


@every_stack
def test_namespaces_are_deleted_before_what_their_finalizers_need(name: str) -> None:
    namespaces = [found for found in stack(name).of(":Namespace") if found.parent.startswith("namespace-")]
    assert namespaces, "teams train somewhere"
    for namespace in namespaces:
        earlier = before(name, namespace)
        assert earlier >= OPERATORS, (
            "a RayJob has KubeRay's finalizer: without KubeRay the namespace is never deleted"
        )
        assert earlier >= names(name, ":NodePool", ":ComputeClass"), "pods that still run write to the end"
        assert "fallback-policy-crd" in earlier, "its ladder is one of these"
        assert "fallback-controller-deployment" in earlier, "a job that is half way is not left there"
        assert earlier >= names(name, "MutatingAdmissionPolicyBinding"), (
            "pods without tolerations stay pending"
        )
        own = namespace.parent.removeprefix("namespace-")
        assert f"checkpoint-access-of-{own}-trainers" in earlier, "a pod writes its last checkpoint with it"


@every_stack
def test_every_pool_depends_on_the_system_pool(name: str) -> None:
    pools = [pool for pool in stack(name).of(":NodePool") if pool.name != SYSTEM]
    assert len(pools) == len(PLATFORMS[name]().pools), "one node pool for each that is written"
    for pool in pools:
        assert SYSTEM in before(name, pool), "GKE taints GPU nodes only where there are nodes without GPUs"


@every_stack
def test_no_pool_depends_on_another(name: str) -> None:
    pools = names(name, ":NodePool")
    for pool in stack(name).of(":NodePool"):
        assert not before(name, pool) & pools - {SYSTEM}, (
            f"{pool.name} waits for what is none of its business"
        )


def test_a_compute_class_depends_on_the_pools_that_it_names() -> None:
    classes = stack("with-classes").of(":ComputeClass")
    assert {str(value(found, "metadata", "name")) for found in classes} == {*CLASSES}, (
        "those that are written"
    )
    in_order = sorted(classes, key=lambda found: CLASSES.index(str(value(found, "metadata", "name"))))
    for found, pool in zip(in_order, ("a100-spot", "a100"), strict=True):
        assert f"pool-{pool}-node-pool" in before("with-classes", found), (
            "GKE shows a class unhealthy whose pool it does not find"
        )


@every_stack
def test_grants_to_pods_depend_on_the_workload_identity_pool(name: str) -> None:
    grants = [
        found
        for found in stack(name)
        if str(value(found, "member")).startswith(("principal://", "principalSet://"))
    ]
    assert len(grants) == len(PLATFORMS[name]().namespaces), "each namespace is let in to its checkpoints"
    for grant in grants:
        assert CLUSTER in before(name, grant), "400 Identity Pool does not exist, in a project's first hour"


@every_stack
def test_nodes_are_deleted_before_their_log_permissions(name: str) -> None:
    for resource in [*stack(name).of(":Cluster"), *stack(name).of(":NodePool")]:
        assert before(name, resource) >= NODE_ROLES, f"the nodes of {resource.name} would have no roles"


@every_stack
def test_objects_in_the_cluster_are_deleted_before_it_and_its_system_nodes(name: str) -> None:
    inside = [resource for resource in stack(name) if resource.type.startswith("kubernetes:")]
    assert len(inside) > 15, "operators, admission, namespaces"
    for resource in inside:
        assert resource.provider == "cluster-kubernetes", f"{resource.name} would go to another cluster"
        assert before(name, resource) >= {CLUSTER, SYSTEM}, (
            f"{resource.name} could not be deleted, and its operator not run"
        )


@every_stack
def test_users_of_a_key_depend_on_its_grant(name: str) -> None:
    for kind, grant, has_key in (
        (":Cluster", "cluster-key-grant", PLATFORMS[name]().cluster.database_key),
        (":Bucket", "checkpoints-key-use", PLATFORMS[name]().checkpoints.kms_key),
    ):
        is_there = grant in before(name, stack(name).one(kind))
        assert is_there == (has_key is not None), f"{kind} is refused without {grant}, and needs none else"


@every_stack
def test_the_network_is_deleted_last(name: str) -> None:
    network = names(name, ":Network", ":Subnetwork", ":Router", ":RouterNat")
    assert bool(network) == (name != "brought"), "a network that is brought stays as it is"
    for resource in [*stack(name).of(":Cluster"), *stack(name).of(":NodePool")]:
        assert before(name, resource) >= network, f"what {resource.name} starts drains through it"


@every_stack
def test_the_fallback_controller_is_deleted_before_the_pools(name: str) -> None:
    controller = stack(name).one(":Deployment", "fallback-controller-deployment")
    assert before(name, controller) >= names(name, ":NodePool"), (
        "nodes that go would look like evictions to it"
    )
    assert not before(name, controller) & names(name, "TrainingNamespace"), "and jobs go before it"
