"""A control plane with the real scheduler, the real Karpenter and admission in force."""

from collections.abc import Generator

import pytest

from tests.support.clusters.fallback import install_karpenter, system_node
from tests.support.clusters.operators import OperatorCluster, operator_cluster
from tests.support.clusters.reachability import BATCHES, sell_whole_machines


@pytest.fixture(scope="module")
def karpenter(tmp_path_factory: pytest.TempPathFactory) -> Generator[OperatorCluster]:
    """The cluster, with Karpenter that sells the machines of the local catalogue."""
    with operator_cluster(tmp_path_factory.mktemp("reachability")) as charts:
        sell_whole_machines(charts.client)
        charts.apply(system_node("operators"))
        install_karpenter(charts, BATCHES)
        yield charts
