"""The lifecycle of an AWS stack in an isolated network, in an account with the Spot role, on the real engine.

The tests run in the order they stand in, on one stack.
"""

import re
from base64 import b64encode
from collections.abc import Generator

import pulumi
import pytest

from pulumi_holdfast.aws.control_plane.access import ApiServer, Caller, kubeconfig
from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.rehearsal.clouds.simulated_clouds import SimulatedClouds
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, CloudState
from pulumi_holdfast.rehearsal.control_plane.configuration import read_cluster
from pulumi_holdfast.rehearsal.engine import (
    CommandOutcome,
    EngineFailure,
    Rehearsal,
    Subject,
    kubernetes_plugin,
)
from pulumi_holdfast.rehearsal.engine.faults import Faults
from pulumi_holdfast.rehearsal.engine.workspace import EngineFolder
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.lifecycle.checks import left_in_cluster
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.scenarios.manifests import load_example
from pulumi_holdfast.rehearsal.scenarios.platform import apply, training_platform
from pulumi_holdfast.rehearsal.stacks import Stack
from tests.support.builders.aws_stacks import CHARTS, IMAGES, ISSUER
from tests.support.builders.configurations import Document, aws_document, entry, list_of, section
from tests.support.clusters.cloud_workspaces import workspace_of
from tests.support.clusters.control_plane import CHECKOUT
from tests.support.command_line import Deletions
from tests.support.fakes.spot_role_account import ROLE, create_spot_role

pytestmark = [pytest.mark.cluster, pytest.mark.engine, pytest.mark.timeout(900)]

STACK = "aws-isolated"
THERE = "there"
SERVER = "https://there.gr7.us-east-2.eks.amazonaws.com"
RAYJOB = ("ray.io/v1", "RayJob", "train-with-ray")
WORKLOADS = (("apps/v1", "Deployment"), ("apps/v1", "DaemonSet"))


def _isolated(document: Document) -> None:
    document.update(protected=False, mirror={"charts": CHARTS, "images": IMAGES})
    section(document, "network").update(zones=["us-west-2a", "us-west-2b"], isolated=True)
    # A worker of the RayJob fits in nothing smaller.
    entry(document, "pools", 1).update(sizes=["4xlarge"])
    document.update(
        clusters=[{"name": THERE, "stack": f"organization/{THERE}/{THERE}"}],
        acceptsFrom=[{"name": "us-east-1", "issuer": ISSUER, "namespaces": ["vision"]}],
    )
    list_of(entry(document, "namespaces", 0), "ladder").insert(
        1, {"cluster": THERE, "pool": "a100", "procurementTimeout": "20m"}
    )


def _export_other_stack(workspace: Workspace, authority: bytes) -> None:
    """Bring up the stack to which jobs move: its outputs, in the state that both share."""
    certificates = b64encode(authority).decode()
    server = ApiServer(
        cluster_name=THERE, region="us-east-2", endpoint=SERVER, certificate_authority=certificates
    )

    def program() -> None:
        pulumi.export("kubeconfig", kubeconfig(server, Caller()))

    place = EngineFolder.of(STACK, workspace)
    clouds = SimulatedClouds(
        folder=place.cloud_states, checkpoint=place.checkpoint(THERE, THERE), faults=Faults()
    )
    subject = Subject(
        program=program, project={"name": THERE, "runtime": "python"}, settings={"config": {}}, packages=()
    )
    with Rehearsal.open(THERE, workspace, subject=subject, providers=clouds, place=STACK) as opened:
        opened.up()


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Generator[Stack]:
    """The stack, of which nothing is there yet but its surroundings, and Spot's role in the account."""
    workspace = workspace_of(tmp_path_factory.mktemp("aws"), STACK, aws_document(_isolated))
    found = Stack.named(STACK, workspace, report=lambda _: None)
    create_spot_role(_aws(found))
    try:
        found.environment.start()
        # Any certificate: nothing answers at its address.
        _export_other_stack(workspace, read_cluster(found.kubeconfig).authority)
        yield found
    finally:
        found.environment.remove()


@pytest.fixture
def client(stack: Stack) -> Generator[KubeClient]:
    found = KubeClient.from_kubeconfig(stack.kubeconfig)
    yield found
    found.close()


def _aws(stack: Stack) -> CloudState:
    return CloudState(stack.folder.cloud_states / "aws.json")


def _spot_role(stack: Stack) -> CloudObject:
    (role,) = _aws(stack).read().of_type(ROLE)
    return role


def _images(client: KubeClient) -> list[str]:
    pods = [
        mapping(mapping(mapping(workload["spec"])["template"])["spec"])
        for kind in WORKLOADS
        for workload in client.list(*kind)
    ]
    return [str(mapping(container)["image"]) for pod in pods for container in sequence(pod["containers"])]


def test_it_adopts_the_spot_role_of_the_account(stack: Stack) -> None:
    before = _spot_role(stack)
    with stack.session() as rehearsal:
        made = rehearsal.up()
        again = rehearsal.up(judged=True)
    assert made.changes["import"] == 1
    assert "update" not in made.changes
    assert _spot_role(stack).inputs == before.inputs
    assert again.changed == 0, f"a second up changes {[step.summary for step in again.steps]}"


def test_jobs_may_move_to_a_stack_and_those_of_another_cluster_may_come(
    stack: Stack, client: KubeClient
) -> None:
    policy = mapping(client.get("holdfast.dev/v1alpha1", "FallbackPolicy", "ladder", "vision"))
    tiers = [mapping(tier) for tier in sequence(mapping(policy["spec"])["tiers"])]
    assert [tier.get("cluster") for tier in tiers] == [None, THERE, None]
    deployment = mapping(client.get("apps/v1", "Deployment", "fallback-controller", "holdfast-system"))
    pod = mapping(mapping(mapping(deployment["spec"])["template"])["spec"])
    assert f"'audience': '{SERVER}'" in str(pod["volumes"])
    clusters = mapping(client.get("v1", "ConfigMap", "fallback-controller-clusters", "holdfast-system"))
    assert SERVER in str(mapping(clusters["data"])[THERE])
    cloud = _aws(stack).read()
    (trusted,) = cloud.of_type("aws:eks/identityProviderConfig:IdentityProviderConfig")
    (cluster,) = cloud.of_type("aws:eks/cluster:Cluster")
    asked = mapping(trusted.inputs["oidc"])
    assert (asked["issuerUrl"], asked["clientId"]) == (ISSUER, cluster.outputs["endpoint"])
    bound = {
        str(mapping(each["metadata"])["namespace"])
        for each in client.list("rbac.authorization.k8s.io/v1", "RoleBinding")
        if mapping(each["metadata"])["name"] == "fallback-copies"
    }
    assert bound == {"vision"}


def test_every_image_in_the_cluster_comes_from_the_mirror(stack: Stack, client: KubeClient) -> None:
    images = _images(client)
    assert len(images) >= 3
    assert [image for image in images if not image.startswith(f"{IMAGES}/")] == [], "it would never start"


def test_machines_get_the_instance_profile_of_the_stack(stack: Stack, client: KubeClient) -> None:
    (profile,) = _aws(stack).read().of_type("aws:iam/instanceProfile:InstanceProfile")
    for found in client.list("karpenter.k8s.aws/v1", "EC2NodeClass"):
        assert mapping(found["spec"])["instanceProfile"] == profile.outputs["name"]


def test_a_rayjob_runs_on_spot(stack: Stack, client: KubeClient) -> None:
    platform = training_platform(client, stack.name, lambda _: None)
    apply(platform, load_example(CHECKOUT, "rayjob-spot", cloud="aws"))

    def runs(found: "Json | None") -> bool:
        return mapping((found or {}).get("status")).get("jobDeploymentStatus") == "Running"

    client.wait_for(
        *RAYJOB, namespace=platform.namespace, timeout_seconds=180, condition=runs, what="the RayJob runs"
    )
    bought = [
        mapping(mapping(claim["metadata"])["labels"]) for claim in client.list("karpenter.sh/v1", "NodeClaim")
    ]
    assert "spot" in {str(labels["karpenter.sh/capacity-type"]) for labels in bought}


def test_machines_of_karpenter_are_no_drift(stack: Stack) -> None:
    with stack.session() as rehearsal:
        found = rehearsal.refresh()
        after = rehearsal.up(judged=True)
    assert found.changed == 0, f"a refresh finds {[step.summary for step in found.steps]}"
    assert after.changed == 0, f"an up with machines running changes {[step.summary for step in after.steps]}"


@pytest.fixture(scope="module")
def blocked(stack: Stack) -> EngineFailure:
    """The failure of a destroy with a RayJob and its machines running, while Karpenter has no replicas."""
    client = KubeClient.from_kubeconfig(stack.kubeconfig)
    assert client.list("karpenter.sh/v1", "NodeClaim")
    _scale_karpenter(client, 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kubernetes_plugin, "LONGEST_DELETE_SECONDS", 20.0)
        with stack.session() as rehearsal, pytest.raises(EngineFailure) as failure:
            rehearsal.destroy()
    assert client.list("karpenter.sh/v1", "NodeClaim")
    _scale_karpenter(client, 2)
    client.close()
    return failure.value


@pytest.fixture(scope="module")
def destroyed(stack: Stack, blocked: EngineFailure) -> CommandOutcome:
    """The stack after the next destroy, with Karpenter running again."""
    with stack.session() as rehearsal:
        return rehearsal.destroy()


def _scale_karpenter(client: KubeClient, replicas: int) -> None:
    patch: Json = {"spec": {"replicas": replicas}}
    client.merge_patch("apps/v1", "Deployment", "karpenter", patch, namespace="karpenter")

    def is_scaled(found: "Json | None") -> bool:
        status = mapping((found or {}).get("status"))
        return (status.get("readyReplicas") or 0) == (status.get("replicas") or 0) == replicas

    client.wait_for(
        "apps/v1",
        "Deployment",
        "karpenter",
        namespace="karpenter",
        timeout_seconds=120,
        condition=is_scaled,
        what=f"Karpenter has {replicas} replicas",
    )


def test_a_destroy_without_karpenter_ends_at_the_pools_whose_machines_are_left(
    blocked: EngineFailure,
) -> None:
    assert re.search(r"pool-\S+-node-pool: timed out waiting for the condition", str(blocked)), blocked


def test_a_destroy_under_a_running_rayjob_leaves_only_the_role_of_the_account(
    stack: Stack, client: KubeClient, destroyed: CommandOutcome
) -> None:
    assert destroyed.problems == ()
    assert left_in_cluster(client) == []
    (left,) = _aws(stack).read().all()
    assert left.type == ROLE
    assert left.inputs["tags"] == {"owner": "platform"}


@pytest.mark.parametrize(
    ("first", "then"),
    [
        # What trains, and what its finalizers wait for.
        (":Namespace main-namespace-", ":NodePool main-pool-"),
        (":Namespace main-namespace-", ":Release main-operators-"),
        # Machines are ended by Karpenter, which is let do so.
        (":NodePool main-pool-", ":Release "),
        (":EC2NodeClass main-pool-", ":Release main-karpenter-operator-"),
        (":EC2NodeClass main-pool-", "aws:eks:AccessEntry main-node-access-"),
        (":Release main-karpenter-operator-controller", "aws:eks:PodIdentityAssociation main-karpenter-"),
        (":Release main-karpenter-operator-controller", "aws:iam:RolePolicy main-karpenter-"),
        (":Release main-karpenter-operator-controller", "aws:sqs:Queue main-karpenter-"),
        (":Release main-karpenter-operator-controller", "aws:iam:InstanceProfile main-karpenter-"),
        # All that is inside goes while its deployer is let in and its pods have nodes.
        ("kubernetes:", "aws:eks:AccessPolicyAssociation main-cluster-admins-"),
        ("kubernetes:", "aws:eks:Addon main-cluster-"),
        ("kubernetes:", "aws:eks:NodeGroup main-cluster-"),
        ("aws:eks:Addon main-cluster-services-", "aws:eks:NodeGroup main-cluster-"),
        ("aws:eks:NodeGroup main-cluster-", "aws:eks:Addon main-cluster-addons-"),
        ("aws:eks:Addon main-cluster-", "aws:eks:Cluster main-cluster-"),
        ("aws:eks:Cluster main-cluster-", "aws:kms:Key main-cluster-"),
        # What everything drains through.
        ("aws:eks:Cluster main-cluster-", "aws:ec2:VpcEndpoint main-network-"),
        ("aws:ec2:VpcEndpoint main-network-", "aws:ec2:Vpc main-network-"),
    ],
)
def test_it_is_destroyed_in_an_order_that_leaves_nothing(
    blocked: EngineFailure, destroyed: CommandOutcome, first: str, then: str
) -> None:
    gone = Deletions.told_in(blocked.outcome.stdout + destroyed.stdout)
    earlier, later = gone.matching(first), gone.matching(then)
    assert earlier, f"nothing like {first} was deleted"
    assert later, f"nothing like {then} was deleted"
    assert gone.too_early(earlier, later) == [], f"it went before all of {first} was gone"


def test_node_classes_outlive_their_pools(blocked: EngineFailure, destroyed: CommandOutcome) -> None:
    gone = Deletions.told_in(blocked.outcome.stdout + destroyed.stdout)
    for pool in gone.matching(":NodePool main-pool-"):
        (own,) = gone.matching(f":EC2NodeClass {pool.split()[1].replace('node-pool', 'node-class')}")
        assert gone.too_early([pool], [own]) == []
