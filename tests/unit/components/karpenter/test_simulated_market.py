"""What the simulated cloud sells."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

import pytest

from holdfast.components.karpenter.kwok import SPOT_SHARE, fingerprint, instance_types_file
from holdfast.scheduling.machines import LOCAL_ZONES
from tests.support.builders.configurations import machine
from tests.support.inputs import mapping, objects, text, value

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json

CPU = machine("m7i.xlarge", vcpus=4)
GPU = machine("p4d.24xlarge", vcpus=96, gpus=8)


def sold() -> list[Json]:
    return cast("list[Json]", json.loads(instance_types_file((CPU, GPU), LOCAL_ZONES)))


def test_every_machine_is_sold_in_every_zone_both_ways() -> None:
    for offered in sold():
        offerings = {
            (text(objects(offering, "Requirements")[0], "key"), *_where(offering))
            for offering in objects(offered, "offerings")
        }
        assert len(offerings) == 2 * len(LOCAL_ZONES), f"{offered['name']}: spot and on-demand in each zone"


def _where(offering: Json) -> tuple[str, ...]:
    return tuple(str(objects(each, "values")[0]) for each in objects(offering, "Requirements"))


def test_spot_costs_what_the_cost_model_says() -> None:
    prices = {_where(offering)[0]: offering["Price"] for offering in objects(sold()[0], "offerings")}
    assert prices["spot"] == pytest.approx(CPU.hourly_price * SPOT_SHARE), "a tenth of on-demand"
    assert prices["on-demand"] == pytest.approx(CPU.hourly_price), "the list price"


def test_gpus_are_a_resource_of_the_machines_that_have_some() -> None:
    by_name = {text(offered, "name"): mapping(offered, "resources") for offered in sold()}
    assert by_name["p4d.24xlarge"]["nvidia.com/gpu"] == "8", "or no pod that requests GPUs would get a node"
    assert "nvidia.com/gpu" not in by_name["m7i.xlarge"], "none is not a resource"


def test_memory_is_in_the_unit_kubernetes_reads() -> None:
    assert value(sold()[0], "resources", "memory") == "16384Mi", "a bare number would be bytes"


def test_the_file_depends_on_what_is_sold_and_not_on_its_order() -> None:
    forward = instance_types_file((CPU, GPU), LOCAL_ZONES)
    backward = instance_types_file((GPU, CPU), LOCAL_ZONES)
    assert fingerprint(forward) == fingerprint(backward), "the same market must not restart Karpenter"
    assert fingerprint(forward) != fingerprint(instance_types_file((CPU,), LOCAL_ZONES)), "another one must"
