"""Reads shapes and what they share with pods: tolerations, node selectors, amounts of devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, get_args

from holdfast.policies.program.resources import (
    Value,
    at,
    count,
    cpu_millis,
    is_object,
    items_at,
    labels_at,
    memory_mib,
    text_at,
    texts_at,
)
from holdfast.scheduling.json import UNKNOWN, Unknown
from holdfast.scheduling.machines import Architecture
from holdfast.scheduling.reachability.shape import (
    DEFAULT_SHAPE,
    LEAST,
    Placement,
    Resources,
    Shape,
    is_in_bytes,
)
from holdfast.scheduling.taints import Toleration

_ARCHITECTURES: Final[tuple[Architecture, ...]] = get_args(Architecture)
_PLACEMENTS: Final = {each.value: each for each in Placement}


def shape_of(declared: Value, index: int) -> Shape | Unknown:
    """Return one shape of a FallbackPolicy; the defaults of fields that it omits are the smallest values."""
    if declared is UNKNOWN:
        return UNKNOWN
    name, accelerator, placement = (
        text_at(declared, field) for field in ("name", "accelerator", "samePlacement")
    )
    pods, gpus, efa = (count(at(declared, field)) for field in ("pods", "gpus", "efa"))
    cpu, memory = cpu_millis(at(declared, "cpu")), memory_mib(at(declared, "memory"))
    devices, selector = devices_at(declared, "devices"), selector_at(declared, "selector")
    tolerations, architectures = tolerations_at(declared, "tolerations"), texts_at(declared, "architectures")
    if UNKNOWN in (name, accelerator, placement, pods, gpus, efa, cpu, memory) or (
        devices is UNKNOWN or selector is UNKNOWN or tolerations is UNKNOWN or architectures is UNKNOWN
    ):
        return UNKNOWN
    return Shape(
        name=name if isinstance(name, str) else f"{DEFAULT_SHAPE}-{index}",
        pods=pods if isinstance(pods, int) and pods > 0 else 1,
        requests=Resources(
            cpu_millis=cpu if isinstance(cpu, int) else LEAST.cpu_millis,
            memory_mib=memory if isinstance(memory, int) else LEAST.memory_mib,
            gpus=gpus if isinstance(gpus, int) else 0,
            efa=efa if isinstance(efa, int) else 0,
            devices=devices,
        ),
        accelerator=accelerator if isinstance(accelerator, str) else None,
        selector=selector,
        tolerations=tolerations,
        architectures=tuple(each for each in _ARCHITECTURES if each in (architectures or ())),
        same_placement=_PLACEMENTS.get(placement) if isinstance(placement, str) else None,
    )


def devices_at(value: Value, *path: str) -> Mapping[str, int] | Unknown:
    """Return the amounts of resources by name: MiB of local disk and huge pages, pieces of any other."""
    declared = at(value, *path)
    if declared is UNKNOWN:
        return UNKNOWN
    if not is_object(declared):
        return {}
    amounts = {
        name: memory_mib(given) if is_in_bytes(name) else count(given) for name, given in declared.items()
    }
    if UNKNOWN in amounts.values():
        return UNKNOWN
    return {name: amount for name, amount in amounts.items() if isinstance(amount, int) and amount > 0}


def selector_at(value: Value, *path: str) -> Mapping[str, str] | Unknown:
    """Return a node selector; UNKNOWN if any of its values is."""
    labels = labels_at(value, *path)
    if labels is UNKNOWN or UNKNOWN in labels.values():
        return UNKNOWN
    return {key: label for key, label in labels.items() if isinstance(label, str)}


def tolerations_at(value: Value, *path: str) -> tuple[Toleration, ...] | Unknown:
    """Return the tolerations of a list; UNKNOWN if any part of it is."""
    listed = items_at(value, *path)
    found = UNKNOWN if listed is UNKNOWN else [toleration_of(each) for each in listed]
    if found is UNKNOWN or UNKNOWN in found:
        return UNKNOWN
    return tuple(each for each in found if isinstance(each, Toleration))


def toleration_of(declared: Value) -> Toleration | Unknown | None:
    """Return a toleration as pods spell it; None if the value is not one."""
    parts: Sequence[Value] = [at(declared, field) for field in ("key", "operator", "value", "effect")]
    if UNKNOWN in parts:
        return UNKNOWN
    key, operator, given, effect = (part if isinstance(part, str) else "" for part in parts)
    if (
        not is_object(declared)
        or operator not in {"", "Equal", "Exists"}
        or (not key and operator != "Exists")
    ):
        return None
    return Toleration(key=key, value=None if operator == "Exists" else given, effect=effect)
