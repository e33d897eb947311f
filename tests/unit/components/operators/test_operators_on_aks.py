"""The operators on AKS's nodes: let in by the system pool, and by no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.components.cluster.aks.control_plane import SystemNodesArgs
from holdfast.components.operators.job_operators import Operators, OperatorsArgs
from holdfast.scheduling.taints import AKS_SPOT, GPU, SPOT
from tests.support.fakes.pulumi_engine import record
from tests.support.inputs import mapping, objects

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json

OPERATORS = ["operators-jobset-controller", "operators-kuberay-controller"]


def placement(operator: str) -> Json:
    """Where an operator's chart is told to put its pods."""
    args = OperatorsArgs(charts=None, jobset_version="0.12.0", kuberay_version="1.6.2", replicas=2)
    values = mapping(record(lambda: Operators("operators", args)).one(":Release", operator), "values")
    return mapping(values, "controller") if "controller" in values else values


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_operator_is_let_in_by_the_system_nodes(operator: str) -> None:
    profile = SystemNodesArgs(vm_size="Standard_D4ds_v5").as_profile(version="1.36", subnet_id="subnet")
    labels, taints = profile.get("node_labels"), profile.get("node_taints")
    assert isinstance(labels, dict), "in words"
    assert mapping(placement(operator), "nodeSelector").items() <= labels.items(), (
        "its pods would wait for ever"
    )
    assert taints == ["CriticalAddonsOnly=true:NoSchedule"], "AKS's own services tolerate it"
    tolerated = objects(placement(operator), "tolerations")
    assert any(
        one["key"] == "CriticalAddonsOnly" and one.get("effect") in {None, "NoSchedule"} for one in tolerated
    ), "else it would land on GPU nodes"


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("taint", [SPOT.key, AKS_SPOT.key, GPU.key])
def test_an_operator_is_kept_away_from_spot_and_gpus(operator: str, taint: str) -> None:
    tolerated = [toleration["key"] for toleration in objects(placement(operator), "tolerations")]
    assert taint not in tolerated, "an eviction would take what brings jobs back"
