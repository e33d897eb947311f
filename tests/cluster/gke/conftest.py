"""A control plane as GKE's, and a GKE cluster with pools whose autoscaler runs when a test calls it."""

from collections.abc import Generator

import pytest

from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.stacks.stack import api_server_profile
from tests.support.clusters.autoscaled import GKE_STACK, GkeInUse
from tests.support.clusters.control_plane import running_control_plane


@pytest.fixture(scope="package")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Generator[Workspace]:
    """A workspace in which a control plane runs as that of a stack on GKE."""
    profile = api_server_profile("gcp")
    folder = tmp_path_factory.mktemp("gke")
    with running_control_plane(folder, GKE_STACK, arguments=profile.arguments) as workspace:
        profile.apply_to(workspace.kubeconfig(GKE_STACK))
        yield workspace


@pytest.fixture
def gke(workspace: Workspace) -> Generator[GkeInUse]:
    """A cloud and a cluster in which nothing is."""
    found = GkeInUse.of(workspace)
    yield found
    found.clear()
