"""Two clusters for all tests of transfers between them."""

from collections.abc import Generator

import pytest

from tests.soak.fault_proxy import Fault
from tests.support.clusters.transfers import TwoClusters, two_clusters


@pytest.fixture(scope="package")
def both_clusters(tmp_path_factory: pytest.TempPathFactory) -> Generator[TwoClusters]:
    """The two clusters."""
    with two_clusters(tmp_path_factory.mktemp("transfers")) as found:
        yield found


@pytest.fixture
def clusters(both_clusters: TwoClusters) -> TwoClusters:
    """The two clusters, with nothing between them."""
    both_clusters.front.decide = lambda _: Fault.PASS
    return both_clusters
