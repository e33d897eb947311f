"""One small cluster for all tests of the plugin."""

from collections.abc import Generator

import pytest

from tests.support.clusters.plugin import PluginCluster, plugin_cluster
from tests.support.clusters.reconciler import loop_cluster


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Generator[PluginCluster]:
    """A cluster with JobSet, three pools, the controller, a user and the plugin."""
    with (
        loop_cluster(tmp_path_factory.mktemp("plugin")) as loop,
        plugin_cluster(loop, tmp_path_factory.mktemp("user")) as found,
    ):
        yield found
