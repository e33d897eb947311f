"""What a gang asks of the nodes it runs on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from holdfast.scheduling.labels import GPU_RESOURCE
from holdfast.scheduling.quantities import parse_quantity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.fallback.policy.policy import Machine
    from holdfast.scheduling.json import Json


@dataclass(frozen=True, kw_only=True)
class PodShape:
    """So many pods alike: `requests` are a pod's effective ones, by resource name, as Kubernetes quantities.

    Effective: the sum over its containers, or an init container's where that is more, with the overhead.
    `tolerations` are those of the job's template; selectors are not kept, the pool's label replaces them.
    """

    count: int
    requests: Mapping[str, str]
    tolerations: tuple[Json, ...] = ()


def gang_size(shapes: Sequence[PodShape]) -> int:
    """How many pods the gang has."""
    return sum(shape.count for shape in shapes)


def machines_needed(shapes: Sequence[PodShape], machine: Machine | None) -> int:
    """About how many machines of the pool the gang fills, if each is its smallest.

    It is asked in order to refuse what cannot be had. What it lets through by mistake times out and has disturbed
    nothing, so without facts one machine is assumed.
    """
    if gang_size(shapes) == 0:
        return 0
    if machine is None:
        return 1
    return math.ceil(sum(Fraction(shape.count, _pods_per_machine(shape, machine)) for shape in shapes))


def _pods_per_machine(shape: PodShape, machine: Machine) -> int:
    """How many such pods a machine takes; one that is larger than the smallest machine has a larger one to itself."""
    offered = {"cpu": Fraction(machine.cpu, 1000), "memory": machine.memory, GPU_RESOURCE: machine.gpus}
    asked = {resource: parse_quantity(shape.requests.get(resource, "0")) for resource in offered}
    fits = [
        math.floor(amount / asked[resource]) for resource, amount in offered.items() if asked[resource] > 0
    ]
    return max(1, min(fits, default=shape.count))
