"""The dependencies of an Azure stack's resources; read backwards, the order of their deletion."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.builders.azure_stacks import PLATFORMS, stack

if TYPE_CHECKING:
    from tests.support.fakes.pulumi_engine import Recorded

OPERATORS = frozenset({"operators-jobset-controller", "operators-kuberay-controller"})
CLUSTER = "cluster-control-plane-aks"
DEPLOYER_ACCESS = "cluster-deployer-role-assignment"
SUBNET_GRANT = "cluster-identity-subnet-assignment"

every_stack = pytest.mark.parametrize("name", PLATFORMS)


def names(name: str, *kinds: str) -> set[str]:
    """The logical names of a stack's resources of these types."""
    return {resource.name for kind in kinds for resource in stack(name).of(kind)}


def before(name: str, resource: Recorded) -> set[str]:
    """The resources that a resource depends on, which are deleted after it."""
    return stack(name).everything_before(resource)


def pools(name: str) -> list[Recorded]:
    """A stack's NodePools, or its scale sets."""
    return [*stack(name).of(":NodePool"), *stack(name).of(":AgentPool")]


@every_stack
def test_namespaces_are_deleted_before_what_their_finalizers_need(name: str) -> None:
    namespaces = [found for found in stack(name).of(":Namespace") if found.parent.startswith("namespace-")]
    assert namespaces, "teams train somewhere"
    for namespace in namespaces:
        earlier = before(name, namespace)
        assert earlier >= OPERATORS, (
            "a RayJob has KubeRay's finalizer: without KubeRay the namespace is never deleted"
        )
        assert earlier >= {pool.name for pool in pools(name)}, "pods that still run write to the end"
        assert "fallback-policy-crd" in earlier, "its ladder is one of these"
        assert earlier >= names(name, "MutatingAdmissionPolicyBinding"), (
            "pods without tolerations stay pending"
        )
        own = f"checkpoint-access-of-{namespace.parent.removeprefix('namespace-')}"
        assert earlier >= {f"{own}-credential", f"{own}-checkpoints-assignment"}, (
            "a pod writes its last checkpoint with them"
        )


@every_stack
def test_the_deployers_access_is_created_first_and_deleted_last(name: str) -> None:
    assert DEPLOYER_ACCESS in before(name, stack(name).one(":ManagedCluster")), (
        "Azure takes minutes to heed a grant"
    )
    for resource in stack(name):
        if resource.type.startswith("kubernetes:"):
            assert DEPLOYER_ACCESS in before(name, resource), (
                f"{resource.name} could be neither made nor deleted"
            )


@every_stack
def test_the_cluster_depends_on_its_role_assignments(name: str) -> None:
    earlier = before(name, stack(name).one(":ManagedCluster"))
    assert SUBNET_GRANT in earlier, "AKS refuses it otherwise, and node auto-provisioning makes no machine"
    has_key = PLATFORMS[name]().cluster.disk_encryption_set is not None
    assert ("cluster-identity-disks-assignment" in earlier) == has_key, "nor does it encrypt a disk"


@every_stack
def test_scale_sets_depend_on_each_other_and_node_pools_do_not(name: str) -> None:
    found = pools(name)
    assert len(found) == len(PLATFORMS[name]().pools), "one for each that is written"
    for place, pool in enumerate(found):
        others = {other.name for other in found} - {pool.name}
        in_turn = (
            {earlier.name for earlier in found[:place]} if pool.type.endswith(":AgentPool") else set[str]()
        )
        assert before(name, pool) & others == in_turn, (
            f"{pool.name}: AKS fails scale sets that it makes in one network at once, and NodePools are nothing to it"
        )


@every_stack
def test_every_pool_is_deleted_before_what_drains_it(name: str) -> None:
    for pool in pools(name):
        assert CLUSTER in before(name, pool), "AKS, or its Karpenter, drains the nodes and ends them"


@every_stack
def test_a_node_class_is_deleted_after_its_pool(name: str) -> None:
    for pool in stack(name).of(":NodePool"):
        own = pool.name.replace("-node-pool", "-node-class")
        assert own in before(name, pool), "Karpenter keeps it until no machine is of it"


@every_stack
def test_objects_in_the_cluster_are_deleted_before_it(name: str) -> None:
    inside = [resource for resource in stack(name) if resource.type.startswith("kubernetes:")]
    assert len(inside) > 15, "operators, admission, namespaces"
    for resource in inside:
        assert resource.provider == "cluster-kubernetes", f"{resource.name} would go to another cluster"
        assert CLUSTER in before(name, resource), f"{resource.name} could not be deleted"


@every_stack
def test_checkpoints_are_outside_the_node_resource_group(name: str) -> None:
    account = stack(name).one(":StorageAccount")
    assert before(name, account) & names(name, ":ResourceGroup") == {"checkpoints-group"}, (
        "deletion of the resource group deletes everything in it"
    )


@every_stack
def test_the_network_is_deleted_last_except_for_the_resource_group(name: str) -> None:
    network = names(name, ":VirtualNetwork", ":Subnet", ":NatGateway", ":PublicIPAddress")
    assert bool(network) == ("brought" not in name), "a network that is brought stays as it is"
    for resource in [stack(name).one(":ManagedCluster"), *stack(name).of(":AgentPool")]:
        assert before(name, resource) >= {*network, "group-group"}, (
            f"what {resource.name} starts drains through it"
        )
