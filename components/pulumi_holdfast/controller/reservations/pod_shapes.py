"""A gang's resource requests, and how many machines it needs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from pulumi_holdfast.controller.reservations.placement import NO_PLACEMENT, PlacementRequirements
from pulumi_holdfast.ladder.labels import GPU_RESOURCE
from pulumi_holdfast.ladder.quantities import parse_quantity

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi_holdfast.controller.policy.policy import MachineResources
    from pulumi_holdfast.ladder.json import Json


@dataclass(frozen=True, kw_only=True)
class PodShape:
    """A number of equal pods: `requests` are a pod's effective ones, by resource name, as Kubernetes quantities.

    Effective: the sum over its containers, or an init container's if that is more, plus the overhead. `tolerations` are
    those of the job's template; `placement` is where else its pods may run, besides the pool that the tier selects.
    """

    count: int
    requests: Mapping[str, str]
    tolerations: tuple[Json, ...] = ()
    placement: PlacementRequirements = NO_PLACEMENT


def gang_size(shapes: Sequence[PodShape]) -> int:
    """Return the number of pods of the gang."""
    return sum(shape.count for shape in shapes)


def machines_needed(shapes: Sequence[PodShape], machine: MachineResources | None) -> int:
    """Estimate how many of the pool's smallest machines the gang fills.

    Used to skip pools whose limits are too small. A wrong estimate only leads to a timeout, and the job keeps running, so
    without facts one machine is assumed.
    """
    if gang_size(shapes) == 0:
        return 0
    if machine is None:
        return 1
    return math.ceil(sum(Fraction(shape.count, _pods_per_machine(shape, machine)) for shape in shapes))


def _pods_per_machine(shape: PodShape, machine: MachineResources) -> int:
    """How many such pods fit a machine; a pod that is larger than the smallest machine needs a larger one for itself."""
    offered = {"cpu": Fraction(machine.cpu, 1000), "memory": machine.memory, GPU_RESOURCE: machine.gpus}
    asked = {resource: parse_quantity(shape.requests.get(resource, "0")) for resource in offered}
    fits = [
        math.floor(amount / asked[resource]) for resource, amount in offered.items() if asked[resource] > 0
    ]
    return max(1, min(fits, default=shape.count))
