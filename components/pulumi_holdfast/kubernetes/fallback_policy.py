"""The FallbackPolicy: its CustomResourceDefinition, and a ladder as an object of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from pulumi import ResourceOptions

from pulumi_holdfast.kubernetes.kubernetes_object import KubernetesObject
from pulumi_holdfast.ladder.fallback_policy import POLICY_SCHEMA, SETTINGS, TIER_FIELDS, WINDOW
from pulumi_holdfast.ladder.fields import written
from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.ladder.ladder import Ladder, Tier
from pulumi_holdfast.ladder.quantities import format_cpu, format_memory
from pulumi_holdfast.ladder.reachability.machine_capacity import (
    MachineCapacity,
    listed_label_values,
    non_dominated,
)
from pulumi_holdfast.ladder.reachability.pool_summary import PoolSummary
from pulumi_holdfast.ladder.reachability.shape import Resources, Shape, format_device, is_in_bytes
from pulumi_holdfast.ladder.taints import Toleration
from pulumi_holdfast.ladder.windows import ALWAYS, CapacityWindow

GROUP = "holdfast.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "FallbackPolicy"
PLURAL = "fallbackpolicies"
DEFINITION = f"{PLURAL}.{GROUP}"


def definition_spec() -> Json:
    """Return the specification of the CustomResourceDefinition."""
    return {
        "group": GROUP,
        "scope": "Namespaced",
        "names": {
            "kind": KIND,
            "listKind": f"{KIND}List",
            "plural": PLURAL,
            "singular": KIND.lower(),
            "shortNames": ["fbp"],
        },
        "versions": [
            {
                "name": VERSION,
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": POLICY_SCHEMA},
                "subresources": {"status": {}},
                "additionalPrinterColumns": [
                    {"name": "First", "type": "string", "jsonPath": ".spec.tiers[0].pool"},
                    {"name": "Last", "type": "string", "jsonPath": ".spec.tiers[-1:].pool"},
                    {"name": "Failures", "type": "string", "jsonPath": ".spec.failures", "priority": 1},
                    {"name": "Jobs", "type": "integer", "jsonPath": ".status.jobs"},
                    {"name": "Status", "type": "string", "jsonPath": ".status.summary"},
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
            }
        ],
    }


def fallback_policy_definition(name: str, opts: ResourceOptions | None = None) -> KubernetesObject:
    """Create the CustomResourceDefinition `fallbackpolicies.holdfast.dev`.

    It is deleted with the stack, because its objects are configuration that every `up` writes again. Namespaces depend on it,
    so their ladders are deleted first.
    """
    fields = {"metadata": {"name": DEFINITION}, "spec": definition_spec()}
    return KubernetesObject(name, "apiextensions.k8s.io/v1", "CustomResourceDefinition", fields, opts=opts)


def facts_object(facts: PoolSummary) -> Json:
    """Return the facts of a pool."""
    machine = facts.machine
    return {
        "capacity": facts.capacity.value,
        "labels": dict(facts.labels),
        "taints": [taint.as_taint() for taint in facts.taints],
        "machine": {"cpu": str(machine.vcpus), "memory": f"{machine.memory_mib}Mi", "gpus": machine.gpus},
        **(
            {"machines": [machine_capacity_object(room) for room in non_dominated(facts.machine_capacities)]}
            if facts.machine_capacities
            else {}
        ),
        **label_values_object(facts.machine_capacities, facts.zones),
        "maxNodes": facts.max_nodes,
        **({} if facts.window == ALWAYS else {"window": window_object(facts.window)}),
    }


def label_values_object(machines: Sequence[MachineCapacity], zones: Collection[str]) -> Json:
    """Return the labels that follow from these machine types and zones, as a field of the facts."""
    values = listed_label_values(machines, zones)
    return {"labelValues": {key: [*each] for key, each in values.items()}} if values else {}


def window_object(window: CapacityWindow) -> Json:
    """Return when a reserved pool has its capacity."""
    return written(WINDOW.fields, window)


def machine_capacity_object(room: MachineCapacity) -> Json:
    """Return what one of its machines offers to pods."""
    return {
        "name": room.name,
        "cpu": format_cpu(room.allocatable.cpu_millis),
        "memory": format_memory(room.allocatable.memory_mib),
        "gpus": room.allocatable.gpus,
        "efa": max(room.allocatable.efa, room.possible_efa),
        "pods": room.max_pods,
        **({} if room.accelerator is None else {"accelerator": room.accelerator}),
        **({"devices": devices_object(room.allocatable)} if room.allocatable.devices else {}),
        **({"allDevices": True} if room.has_all_devices else {}),
    }


def devices_object(resources: Resources) -> Json:
    """Return amounts of devices: pieces as numbers, bytes as quantities."""
    return {
        name: format_device(name, amount) if is_in_bytes(name) else amount
        for name, amount in resources.devices.items()
    }


def ladder_spec(
    ladder: Ladder, facts: Mapping[str, PoolSummary] | None = None, shapes: Sequence[Shape] = ()
) -> Json:
    """Return the specification of the ladder's FallbackPolicy.

    `facts` are the known facts of its pools by name, `shapes` the shapes of its jobs. Settings that the
    ladder does not have are left out, because the controller has defaults for them.
    """
    known = facts or {}
    return {
        # A pool of another cluster may have the name of one here.
        "tiers": [tier_object(tier, None if tier.cluster else known.get(tier.pool)) for tier in ladder.tiers],
        **written(SETTINGS, ladder),
        **({"shapes": [shape_object(shape) for shape in shapes]} if shapes else {}),
    }


def tier_object(tier: Tier, facts: PoolSummary | None = None) -> Json:
    """Return one tier, with the facts of its pool if known."""
    return {**written(TIER_FIELDS, tier), **({} if facts is None else {"facts": facts_object(facts)})}


def shape_object(shape: Shape) -> Json:
    """Return one shape, with the defaults of amounts filled in."""
    return _present(
        {
            "name": shape.name,
            "pods": shape.pods,
            "cpu": format_cpu(shape.requests.cpu_millis),
            "memory": format_memory(shape.requests.memory_mib),
            "gpus": shape.requests.gpus,
            "efa": shape.requests.efa,
            "accelerator": shape.accelerator,
            "devices": devices_object(shape.requests) or None,
            "selector": dict(shape.selector) or None,
            "tolerations": [toleration_object(each) for each in shape.tolerations] or None,
            "architectures": list(shape.architectures) or None,
            "samePlacement": None if shape.same_placement is None else shape.same_placement.value,
        }
    )


def toleration_object(toleration: Toleration) -> Json:
    """Return a toleration as pods spell it."""
    exists = toleration.value is None
    return {
        **({"key": toleration.key} if toleration.key else {}),
        "operator": "Exists" if exists else "Equal",
        **({} if exists else {"value": toleration.value}),
        **({"effect": toleration.effect} if toleration.effect else {}),
    }


def _present(fields: Mapping[str, JsonValue]) -> Json:
    return {name: value for name, value in fields.items() if value is not None}
