"""One cluster for all tests of jobs that follow a ladder."""

from collections.abc import Generator

import pytest

from tests.support.clusters.fallback import LadderCluster, ladder_cluster
from tests.support.clusters.fallback_jobs import Ladder
from tests.support.clusters.reconciler import replica


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Generator[LadderCluster]:
    """A cluster with the operators and the pools of a ladder."""
    with ladder_cluster(tmp_path_factory.mktemp("ladder")) as found:
        yield found


@pytest.fixture(scope="module")
def ladder(cluster: LadderCluster, tmp_path_factory: pytest.TempPathFactory) -> Generator[Ladder]:
    """The controller on that cluster, with short timeouts."""
    folder = tmp_path_factory.mktemp("controller")
    module = "tests.support.clusters.impatient_controller"
    with replica(cluster.controller_kubeconfig, folder, module=module) as controller:
        controller.wait_ready()
        yield Ladder(cluster.client, controller)
