"""One control plane for the stacks of these tests, which use it one after another."""

from collections.abc import Generator
from uuid import uuid4

import pytest

from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.paths import Workspace
from tests.support.clusters.cloud_stack import CloudStack
from tests.support.clusters.control_plane import running_control_plane

PLACE = "cloud"


@pytest.fixture(scope="package")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Generator[Workspace]:
    """A workspace in which a control plane runs as that of the stacks in `cloud`."""
    with running_control_plane(tmp_path_factory.mktemp("cloud-clusters"), PLACE) as workspace:
        yield workspace


@pytest.fixture
def stack(workspace: Workspace) -> CloudStack:
    """A stack without resources, and a cloud of its own name in which nothing is left of other tests."""
    found = CloudStack(name=f"aws-{uuid4().hex[:8]}", place=PLACE, workspace=workspace)
    with found.cloud().changing() as console:
        for one in console.all():
            console.remove(one.type, one.id)
    return found


@pytest.fixture
def client(stack: CloudStack) -> Generator[KubeClient]:
    """A client of the control plane."""
    client = stack.client()
    yield client
    client.close()
