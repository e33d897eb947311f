"""Stacks that use clusters of other owners, on the real engine: one program makes the cluster, a stack uses it."""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import yaml

from pulumi_holdfast.kubernetes.outputs import (
    CHECKPOINT_ACCOUNT,
    CHECKPOINT_KEYS,
    OUTPUTS,
    TOKEN_EXCHANGES,
    read_outputs,
)
from pulumi_holdfast.rehearsal.clouds.azure.names import CALLER
from pulumi_holdfast.rehearsal.clouds.state import CloudState
from pulumi_holdfast.rehearsal.engine import CommandOutcome, EngineFailure, Rehearsal, Subject
from pulumi_holdfast.rehearsal.engine.faults import Faults
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.stacks import Stack
from pulumi_holdfast.rehearsal.stacks.stack import StackSimulators
from tests.support.builders import aks_components, aws_components, gke_components
from tests.support.builders.configurations import (
    NAMESPACES,
    Document,
    aws_document,
    gcp_document,
    list_of,
    nap_document,
)
from tests.support.clusters.cloud_workspaces import cloud_workspace
from tests.support.doc_pages import ROOT

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.engine,
    pytest.mark.timeout(900),
    # Importing an SDK module imports the deprecated types in it as well.
    pytest.mark.filterwarnings("ignore::DeprecationWarning:pulumi_"),
]

#: Outputs that some clouds have.
OF_SOME = {CHECKPOINT_ACCOUNT, CHECKPOINT_KEYS, TOKEN_EXCHANGES}
OWNER, STACK, PROJECT = "owner", "guest", "team-ml"
PLANS = ROOT / "tests/engine/existing_clusters"


def make_eks() -> None:
    """The owner's program on AWS: a cluster with system nodes."""
    from pulumi_holdfast.aws.control_plane.component import EksCluster

    EksCluster("shared", replace(aws_components.cluster_args(), cluster_name="shared"))


def make_gke() -> None:
    """The owner's program on Google Cloud."""
    from pulumi_holdfast.gcp.control_plane.component import GkeCluster

    GkeCluster("shared", replace(gke_components.cluster_args(), cluster_name="shared", project=PROJECT))


def make_aks() -> None:
    """The owner's program on Azure, which makes the guest's deployer an administrator."""
    from pulumi_holdfast.azure.control_plane.component import AksCluster
    from pulumi_holdfast.azure.training_cluster import StackResourceGroup, StackResourceGroupArgs

    location = aks_components.LOCATION
    group = StackResourceGroup(
        "group", StackResourceGroupArgs(group_name="platform", location=location, protected=False)
    )
    args = replace(aks_components.cluster_args(), cluster_name="shared", resource_group=group.group_name)
    AksCluster("shared", replace(args, deployer=CALLER))


def _on(document: Document, **cluster: str) -> Document:
    document.pop("network")
    return {**document, "protected": False, "cluster": {**cluster}}


def _gcp() -> Document:
    document = gcp_document()
    for pool in list_of(document, "pools"):
        assert isinstance(pool, dict)
        pool.pop("zones", None)
    return document


@dataclass(frozen=True, kw_only=True)
class Cloud:
    """A cloud with the owner's program, and the guest's document and settings."""

    package: str
    make: Callable[[], None]
    document: Document
    settings: Document
    cluster: str


CLOUDS: Mapping[str, Cloud] = {
    "aws": Cloud(
        package="aws",
        make=make_eks,
        document=_on(aws_document(), existing="shared"),
        settings={"aws:region": "us-east-1"},
        cluster="aws:eks/cluster:Cluster",
    ),
    "gcp": Cloud(
        package="gcp",
        make=make_gke,
        document=_on(_gcp(), existing="shared"),
        settings={"gcp:project": PROJECT, "gcp:region": gke_components.REGION},
        cluster="gcp:container/cluster:Cluster",
    ),
    "azure": Cloud(
        package="azure-native",
        make=make_aks,
        document=_on(nap_document(), existing="shared", resourceGroup="platform"),
        settings={
            "azure-native:location": aks_components.LOCATION,
            "azure-native:subscriptionId": aks_components.SUBSCRIPTION,
            "azure-native:tenantId": aks_components.TENANT,
        },
        cluster="azure-native:containerservice:ManagedCluster",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Shared:
    """A guest's stack, and the owner's beside it in the same cloud."""

    cloud: Cloud
    guest: Stack

    def owner(self, command: Callable[[Rehearsal], CommandOutcome]) -> CommandOutcome:
        """Run the owner's program."""
        subject = Subject(
            program=self.cloud.make,
            project={"name": OWNER, "runtime": "python"},
            settings={"config": self.cloud.settings},
            packages=(self.cloud.package, "kubernetes"),
        )
        workspace, place = self.guest.workspace, self.guest.place
        providers = StackSimulators(
            stack=OWNER, project=OWNER, workspace=workspace, faults=Faults(), place=place
        )
        with Rehearsal.open(OWNER, workspace, subject=subject, providers=providers, place=place) as opened:
            return command(opened)

    def types(self) -> list[str]:
        """The types of everything in the cloud, in the order of creation."""
        return [each.type for each in CloudState(self._state).read().all()]

    @property
    def _state(self) -> Path:
        return self.guest.folder.cloud_states / f"{self.cloud.package}.json"


def shared(folder: Path, name: str) -> Shared:
    """A guest's stack whose cluster does not exist yet."""
    cloud = CLOUDS[name]
    workspace = cloud_workspace(folder)
    (folder / "stacks").unlink()
    (folder / "stacks").mkdir()
    content = {"config": {**cloud.settings, "holdfast:platform": cloud.document}}
    (folder / f"stacks/Pulumi.{STACK}.yaml").write_text(yaml.safe_dump(content))
    return Shared(cloud=cloud, guest=Stack.named(STACK, workspace, report=lambda _: None, run_as="both"))


@pytest.fixture(params=[*CLOUDS])
def planned(request: pytest.FixtureRequest, tmp_path: Path) -> Generator[Shared]:
    """The two stacks, with a control plane that nothing runs on."""
    found = shared(tmp_path, str(request.param))
    with found.guest.environment.lent():
        yield found


def plan_of(outcome: CommandOutcome) -> str:
    """A plan as text: a line for each component and each resource of a cloud, without the objects in the cluster."""
    shown = (step.summary for step in outcome.steps)
    lines = sorted(line for line in shown if not any(kind in line for kind in ("(kubernetes:", "(pulumi:")))
    return "".join(f"{line}\n" for line in lines)


def assert_plan(name: str, outcome: CommandOutcome) -> None:
    """Compare a plan with the recorded one, which shows what is registered and what is not.

    To record it again, delete the file and run the test, which then fails once.
    """
    file = PLANS / f"{name}.txt"
    if not file.exists():
        file.write_text(plan_of(outcome), "utf-8")
        pytest.fail(f"{file} was recorded: read it, and commit it if the plan is right")
    assert plan_of(outcome) == file.read_text("utf-8")


def assert_missing_cluster_is_refused(found: Shared) -> None:
    with found.guest.session() as session, pytest.raises(EngineFailure) as refused:
        session.preview()
    message = str(refused.value)
    assert 'holdfast:platform.cluster.existing: got "shared", which does not exist' in message
    assert "Traceback" not in message


def test_a_stack_uses_an_existing_cluster_and_registers_none(planned: Shared) -> None:
    assert_missing_cluster_is_refused(planned)
    planned.owner(Rehearsal.up)
    with planned.guest.session() as session:
        outcome = session.preview()
    assert_plan(planned.guest.subject.cloud, outcome)
    assert set(outcome.outputs) - OF_SOME == set(OUTPUTS)


@pytest.mark.soak
def test_an_eks_stack_lives_in_an_existing_cluster_and_leaves_it_as_it_was(tmp_path: Path) -> None:
    found = shared(tmp_path, "aws")
    assert len(NAMESPACES if isinstance(NAMESPACES, list) else []) == 2
    try:
        found.guest.environment.start()
        assert_missing_cluster_is_refused(found)
        found.owner(Rehearsal.up)
        before = found.types()
        with found.guest.session() as session:
            planned = session.preview()
            made = session.up(judged=True)
            again = session.up(judged=True)
        outputs = read_outputs(made.outputs)
        assert outputs.cluster == "shared"
        assert outputs.ladders["vision"] == ("a100-spot", "a100")
        assert outputs.pools["a100"].max_nodes == 4
        assert outputs.identities["vision"].startswith("arn:aws:iam::")
        assert made.changes["create"] == planned.changes["create"]
        assert again.changed == 0, f"a second up changes {[step.summary for step in again.steps]}"
        assert found.types().count(found.cloud.cluster) == 1
        with found.guest.session() as session:
            session.destroy()
        client = KubeClient.from_kubeconfig(found.guest.kubeconfig)
        assert not client.list("karpenter.sh/v1", "NodePool")
        client.close()
        kept = [each for each in found.types() if "serviceLinkedRole" not in each]
        assert kept == before
        assert found.owner(Rehearsal.refresh).changed == 0
    finally:
        found.guest.environment.remove()
