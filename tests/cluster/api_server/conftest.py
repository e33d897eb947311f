"""One control plane for what the API server alone decides: schemas, quotas, Pod Security and rights."""

from collections.abc import Generator

import pytest

from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.support.clusters.control_plane import running_control_plane


@pytest.fixture(scope="package")
def client(tmp_path_factory: pytest.TempPathFactory) -> Generator[KubeClient]:
    """Its client. No controller that is added creates or deletes pods."""
    with running_control_plane(tmp_path_factory.mktemp("api-server")) as workspace:
        found = KubeClient.from_kubeconfig(workspace.kubeconfig("local"))
        yield found
        found.close()
