"""A control plane, and an AKS cluster with scale sets whose autoscaler runs when a test calls it."""

from collections.abc import Generator

import pytest

from pulumi_holdfast.rehearsal.paths import Workspace
from tests.support.clusters.autoscaled import AKS_STACK, AksInUse
from tests.support.clusters.control_plane import running_control_plane


@pytest.fixture(scope="package")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Generator[Workspace]:
    """A workspace in which a control plane runs as that of a stack on AKS."""
    with running_control_plane(tmp_path_factory.mktemp("aks"), AKS_STACK) as workspace:
        yield workspace


@pytest.fixture
def aks(workspace: Workspace) -> Generator[AksInUse]:
    """A cloud and a cluster in which nothing is."""
    found = AksInUse.of(workspace)
    yield found
    found.clear()
