"""One control plane with Karpenter's CRDs for EC2, for all tests of pools."""

from collections.abc import Generator

import pytest

from holdfast.simulator.kubernetes_client.client import KubeClient
from tests.support.clusters.control_plane import CHECKOUT, define_all, running_control_plane

CRDS = CHECKOUT / "components" / "charts" / "karpenter-crds" / "files"


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Generator[KubeClient]:
    """A cluster with the CRDs of Karpenter's provider for EC2."""
    with running_control_plane(tmp_path_factory.mktemp("pools")) as workspace:
        client = KubeClient.from_kubeconfig(workspace.kubeconfig("local"))
        define_all(client, CRDS)
        yield client
        client.close()
