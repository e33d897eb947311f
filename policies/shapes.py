"""The shapes that a training namespace declares in its FallbackPolicy, or the one that is taken for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.policies.declared.amounts import cpu_millis, memory_mib, whole
from holdfast.policies.known_values import UNKNOWN, Unknown, at, items_at, text_at
from holdfast.scheduling.reachability.shape import DEFAULT_SHAPE, LEAST, Resources, Shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.policies.declared import DeclaredPool
    from holdfast.policies.findings import StackResource
    from holdfast.policies.known_values import Value
    from holdfast.policies.ladders import DeclaredLadder


def shapes_of(ladder: DeclaredLadder, pools: Sequence[DeclaredPool]) -> tuple[Shape, ...] | Unknown:
    """The shapes of the ladder's namespace: those it declares, else one pod that fills the first tier's GPUs.

    `pools` are those of the first tier. UNKNOWN where what it declares is not known.
    """
    declared = items_at(ladder.resource.props, "spec", "shapes")
    if declared is UNKNOWN:
        return UNKNOWN
    if not declared:
        return (default_shape(pools),)
    found = [shape_of(each, place) for place, each in enumerate(declared)]
    known = tuple(shape for shape in found if isinstance(shape, Shape))
    return UNKNOWN if len(known) < len(found) else known


def declared_shapes(ladder: StackResource) -> tuple[Shape, ...]:
    """The shapes that a FallbackPolicy declares, as far as they are known."""
    declared = items_at(ladder.props, "spec", "shapes")
    found = () if declared is UNKNOWN else (shape_of(each, place) for place, each in enumerate(declared))
    return tuple(shape for shape in found if isinstance(shape, Shape))


def default_shape(pools: Sequence[DeclaredPool]) -> Shape:
    """One pod with all GPUs of the first tier's smallest machine, or of a CPU and 2 GiB where it has none."""
    counts = [
        machine.capacity.gpus
        for pool in pools
        if pool.facts.machines is not UNKNOWN
        for machine in pool.facts.machines
    ]
    gpus = min(counts, default=0)
    return Shape(requests=Resources(cpu_millis=LEAST.cpu_millis, memory_mib=LEAST.memory_mib, gpus=gpus))


def shape_of(declared: Value, place: int) -> Shape | Unknown:
    """One declared shape; what it leaves out is as small as can be."""
    if declared is UNKNOWN:
        return UNKNOWN
    name, accelerator = text_at(declared, "name"), text_at(declared, "accelerator")
    pods, gpus = whole(at(declared, "pods")), whole(at(declared, "gpus"))
    cpu, memory = cpu_millis(at(declared, "cpu")), memory_mib(at(declared, "memory"))
    if UNKNOWN in (name, accelerator, pods, gpus, cpu, memory):
        return UNKNOWN
    return Shape(
        name=name if isinstance(name, str) else f"{DEFAULT_SHAPE}-{place}",
        pods=pods if isinstance(pods, int) and pods > 0 else 1,
        requests=Resources(
            cpu_millis=cpu if isinstance(cpu, int) else LEAST.cpu_millis,
            memory_mib=memory if isinstance(memory, int) else LEAST.memory_mib,
            gpus=gpus if isinstance(gpus, int) else 0,
        ),
        accelerator=accelerator if isinstance(accelerator, str) else None,
    )
