"""One control plane for all tests of the simulated kubernetes provider, and a namespace for each."""

from collections.abc import Generator
from pathlib import Path
from uuid import uuid4

import pytest

from pulumi_holdfast.rehearsal.kubernetes_client.client import KubeClient
from pulumi_holdfast.rehearsal.kubernetes_provider import ChartMirror
from pulumi_holdfast.rehearsal.paths import Workspace
from tests.support.clusters.control_plane import running_control_plane
from tests.support.clusters.kubernetes_provider import KubernetesStack, Resource, release, web_charts


@pytest.fixture(scope="package")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Generator[Workspace]:
    """A workspace of the tests' own, in which a control plane runs as that of stack `local`."""
    with running_control_plane(tmp_path_factory.mktemp("kubernetes-stand-in")) as workspace:
        yield workspace


@pytest.fixture(scope="package")
def kubeconfig(workspace: Workspace) -> Path:
    """The kubeconfig of the control plane."""
    return workspace.kubeconfig("local")


@pytest.fixture(scope="package")
def client(kubeconfig: Path) -> Generator[KubeClient]:
    """A client of the control plane, on which there is one simulated node."""
    client = KubeClient.from_kubeconfig(kubeconfig)
    client.apply(
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": "one", "annotations": {"kwok.x-k8s.io/node": "fake"}},
        },
        field_manager="tests",
    )
    yield client
    client.close()


@pytest.fixture
def namespace(client: KubeClient) -> str:
    """A namespace of the test's own; it goes with the control plane."""
    name = f"test-{uuid4().hex[:8]}"
    client.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}, field_manager="tests")
    return name


@pytest.fixture
def charts(tmp_path: Path) -> ChartMirror:
    """A mirror with the chart `web`."""
    return web_charts(tmp_path)


@pytest.fixture
def resource(client: KubeClient, kubeconfig: Path, charts: ChartMirror) -> Resource:
    """A release that is not made yet."""
    return release(client, kubeconfig, charts)


@pytest.fixture
def name() -> str:
    """A name that no other test has, for the stack and for its namespace."""
    return f"team-{uuid4().hex[:8]}"


@pytest.fixture
def stack(workspace: Workspace, kubeconfig: Path, name: str) -> KubernetesStack:
    """A stack without resources."""
    return KubernetesStack(name=name, workspace=workspace, kubeconfig=kubeconfig)
