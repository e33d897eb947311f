"""The operators on GKE's nodes: let in by the system pool, and by no other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from holdfast.components.cluster.gke.system_nodes import SystemNodesArgs, SystemPool, SystemPoolArgs
from holdfast.components.operators.job_operators import Operators, OperatorsArgs
from tests.support.fakes.pulumi_engine import record
from tests.support.inputs import mapping, objects

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json

OPERATORS = ["operators-jobset-controller", "operators-kuberay-controller"]


def system_node() -> Json:
    """What the nodes of the system pool are made with."""
    args = SystemPoolArgs(
        nodes=SystemNodesArgs(machine_type="e2-standard-4"),
        project="ml",
        location="europe-west4",
        zones=["europe-west4-a"],
        cluster="holdfast-dev",
        service_account="nodes@ml.iam.gserviceaccount.com",
    )
    return mapping(record(lambda: SystemPool("system", args)).one(":NodePool"), "nodeConfig")


def placement(operator: str) -> Json:
    """Where an operator's chart is told to put its pods."""
    args = OperatorsArgs(charts=None, jobset_version="0.12.0", kuberay_version="1.6.2", replicas=2)
    values = mapping(record(lambda: Operators("operators", args)).one(":Release", operator), "values")
    return mapping(values, "controller") if "controller" in values else values


@pytest.mark.parametrize("operator", OPERATORS)
def test_an_operator_is_let_in_by_the_system_nodes(operator: str) -> None:
    node = system_node()
    assert mapping(placement(operator), "nodeSelector").items() <= mapping(node, "labels").items(), (
        "its pods would wait for ever"
    )
    assert not node.get("taints"), "GKE's own services, which tolerate none of ours, live there too"


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("taint", ["cloud.google.com/gke-spot", "nvidia.com/gpu"])
def test_an_operator_is_kept_away_from_spot_and_gpus(operator: str, taint: str) -> None:
    tolerated = [toleration["key"] for toleration in objects(placement(operator), "tolerations")]
    assert taint not in tolerated, "an interruption would take what brings jobs back"
