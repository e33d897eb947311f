"""What Karpenter can buy is read from its NodePools."""

from typing import TYPE_CHECKING, cast

import pytest

from holdfast.rehearsal.lifecycle.run import spot_example
from holdfast.rehearsal.scenarios.karpenter import Karpenter
from holdfast.scheduling.json import Json

if TYPE_CHECKING:
    from holdfast.simulator.kubernetes_client.client import KubeClient

PLAIN: tuple[str, ...] = ()
GPU = ("nvidia.com/gpu",)
SPOT = ("karpenter.sh/capacity-type",)
GPU_SPOT = (*SPOT, *GPU)


class _Pools:
    """An API server that lists NodePools with these taints."""

    def __init__(self, *taints: tuple[str, ...]) -> None:
        self._pools: list[Json] = [
            {"spec": {"template": {"spec": {"taints": [{"key": key} for key in keys]}}}} for keys in taints
        ]

    def list(self, api_version: str, kind: str) -> list[Json]:
        assert (api_version, kind) == ("karpenter.sh/v1", "NodePool"), "nothing else is asked for"
        return self._pools


def _karpenter(*taints: tuple[str, ...]) -> Karpenter:
    return Karpenter(cast("KubeClient", _Pools(*taints)))


@pytest.mark.parametrize(
    ("pools", "example"),
    [
        # A GPU machine would be bought for nothing.
        ((PLAIN, SPOT, GPU_SPOT), "jobset-spot"),
        # It would wait for ever.
        ((PLAIN, GPU_SPOT), "jobset-spot-gpu"),
    ],
)
def test_a_job_on_spot_asks_for_gpus_only_where_there_is_no_other_spot(
    pools: tuple[tuple[str, ...], ...], example: str
) -> None:
    assert spot_example(_karpenter(*pools)) == example, f"of {pools}"


def test_gpus_are_to_be_had_on_demand_only_from_a_pool_for_gpus_alone() -> None:
    assert _karpenter(PLAIN, GPU).has_gpus_on_demand(), "it has one"
    assert not _karpenter(PLAIN, SPOT, GPU_SPOT).has_gpus_on_demand(), "all its GPUs are spot"
