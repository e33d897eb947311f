"""Fast networks: which machines have one, and what is said where a stack does not use it."""

import pytest

from pulumi_holdfast.ladder.machines import machine_catalogue
from pulumi_holdfast.ladder.machines.market import fast_network_of, unused_network_warnings


@pytest.mark.parametrize(
    ("cloud", "name", "network"),
    [
        ("aws", "p5.48xlarge", "Elastic Fabric Adapter"),
        ("aws", "m7i.xlarge", None),
        ("gcp", "a3-highgpu-8g", "GPUDirect-TCPX"),
        ("gcp", "a3-megagpu-8g", "GPUDirect-TCPXO"),
        ("gcp", "a3-ultragpu-8g", "GPUDirect RDMA"),
        ("gcp", "a4-highgpu-8g", "GPUDirect RDMA"),
        ("gcp", "a2-highgpu-8g", None),
        ("azure", "Standard_ND96asr_v4", "InfiniBand"),
        ("azure", "Standard_ND96isr_H100_v5", "InfiniBand"),
        ("azure", "Standard_NC24ads_A100_v4", None),
    ],
)
def test_a_machine_has_the_fast_network_of_its_cloud(cloud: str, name: str, network: str | None) -> None:
    assert fast_network_of(machine_catalogue(cloud)[name]) == network


@pytest.mark.parametrize(
    ("cloud", "name", "part"),
    [
        ("aws", "p5.48xlarge", "Write `efa: true`"),
        ("gcp", "a3-megagpu-8g", "additional networks with jumbo frames"),
        ("azure", "Standard_ND96isr_H100_v5", "AKSInfinibandSupport"),
    ],
)
def test_a_pool_for_gangs_without_its_fast_network_is_tcp_only(cloud: str, name: str, part: str) -> None:
    (warning,) = unused_network_warnings("h100", [machine_catalogue(cloud)[name]], max_nodes=4)
    assert "by TCP only" in warning
    assert part in warning


def test_a_pool_without_gangs_or_with_its_network_has_no_warning() -> None:
    p5, plain = machine_catalogue("aws")["p5.48xlarge"], machine_catalogue("aws")["m7i.xlarge"]
    assert not [*unused_network_warnings("h100", [p5], max_nodes=1)]
    assert not [*unused_network_warnings("h100", [p5], max_nodes=4, uses_adapters=True)]
    assert not [*unused_network_warnings("cpu", [plain], max_nodes=4)]
