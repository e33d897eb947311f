"""One small cluster for all tests of the reconciler."""

from collections.abc import Generator

import pytest

from tests.support.clusters.reconciler import LoopCluster, loop_cluster, policy


@pytest.fixture(scope="package")
def small_cluster(tmp_path_factory: pytest.TempPathFactory) -> Generator[LoopCluster]:
    """A cluster with JobSet and three pools."""
    with loop_cluster(tmp_path_factory.mktemp("reconciler")) as found:
        yield found


@pytest.fixture
def cluster(small_cluster: LoopCluster) -> Generator[LoopCluster]:
    """The cluster with a ladder and without jobs."""
    small_cluster.apply(policy())
    yield small_cluster
    small_cluster.clear()
    small_cluster.forget_leader()
