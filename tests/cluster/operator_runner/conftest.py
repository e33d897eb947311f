"""One cluster with the operators that run from their charts, for all tests of them."""

from collections.abc import Generator
from typing import Final

import pytest

from pulumi_holdfast.ladder.json import Json
from tests.support.clusters.operators import KarpenterCluster, OperatorCluster, karpenter_cluster

BLOCK: Final = "cr-0123456789abcdef0"
#: Two machines in one zone of the region of the system nodes.
_RESERVED: Final[Json] = {"instanceType": "c7i.xlarge", "availabilityZone": "us-east-1a", "instanceCount": 2}


@pytest.fixture(scope="package")
def karpenter(tmp_path_factory: pytest.TempPathFactory) -> Generator[KarpenterCluster]:
    """A cluster with Karpenter for AWS, in an account with a reservation."""
    with karpenter_cluster(tmp_path_factory.mktemp("operators"), {BLOCK: _RESERVED}) as found:
        yield found


@pytest.fixture
def block() -> str:
    """The id of the reservation."""
    return BLOCK


@pytest.fixture
def charts(karpenter: KarpenterCluster) -> OperatorCluster:
    """The cluster, for other charts."""
    return karpenter.charts
