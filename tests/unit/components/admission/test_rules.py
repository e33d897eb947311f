"""What an admission rule may be, and which rules Karpenter's pools ask for."""

from __future__ import annotations

import pytest

from holdfast.components.admission.rules import DO_NOT_DISRUPT, NodeSelection, TolerationRule
from holdfast.scheduling import taints
from holdfast.scheduling.labels import CAPACITY_TYPE, GPU_RESOURCE, POOL
from tests.support.builders.training_jobs import GPU_RULE, SPOT_RULE


def test_spot_is_asked_for_by_capacity_type_or_by_a_spot_pools_name() -> None:
    assert SPOT_RULE.selections == (
        NodeSelection(key=CAPACITY_TYPE, values=("spot",)),
        NodeSelection(key=POOL, values=("cpu-spot", "a100-spot")),
    ), "on-demand pools must not be among the ways onto spot"
    assert SPOT_RULE.taint == taints.SPOT, "what is added must match the taint of the spot pools"
    assert SPOT_RULE.resources == (), "no request for a resource is a wish for spot"


def test_gpus_are_asked_for_by_request_or_by_a_gpu_pools_name() -> None:
    assert GPU_RULE.resources == (GPU_RESOURCE,), "requesting GPUs is the usual way to ask for them"
    assert GPU_RULE.selections == (NodeSelection(key=POOL, values=("a100", "a100-spot")),), (
        "a helper of a job follows its ladder to GPU pools without requesting GPUs"
    )


def test_only_spot_pods_lose_what_keeps_them_from_being_drained() -> None:
    assert SPOT_RULE.removed_annotations == (DO_NOT_DISRUPT,), "an interrupted pod must be told"
    assert GPU_RULE.removed_annotations == (), "on-demand GPU pods keep what their author wrote"


def test_a_rule_by_which_no_pod_can_ask_is_refused() -> None:
    with pytest.raises(ValueError, match="'idle' matches no pod"):
        TolerationRule(name="idle", taint=taints.SPOT)


@pytest.mark.parametrize(("key", "values"), [("", ("spot",)), (CAPACITY_TYPE, ("spot", ""))])
def test_a_selection_without_a_key_or_of_an_empty_value_is_refused(key: str, values: tuple[str, ...]) -> None:
    # An absent label reads as "" in the expressions, so an empty value would match pods that select nothing.
    with pytest.raises(ValueError, match="may be empty"):
        NodeSelection(key=key, values=values)
