"""A control plane that counts pods against quotas, without controllers that create or delete pods."""

from collections.abc import Generator

import pytest

from holdfast.simulator.kubernetes_client.client import KubeClient
from tests.support.clusters.control_plane import running_control_plane


@pytest.fixture(scope="package")
def client(tmp_path_factory: pytest.TempPathFactory) -> Generator[KubeClient]:
    """Its client."""
    with running_control_plane(tmp_path_factory.mktemp("namespaces")) as workspace:
        found = KubeClient.from_kubeconfig(workspace.kubeconfig("local"))
        yield found
        found.close()
