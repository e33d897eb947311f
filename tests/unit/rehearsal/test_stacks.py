"""The cluster of a stack, its nodes, and the programs of users."""

import sys
import threading
from importlib.resources import files
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from pulumi_holdfast.cli.__main__ import main
from pulumi_holdfast.config.loader import PLATFORM
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.clouds.aws.cluster import CLUSTER
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, CloudState
from pulumi_holdfast.rehearsal.control_plane.configuration import (
    KubeconfigCluster,
    authentication_configuration,
    render_kubeconfig,
)
from pulumi_holdfast.rehearsal.engine import Audience, Subject
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.lifecycle.program_run import read_existing
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.stacks.cluster_nodes import ClusterNodes
from pulumi_holdfast.rehearsal.stacks.clusters_here import TRUST, ClustersHere, ConfiguredTrust
from pulumi_holdfast.rehearsal.stacks.existing_cluster import is_owners, make_existing_cluster, named_cluster
from pulumi_holdfast.rehearsal.stacks.stack import Stack, StackEnvironment, api_server_profile
from pulumi_holdfast.rehearsal.stacks.user_program import UserProgram


def test_second_process_waits_for_the_nodes_of_a_cloud(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    locked = threading.Event()

    def lock() -> None:
        with ClusterNodes(kubeconfig, "gcp").held():
            locked.set()

    with ClusterNodes(kubeconfig, "gcp").held():
        waiting = threading.Thread(target=lock)
        waiting.start()
        with ClusterNodes(kubeconfig, "aws").held():
            assert not locked.wait(0.2)
    waiting.join(timeout=10)
    assert locked.is_set()


def test_profile_of_gke_has_the_toleration_plugin_and_its_objects() -> None:
    profile = api_server_profile("gcp")
    assert profile.arguments == (("enable-admission-plugins", "ExtendedResourceToleration"),)
    text = files("pulumi_holdfast.rehearsal.stacks").joinpath(profile.objects).read_text(encoding="utf-8")
    kinds = [document["kind"] for document in yaml.safe_load_all(text)]
    assert kinds == ["CustomResourceDefinition", "MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"]


def test_an_eks_cluster_trusts_the_issuers_of_clusters_on_this_machine_that_its_cloud_names(
    tmp_path: Path,
) -> None:
    workspace = Workspace(project_root=tmp_path)
    server, issuer = "https://home.eks.amazonaws.com", "https://oidc.eks.us-west-2.amazonaws.com/id/HOME"
    workspace.stack_dir("home").mkdir(parents=True)
    here = KubeconfigCluster(server="https://127.0.0.1:1", authority=b"PEM")
    workspace.kubeconfig("home").write_text(render_kubeconfig("home", here, {}))
    states = {
        name: CloudState(tmp_path / f".rehearsal/{name}/engine/clouds/aws.json") for name in ("home", "there")
    }
    with states["home"].changing() as cloud:
        outputs: Json = {"endpoint": server, "identities": [{"oidcs": [{"issuer": issuer}]}]}
        cloud.put(CloudObject(type=CLUSTER, id="home", urn="", inputs={}, computed=outputs))
    with states["there"].changing() as cloud:
        for each in (issuer, "https://not.here"):
            oidc: Json = {
                "issuerUrl": each,
                "clientId": "https://there",
                "usernameClaim": "sub",
                "usernamePrefix": "h:",
                "requiredClaims": {"sub": "c"},
            }
            cloud.put(CloudObject(type=TRUST, id=each, urn="", inputs={"oidc": oidc}))
    clusters = ClustersHere(workspace)
    assert clusters.at(server) == here
    assert clusters.at("https://another") is None
    trust = ConfiguredTrust(cloud=states["there"], clusters=clusters, file=tmp_path / "authentication.yaml")
    trust.keep()
    assert not trust.file.exists()
    trust.file.write_text(yaml.safe_dump(authentication_configuration([])))
    trust.keep()
    (authenticator,) = yaml.safe_load(trust.file.read_text())["jwt"]
    assert authenticator == {
        "issuer": {
            "url": "https://home.invalid",
            "discoveryURL": "https://127.0.0.1:1/.well-known/openid-configuration",
            "certificateAuthority": "PEM",
            "audiences": ["https://there"],
        },
        "claimValidationRules": [{"claim": "sub", "requiredValue": "c"}],
        "claimMappings": {"username": {"claim": "sub", "prefix": "h:"}},
    }


def test_profile_of_another_cloud_is_empty(tmp_path: Path) -> None:
    profile = api_server_profile("")
    assert (profile.arguments, profile.objects) == ((), "")
    profile.apply_to(tmp_path / "no-kubeconfig")


def a_project(folder: Path, *, project: str = "name: features\nruntime: python\n", **files: str) -> Path:
    """A project with a program that does nothing; `files` are by name, with `__` for a dot."""
    (folder / "Pulumi.yaml").write_text(project)
    (folder / "__main__.py").write_text("")
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


def stack_of(folder: Path, name: str | None = None, *plugins: str) -> str:
    program = UserProgram.in_folder(folder)
    return program.stack(name, plugins=plugins, report=lambda _: None, audience=Audience()).name


@pytest.mark.parametrize(
    ("project", "said"),
    [
        ("name: a\nruntime: nodejs\n", "runtime is 'nodejs'; only programs in `python`"),
        ("name: a\nruntime: {name: go}\n", "runtime is 'go'"),
        ("runtime: python\n", "name is missing"),
        ("name: a\nruntime: python\nmain: app\n", "app does not exist"),
    ],
)
def test_a_project_that_is_no_program_in_python_is_refused(tmp_path: Path, project: str, said: str) -> None:
    with pytest.raises(RehearsalError) as refused:
        UserProgram.in_folder(a_project(tmp_path, project=project))
    assert said in str(refused.value)


def test_the_stack_is_the_only_one_or_the_named_one(tmp_path: Path) -> None:
    assert stack_of(a_project(tmp_path)) == "dev"
    a_project(tmp_path, Pulumi__prod__yaml="config: {}")
    assert stack_of(tmp_path) == "prod"
    a_project(tmp_path, Pulumi__test__yaml="config: {}")
    assert stack_of(tmp_path, "test") == "test"
    for name, said in ((None, "name one of prod, test with --stack"), ("other", "no stack 'other'")):
        with pytest.raises(RehearsalError, match=said):
            stack_of(tmp_path, name)


def test_a_plugin_that_is_missing_is_named_with_the_command_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "home"))
    with pytest.raises(RehearsalError, match="pulumi-nosuch is not installed"):
        stack_of(a_project(tmp_path), None, "nosuch")
    with pytest.raises(RehearsalError, match="pulumi plugin install resource gcp "):
        stack_of(tmp_path, None, "gcp")


def test_a_program_imports_its_own_components_and_runs_again_from_the_start(tmp_path: Path) -> None:
    (tmp_path / "components").mkdir()
    (tmp_path / "components" / "__init__.py").write_text("TIMES = []\n")
    a_project(tmp_path)
    (tmp_path / "__main__.py").write_text(
        "import components\ncomponents.TIMES.append(1)\nassert len(components.TIMES) == 1\n"
    )
    program = UserProgram.in_folder(tmp_path)
    with program.importable():
        program()
        program()  # as the engine runs it for each command: with modules of the first run it would fail
    assert "components" not in sys.modules


def test_existing_objects_come_in_an_order_in_which_they_can_be_made(tmp_path: Path) -> None:
    made = [
        ("v1", "ConfigMap", "a"),
        ("v1", "Namespace", "b"),
        ("example.com/v1", "CustomResourceDefinition", "c"),
    ]
    file = tmp_path / "all.yaml"
    documents = [f"apiVersion: {api}\nkind: {kind}\nmetadata: {{name: {name}}}\n" for api, kind, name in made]
    file.write_text("---\n".join(["", *documents]))
    kinds = [each["kind"] for each in read_existing([tmp_path])]
    assert kinds == ["CustomResourceDefinition", "Namespace", "ConfigMap"]
    (tmp_path / "list.yaml").write_text(
        "kind: List\nitems: [{apiVersion: v1, kind: Node, metadata: {name: n}}]"
    )
    assert len(read_existing([tmp_path])) == 4
    for text, said in (("kind: Node", "has no apiVersion"), ("a: [", "not YAML")):
        file.write_text(text)
        with pytest.raises(RehearsalError, match=said):
            read_existing([file])
    with pytest.raises(RehearsalError, match="does not exist"):
        read_existing([tmp_path / "none.yaml"])


def test_options_of_a_program_need_the_folder_of_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rehearse", "nowhere", "--plugin", "random"]) == 1
    said = capsys.readouterr().err
    assert "nowhere/Pulumi.yaml does not exist; name the folder of a program" in said


def test_a_module_of_another_program_neither_replaces_the_programs_own_nor_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = ModuleType("features")
    monkeypatch.setitem(sys.modules, "features", other)
    program = UserProgram.in_folder(a_project(tmp_path, features__py="OWN = True\n"))
    (tmp_path / "__main__.py").write_text("import features\nassert features.OWN\n")
    with program.importable():
        program()
    assert sys.modules["features"] is other


def on_an_existing_cluster(folder: Path, cloud: str) -> Stack:
    workspace = Workspace(project_root=folder)
    document: Json = {"cloud": cloud, "cluster": {"existing": "shared"}}
    return Stack(
        name="guest",
        place="guest",
        workspace=workspace,
        subject=Subject(
            program=lambda: None,
            project={"name": "guest"},
            settings={"config": {PLATFORM: document}},
            packages=(),
            cloud=cloud,
        ),
        environment=StackEnvironment(stack="guest", workspace=workspace, report=lambda _: None),
    )


def test_an_existing_cluster_that_cannot_be_made_is_refused_with_what_can_be_rehearsed(
    tmp_path: Path,
) -> None:
    stack = on_an_existing_cluster(tmp_path, "gcp")
    assert named_cluster(stack) == "shared"
    with pytest.raises(RehearsalError, match=r"use a copy of the stack without `cluster\.existing`"):
        make_existing_cluster(stack, {})
    assert not (tmp_path / ".rehearsal").exists()


def test_what_the_owner_of_a_cluster_has_made_is_not_left_by_the_stack() -> None:
    urn = "urn:pulumi:{project}::{project}::aws:eks/cluster:Cluster::shared"
    made = [
        CloudObject(type=CLUSTER, id="shared", urn=urn.format(project=project), inputs={}, computed={})
        for project in ("owner-of-the-cluster", "guest")
    ]
    assert list(map(is_owners, made)) == [True, False]
