"""Simulated nodes that have as much as their machines.

Karpenter's simulated provider gives a node the capacity that its pods asked for and no more (kwok/cloudprovider,
toNode). A pool's limits then count too little from the second plan on, and let machines be bought that no cloud would sell.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from holdfast.policies.declared.amounts import cpu_millis, memory_mib, whole
from holdfast.scheduling.labels import GPU_RESOURCE, INSTANCE_TYPE
from holdfast.scheduling.machines import machine_catalogue
from holdfast.scheduling.reachability.shape import Resources
from tests.support.admission_cluster import wait_until_in_force
from tests.support.admission_objects import policy_and_binding
from tests.support.json_objects import obj

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json
    from holdfast.scheduling.machines import Machine
    from holdfast.simulator.kubernetes_client.client import KubeClient

_NAME: Final = "whole-machines"
_POOL: Final = "karpenter.sh/nodepool"


def sell_whole_machines(client: KubeClient) -> None:
    """Have every node that Karpenter makes say what its machine has; returns once that is in force."""
    for manifest in policy_and_binding(_NAME, _spec(), {"policyName": _NAME}):
        client.apply(manifest, field_manager="tests")
    wait_until_in_force(client, _is_whole)


def allocatable(node: Json) -> Resources:
    """What pods get of a node, as it says itself."""
    there = obj(obj(node["status"])["allocatable"])
    cpu, memory, gpus = cpu_millis(there["cpu"]), memory_mib(there["memory"]), whole(there.get(GPU_RESOURCE))
    assert isinstance(cpu, int), f"a node says how many CPUs it has: {there}"
    assert isinstance(memory, int), f"and how much memory: {there}"
    return Resources(cpu_millis=cpu, memory_mib=memory, gpus=gpus if isinstance(gpus, int) else 0)


def _spec() -> Json:
    nodes: Json = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["nodes"],
    }
    machines = json.dumps({each.name: _capacity(each) for each in machine_catalogue("local").values()})
    patch = f'[JSONPatch{{op: "add", path: "/status/capacity", value: {machines}[object.metadata.labels["{INSTANCE_TYPE}"]]}}]'
    return {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": {"resourceRules": [nodes]},
        "matchConditions": [
            {"name": "bought", "expression": f'"{_POOL}" in object.metadata.?labels.orValue({{}})'}
        ],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
    }


def _capacity(machine: Machine) -> Json:
    gpus = {GPU_RESOURCE: str(machine.gpus)} if machine.gpus else {}
    return {
        "cpu": str(machine.vcpus),
        "memory": f"{machine.memory_mib}Mi",
        "ephemeral-storage": "100Gi",
        "pods": "110",
        **gpus,
    }


def _is_whole(client: KubeClient) -> bool:
    node: Json = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "asks", "labels": {_POOL: "asks", INSTANCE_TYPE: "p4d.24xlarge"}},
    }
    seen = client.apply(node, field_manager="tests", dry_run=True)
    return obj(obj(seen.get("status")).get("capacity")).get(GPU_RESOURCE) == "8"
