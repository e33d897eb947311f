"""One control plane with Karpenter's CRDs for Azure, for all tests of pools."""

from collections.abc import Generator

import pytest

from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.paths import Workspace
from tests.support.clusters.control_plane import define_all, running_control_plane


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Generator[KubeClient]:
    """A cluster with the CRDs that AKS brings with node auto-provisioning."""
    crds = Workspace.find().charts_dir / "karpenter-azure" / "crds"
    with running_control_plane(tmp_path_factory.mktemp("aks-pools")) as workspace:
        client = KubeClient.from_kubeconfig(workspace.kubeconfig("local"))
        define_all(client, crds)
        yield client
        client.close()
