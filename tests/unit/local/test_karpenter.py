"""Karpenter with its kwok provider."""

import json
from dataclasses import replace
from typing import cast

import pytest

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.machines import LOCAL_ZONES
from pulumi_holdfast.local.karpenter import (
    SPOT_SHARE,
    KwokKarpenter,
    KwokKarpenterArgs,
    fingerprint,
    instance_types_file,
)
from tests.support.builders.configurations import machine
from tests.support.fakes.pulumi_engine import Recorded, Recording, record
from tests.support.inputs import mapping, objects, text, value

ARGS = KwokKarpenterArgs(
    charts="/charts", version="1.14.1", chart_version="0.35.0", machines=(machine(),), zones=LOCAL_ZONES
)


def recorded(args: KwokKarpenterArgs = ARGS, *, preview: bool = False) -> Recording:
    return record(lambda: KwokKarpenter("karpenter", args), preview=preview)


def controller(recording: Recording) -> Recorded:
    return recording.one(":Release", "karpenter-operator-controller")


def environment(recording: Recording) -> dict[str, object]:
    return {
        text(each, "name"): each["value"]
        for each in objects(controller(recording), "values", "controller", "env")
    }


@pytest.mark.parametrize("preview", [False, True])
def test_it_creates_a_closed_namespace_two_releases_and_the_instance_types(preview: bool) -> None:
    made = sorted(resource.type for resource in recorded(preview=preview) if resource.custom)
    assert made == [
        "kubernetes:core/v1:ConfigMap",
        "kubernetes:core/v1:Namespace",
        "kubernetes:core/v1:ResourceQuota",
        "kubernetes:helm.sh/v3:Release",
        "kubernetes:helm.sh/v3:Release",
        "kubernetes:networking.k8s.io/v1:NetworkPolicy",
    ]


def test_the_instance_types_are_mounted_where_karpenter_reads_them() -> None:
    recording = recorded()
    (mount,) = objects(controller(recording), "values", "controller", "extraVolumeMounts")
    (volume,) = objects(controller(recording), "values", "extraVolumes")
    config_map = recording.one(":ConfigMap")
    (file,) = mapping(config_map, "data")
    assert environment(recording)["INSTANCE_TYPES_FILE_PATH"] == f"{mount['mountPath']}/{file}"
    assert value(volume, "configMap", "name") == text(config_map, "metadata", "name")
    assert "karpenter-operator-instance-types" in controller(recording).depends_on


def test_only_changed_instance_types_restart_the_pod() -> None:
    bigger = replace(ARGS, machines=(machine(), machine("p4d.24xlarge", gpus=8)))
    annotations = [
        mapping(controller(recorded(args)), "values", "podAnnotations") for args in (ARGS, ARGS, bigger)
    ]
    assert annotations[0] == annotations[1]
    assert annotations[0] != annotations[2]
    forward = instance_types_file((CPU, GPU), LOCAL_ZONES)
    backward = instance_types_file((GPU, CPU), LOCAL_ZONES)
    assert fingerprint(forward) == fingerprint(backward)
    assert fingerprint(forward) != fingerprint(instance_types_file((CPU,), LOCAL_ZONES))


def test_the_controller_runs_once_on_system_nodes_with_all_settings_of_the_chart() -> None:
    recording = recorded()
    values = mapping(controller(recording), "values")
    assert values["replicas"] == 1
    assert environment(recording)["DISABLE_LEADER_ELECTION"] == "true"
    gates = mapping(values, "settings", "featureGates")
    assert set(gates) == {"capacityBuffer", "nodeRepair", "spotToSpotConsolidation", "staticCapacity"}
    assert set(gates.values()) == {False}
    resources = mapping(values, "controller", "resources")
    assert text(resources, "limits", "memory")
    assert text(resources, "requests", "cpu")
    assert values["nodeSelector"] == {"holdfast.dev/system": "true"}
    assert objects(values, "tolerations") == [{"key": "CriticalAddonsOnly", "operator": "Exists"}]


CPU = machine("m7i.xlarge", vcpus=4)
GPU = machine("p4d.24xlarge", vcpus=96, gpus=8)


def sold() -> list[Json]:
    return cast("list[Json]", json.loads(instance_types_file((CPU, GPU), LOCAL_ZONES)))


def test_every_machine_is_offered_with_its_resources_in_every_zone_and_capacity_type() -> None:
    machines = sold()
    for offered in machines:
        offerings = {
            (text(objects(offering, "Requirements")[0], "key"), *_where(offering))
            for offering in objects(offered, "offerings")
        }
        assert len(offerings) == 2 * len(LOCAL_ZONES), f"{offered['name']}: spot and on-demand in each zone"
    prices = {_where(offering)[0]: offering["Price"] for offering in objects(machines[0], "offerings")}
    assert prices["spot"] == pytest.approx(CPU.hourly_price * SPOT_SHARE)
    assert prices["on-demand"] == pytest.approx(CPU.hourly_price)
    by_name = {text(offered, "name"): mapping(offered, "resources") for offered in machines}
    assert by_name["p4d.24xlarge"]["nvidia.com/gpu"] == "8", "otherwise pods with GPUs would get no node"
    assert "nvidia.com/gpu" not in by_name["m7i.xlarge"]
    assert value(machines[0], "resources", "memory") == "16384Mi", "a bare number would be bytes"


def _where(offering: Json) -> tuple[str, ...]:
    return tuple(str(objects(each, "values")[0]) for each in objects(offering, "Requirements"))
