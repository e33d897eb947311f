"""The dependencies of a stack's resources in every cloud; read backwards, the order of their deletion."""

import pytest

from tests.support.builders import aws_stacks, azure_stacks, gcp_stacks, local_stacks
from tests.support.fakes.pulumi_engine import Recorded, Recording
from tests.support.inputs import value

OPERATORS = frozenset({"main-operators-jobset-controller", "main-operators-kuberay-controller"})
KARPENTER = frozenset({"main-karpenter-operator-controller", "main-karpenter-operator-crds"})
AKS, GKE = "main-cluster-control-plane-aks", "main-cluster-control-plane-gke"
GKE_SYSTEM, AKS_DEPLOYER = "main-cluster-system-nodes", "main-cluster-deployer-role-assignment"
EKS_ACCESS = (":AccessPolicyAssociation", ":Addon", ":NodeGroup", ":SecurityGroupIngressRule", ":Cluster")

MODULES = {"aws": aws_stacks, "azure": azure_stacks, "gcp": gcp_stacks, "local": local_stacks}
STACKS = [(cloud, name) for cloud, module in MODULES.items() for name in module.PLATFORMS]
every_stack = pytest.mark.parametrize(("cloud", "name"), STACKS)
every_cloud_stack = pytest.mark.parametrize(
    ("cloud", "name"), [(cloud, name) for cloud, name in STACKS if cloud != "local"]
)
every_aws_stack = pytest.mark.parametrize("name", aws_stacks.PLATFORMS)
every_gcp_stack = pytest.mark.parametrize("name", gcp_stacks.PLATFORMS)

#: What lets pods of a namespace write to their checkpoints.
CHECKPOINT_ACCESS = {
    "aws": ("association",),
    "azure": ("credential", "checkpoints-assignment"),
    "gcp": ("trainers",),
    "local": (),
}
#: What drains the nodes of pools, or must exist before they join.
DRAINING = {
    "aws": KARPENTER | OPERATORS | {"main-device-plugins-nvidia", "main-node-access-entry"},
    "azure": frozenset({AKS}),
    "gcp": frozenset({GKE_SYSTEM}),
    "local": frozenset({"main-karpenter-operator-controller"}),
}
NETWORK = {
    "aws": (":Vpc", ":Subnet", ":Route", ":NatGateway", ":VpcEndpoint", ":RouteTableAssociation", ":InternetGateway"),
    "azure": (":VirtualNetwork", ":Subnet", ":NatGateway", ":PublicIPAddress"),
    "gcp": (":Network", ":Subnetwork", ":Router", ":RouterNat"),
}  # fmt: skip
USERS_OF_NETWORK = {
    "aws": (":Cluster", ":NodeGroup", ":EC2NodeClass"),
    "azure": (":ManagedCluster", ":AgentPool"),
    "gcp": (":Cluster", ":NodePool"),
}


def names(recording: Recording, *kinds: str) -> set[str]:
    """The logical names of a stack's resources of these types."""
    return {resource.name for kind in kinds for resource in recording.of(kind)}


def pools(recording: Recording) -> list[Recorded]:
    """A stack's NodePools, or its scale sets, without the system nodes."""
    found = [*recording.of(":NodePool"), *recording.of(":AgentPool")]
    return [pool for pool in found if pool.name != GKE_SYSTEM]


@every_stack
def test_namespaces_are_deleted_before_what_their_finalizers_need(cloud: str, name: str) -> None:
    recording = MODULES[cloud].stack(name)
    namespaces = [found for found in recording.of(":Namespace") if found.parent.startswith("main-namespace-")]
    assert namespaces, "teams train somewhere"
    for namespace in namespaces:
        earlier = recording.everything_before(namespace)
        assert earlier >= OPERATORS, "a namespace with a RayJob is never deleted without KubeRay"
        assert earlier >= names(recording, ":NodePool", ":AgentPool", ":ComputeClass"), (
            "pods hold their nodes"
        )
        assert "main-fallback-policy" in earlier, "its ladder is one of these"
        assert "main-fallback-controller-deployment" in earlier, "a job that is half way is not left there"
        assert earlier >= names(recording, "MutatingAdmissionPolicyBinding"), "pods would stay pending"
        own = f"main-checkpoint-access-of-{namespace.parent.removeprefix('main-namespace-')}"
        access = {f"{own}-{part}" for part in CHECKPOINT_ACCESS[cloud]}
        assert earlier >= access


@every_stack
def test_pools_are_deleted_before_what_drains_their_nodes(cloud: str, name: str) -> None:
    recording = MODULES[cloud].stack(name)
    assert len(pools(recording)) == len(MODULES[cloud].PLATFORMS[name]().pools)
    for pool in pools(recording):
        earlier = recording.everything_before(pool)
        assert earlier >= DRAINING[cloud]
        if pool.type.startswith("kubernetes:"):
            assert pool.name.replace("node-pool", "node-class") in earlier


@every_stack
def test_the_fallback_controller_is_deleted_before_the_pools(cloud: str, name: str) -> None:
    recording = MODULES[cloud].stack(name)
    earlier = recording.everything_before(recording.one(":Deployment", "main-fallback-controller-deployment"))
    assert earlier >= {pool.name for pool in pools(recording)}, "removed nodes look like evictions"
    assert not earlier & names(recording, "TrainingNamespace"), "and jobs go before it"


def needs_of_objects(cloud: str, recording: Recording) -> set[str]:
    """What an object in the cluster needs to be created, deleted and reconciled."""
    if cloud != "aws":
        return {"azure": {AKS, AKS_DEPLOYER}, "gcp": {GKE, GKE_SYSTEM}}[cloud]
    access = {found for found in names(recording, *EKS_ACCESS) if found.startswith("main-cluster-")}
    assert access >= {
        "main-cluster-control-plane-eks",
        "main-cluster-system-nodes",
        "main-cluster-services-coredns",
    }, "all"
    return access


@every_cloud_stack
def test_objects_in_the_cluster_are_deleted_before_access_and_nodes(cloud: str, name: str) -> None:
    recording = MODULES[cloud].stack(name)
    inside = [resource for resource in recording if resource.type.startswith("kubernetes:")]
    assert len(inside) > 15
    needed = needs_of_objects(cloud, recording)
    for resource in inside:
        assert resource.provider == "main-cluster-kubernetes", f"{resource.name} would go to another cluster"
        assert recording.everything_before(resource) >= needed, f"{resource.name} could not be deleted"


@every_cloud_stack
def test_the_network_is_deleted_last(cloud: str, name: str) -> None:
    recording = MODULES[cloud].stack(name)
    # Nothing drains through the subnet of a file system.
    found = {each for each in names(recording, *NETWORK[cloud]) if "-volume-" not in each}
    network = {each for each in found if cloud != "aws" or "network-" in each}
    assert bool(network) == ("brought" not in name), "an existing network stays as it is"
    group = {"main-group-group"} if cloud == "azure" else set[str]()
    for kind in USERS_OF_NETWORK[cloud]:
        for resource in recording.of(kind):
            earlier = recording.everything_before(resource)
            assert earlier >= network | group, f"what {resource.name} starts drains through it"


@every_aws_stack
def test_karpenter_is_deleted_after_node_classes(name: str) -> None:
    recording = aws_stacks.stack(name)
    classes = recording.of(":EC2NodeClass")
    assert len(classes) == len(recording.of(":NodePool"))
    for node_class in classes:
        assert recording.everything_before(node_class) >= KARPENTER


@every_aws_stack
def test_spot_pools_and_identities_of_pods_depend_on_what_they_need_to_start(name: str) -> None:
    recording = aws_stacks.stack(name)
    spot = [pool for pool in recording.of(":NodePool") if "spot" in str(value(pool, "spec", "template"))]
    assert spot
    for pool in spot:
        earlier = recording.everything_before(pool)
        assert "main-spot-role" in earlier, "AuthFailure.ServiceLinkedRoleCreationNotPermitted"
    for association in recording.of(":PodIdentityAssociation"):
        earlier = recording.everything_before(association)
        assert "main-cluster-addons-pod-identity" in earlier, f"{association.name} needs the agent"


@pytest.mark.parametrize(
    ("cloud", "name"), [(cloud, name) for cloud in ("azure", "gcp") for name in MODULES[cloud].PLATFORMS]
)
def test_scale_sets_depend_on_each_other_and_no_other_pools_do(cloud: str, name: str) -> None:
    recording = MODULES[cloud].stack(name)
    found = pools(recording)
    for place, pool in enumerate(found):
        others = {other.name for other in found} - {pool.name}
        before = {each.name for each in found[:place]} if pool.type.endswith(":AgentPool") else set[str]()
        earlier = recording.everything_before(pool)
        assert earlier & others == before, f"{pool.name}: AKS fails scale sets made at once in one network"


def test_a_compute_class_depends_on_the_pools_that_it_names() -> None:
    recording = gcp_stacks.stack("with-classes")
    classes = {str(value(each, "metadata", "name")): each for each in recording.of(":ComputeClass")}
    assert classes.keys() == {*gcp_stacks.CLASSES}
    for name, pool in zip(gcp_stacks.CLASSES, ("a100-spot", "a100"), strict=True):
        earlier = recording.everything_before(classes[name])
        assert f"main-pool-{pool}-node-pool" in earlier, "GKE shows a class without its pool as unhealthy"


@every_gcp_stack
def test_grants_to_jobs_follow_the_identity_pool(name: str) -> None:
    recording, platform = gcp_stacks.stack(name), gcp_stacks.PLATFORMS[name]()
    grants = [
        each
        for each in recording
        if str(value(each, "member")).startswith(("principal://", "principalSet://"))
        # Identities of other clusters are in pools of their own.
        and ".svc.id.goog/" in str(value(each, "member"))
    ]
    reads = sum(len(each.namespaces) for each in platform.storage if each.kind == "bucket")
    # On the folder of its checkpoints and on their bucket, and on what it reads.
    assert len(grants) == 2 * len(platform.namespaces) + reads
    for grant in grants:
        earlier = recording.everything_before(grant)
        assert GKE in earlier
