"""One cluster with the Karpenter of AKS, for all tests of its pools."""

from collections.abc import Generator

import pytest

from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.support.aks_provisioning import AksProvisioning, aks_provisioning
from tests.support.builders.aks_objects import aks_cluster


@pytest.fixture(scope="package")
def aks(tmp_path_factory: pytest.TempPathFactory) -> Generator[AksProvisioning]:
    """A cluster with node auto-provisioning, whose kinds are there."""
    with aks_provisioning(tmp_path_factory.mktemp("aks-pools")) as found:
        found.put(aks_cluster(provisions_nodes=True))
        for kind in ("aksnodeclasses.karpenter.azure.com", "nodepools.karpenter.sh"):
            found.wait_for_definition(kind)
        yield found


@pytest.fixture
def cluster(aks: AksProvisioning) -> KubeClient:
    """Its API server."""
    return aks.charts.client
