"""Shapes: what the jobs of a training namespace request. The jobs are created later, and are in no program."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import combinations
from types import MappingProxyType
from typing import Final

from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.labels import CAPACITY_KEYS, EFA_RESOURCE, GPU_RESOURCE, POOL
from pulumi_holdfast.ladder.machines import Architecture
from pulumi_holdfast.ladder.quantities import AmountError, format_memory, parse_memory
from pulumi_holdfast.ladder.reachability import messages
from pulumi_holdfast.ladder.reachability.affinity import Term
from pulumi_holdfast.ladder.taints import Toleration


@dataclass(frozen=True, kw_only=True)
class Resources:
    """Resources that pods request and machines have: thousandths of a CPU, MiB, GPUs, Elastic Fabric Adapters.

    `devices` are all others by name: extended resources in pieces, ephemeral storage and huge pages in MiB.
    """

    cpu_millis: int
    memory_mib: int
    gpus: int = 0
    efa: int = 0
    devices: Mapping[str, int] = field(default_factory=dict[str, int])

    def fits_in(self, available: "Resources") -> bool:
        """Whether `available` has as much of each resource."""
        return (
            self.cpu_millis <= available.cpu_millis
            and self.memory_mib <= available.memory_mib
            and self.gpus <= available.gpus
            and self.efa <= available.efa
            and all(wanted <= available.devices.get(name, 0) for name, wanted in self.devices.items())
        )

    def times_in(self, available: "Resources") -> int:
        """How often it fits side by side; a request for nothing fits any number of times."""
        ratios = [
            have // wanted
            for wanted, have in (
                (self.cpu_millis, available.cpu_millis),
                (self.memory_mib, available.memory_mib),
                (self.gpus, available.gpus),
                (self.efa, available.efa),
                *((wanted, available.devices.get(name, 0)) for name, wanted in self.devices.items()),
            )
            if wanted > 0
        ]
        return max(0, min(ratios)) if ratios else _ANY_NUMBER

    def times(self, count: int) -> "Resources":
        """The resources multiplied by a count."""
        return Resources(
            cpu_millis=self.cpu_millis * count,
            memory_mib=self.memory_mib * count,
            gpus=self.gpus * count,
            efa=self.efa * count,
            devices={name: amount * count for name, amount in self.devices.items()},
        )

    def without(self, taken: "Resources") -> "Resources":
        """What is left of each resource after some is taken."""
        return Resources(
            cpu_millis=max(0, self.cpu_millis - taken.cpu_millis),
            memory_mib=max(0, self.memory_mib - taken.memory_mib),
            gpus=max(0, self.gpus - taken.gpus),
            efa=max(0, self.efa - taken.efa),
            devices={
                name: max(0, amount - taken.devices.get(name, 0)) for name, amount in self.devices.items()
            },
        )

    def beside(self, requests: "Resources") -> "Resources":
        """The same amounts with no devices but those that are requested, as a message compares them."""
        devices = {name: amount for name, amount in self.devices.items() if name in requests.devices}
        return replace(self, devices=devices)

    def without_devices(self, names: Collection[str]) -> "Resources":
        """The same amounts without some devices, which may be the fabric adapters."""
        devices = {name: amount for name, amount in self.devices.items() if name not in names}
        return replace(self, efa=0 if EFA_RESOURCE in names else self.efa, devices=devices)

    def __str__(self) -> str:
        """The text in messages: `8 GPUs, 90 CPU, 900 GiB`; GiB with one decimal, truncated."""
        cpu = f"{_decimal(self.cpu_millis, 1000)} CPU"
        tenths = self.memory_mib * 10 // _GIB
        memory = f"{_decimal(tenths, 10)} GiB" if self.memory_mib >= _GIB else f"{self.memory_mib} MiB"
        gpus = {0: (), 1: ("1 GPU",)}.get(self.gpus, (f"{self.gpus} GPUs",))
        adapters = (f"{self.efa} EFA",) if self.efa else ()
        devices = (
            f"{f'{amount} MiB' if is_in_bytes(name) else amount} {name}"
            for name, amount in sorted(self.devices.items())
        )
        return ", ".join((*gpus, *adapters, cpu, memory, *devices))


#: The resource of a node's local disk, and the start of the resources of huge pages.
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
HUGE_PAGES: Final = "hugepages-"


def is_in_bytes(device: str) -> bool:
    """Whether a resource in `devices` is an amount of bytes: of local disk, or of huge pages."""
    return device == EPHEMERAL_STORAGE or device.startswith(HUGE_PAGES)


def parse_device(name: str, text: str) -> int:
    """Parse an amount of a device: `200Gi` of local disk or huge pages as MiB, `1` of any other as pieces.

    Raises AmountError for anything else, and for less than one or more than 10000 pieces.
    """
    if is_in_bytes(name):
        return parse_memory(text)
    if re.fullmatch(r"[0-9]{1,5}", text, re.ASCII) and 1 <= int(text) <= MOST_PIECES:
        return int(text)
    raise AmountError(
        text, f"a whole number, 1 to {MOST_PIECES}", f"Write how many {name} each pod requests, such as 1."
    )


def format_device(name: str, amount: int) -> str:
    """Format an amount of a device for `parse_device`."""
    return format_memory(amount) if is_in_bytes(name) else str(amount)


#: More devices of one kind than any machine has.
MOST_PIECES: Final = 10_000

#: More of any resource than a machine has: thousandths of a CPU, MiB, or pieces. A pod that requests more is taken to request
#: this much, and a gang of more pods to have this many, because the API server's integers have 64 bits.
MOST_REQUESTED: Final = 1_024_000_000
MOST_COUNTED: Final = 10**6


_GIB: Final = 1024
_ANY_NUMBER: Final = 2**31


def _decimal(parts: int, of: int) -> str:
    return f"{parts // of}{f'{parts % of / of:g}'[1:] if parts % of else ''}"


def total(parts: Sequence[Resources]) -> Resources:
    """The sum of each resource."""
    return Resources(
        cpu_millis=sum(each.cpu_millis for each in parts),
        memory_mib=sum(each.memory_mib for each in parts),
        gpus=sum(each.gpus for each in parts),
        efa=sum(each.efa for each in parts),
        devices={name: sum(each.devices.get(name, 0) for each in parts) for name in _devices(parts)},
    )


def widest(parts: Sequence[Resources]) -> Resources:
    """The maximum of each resource."""
    return Resources(
        cpu_millis=max((each.cpu_millis for each in parts), default=0),
        memory_mib=max((each.memory_mib for each in parts), default=0),
        gpus=max((each.gpus for each in parts), default=0),
        efa=max((each.efa for each in parts), default=0),
        devices={name: max(each.devices.get(name, 0) for each in parts) for name in _devices(parts)},
    )


def _devices(parts: Sequence[Resources]) -> tuple[str, ...]:
    return tuple(sorted({name for each in parts for name in each.devices}))


#: The kubelet's default; `machine_capacity` has the limits of the clouds.
MAX_PODS_PER_NODE: Final = 110

DEFAULT_SHAPE: Final = "default"


class Placement(StrEnum):
    """What all pods of a gang have in common."""

    ZONE = "zone"  #: one zone
    HOST_GROUP = "hostGroup"  #: machines close to each other, in one zone


@dataclass(frozen=True, kw_only=True)
class Shape:
    """One kind of job: a gang of `pods` that run at the same time, each with these requests.

    `accelerator` is the model of its GPUs, None for any. `selector` is the node selector of its pods beside
    the pool label, `affinity` the terms of which one has to match, `tolerations` those before admission adds to them, `zones`
    the zones of their volumes, None if nothing binds them to a zone. `architectures` are those that their images run on, none
    if that is not declared. `same_placement`: all pods run in one zone or group of hosts; `one_per_node`: no two of them share
    a node. `apart_by` is a node label of which each of so many groups of its pods needs a value for itself, None if none do. `after` are the names of shapes of the same job whose pods have all ended before its own begin. `priority` is that of
    its pods, None if no class of the program gives one. `unmodeled` are reasons why no check can tell where its pods run. One that
    is not declared stands for the jobs of a namespace without shapes: what these tolerate is not known.
    """

    name: str = DEFAULT_SHAPE
    pods: int = 1
    requests: Resources
    accelerator: str | None = None
    selector: Mapping[str, str] = field(default_factory=dict[str, str])
    affinity: tuple[Term, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    zones: frozenset[str] | None = None
    architectures: tuple[Architecture, ...] = ()
    same_placement: Placement | None = None
    one_per_node: bool = False
    apart_by: tuple[str, int] | None = None
    after: frozenset[str] = frozenset()
    priority: int | None = None
    unmodeled: tuple[str, ...] = ()
    is_declared: bool = True

    @property
    def title(self) -> str:
        """The shape in a message."""
        gang = messages.ALONE if self.pods == 1 else messages.GANG.format(pods=self.pods)
        return messages.SHAPE.format(name=self.name, gang=gang, requests=self.requests)


#: More shapes that wait for each other are taken to run all at once: their sets are listed one by one.
_MOST_SEQUENCES: Final = 12


def run_at_once(shapes: Sequence[Shape]) -> tuple[tuple[Shape, ...], ...]:
    """Return the largest sets of shapes of one job that may run at the same time."""
    waited_for = frozenset[str]().union(*(shape.after for shape in shapes))
    ordered = [at for at, shape in enumerate(shapes) if shape.after or shape.name in waited_for]
    if len(ordered) > _MOST_SEQUENCES:
        return (tuple(shapes),)
    found: list[frozenset[int]] = []
    for size in range(len(ordered), -1, -1):
        for chosen in map(frozenset, combinations(ordered, size)):
            names = {shapes[at].name for at in chosen}
            waits = any(shapes[at].after & names for at in chosen)
            if not waits and not any(chosen <= each for each in found):
                found.append(chosen)
    return tuple(
        tuple(shape for at, shape in enumerate(shapes) if at in chosen or at not in ordered)
        for chosen in found
    )


#: The requests of a shape that sets none.
LEAST: Final = Resources(cpu_millis=1000, memory_mib=2048)

# Limits in the schema: the API server estimates the cost of CEL rules from them.
MOST_SHAPES: Final = 16
WIDEST_GANG: Final = 10_000
MOST_GPUS: Final = 64
MOST_ADAPTERS: Final = 64
MOST_TOLERATIONS: Final = 16
MOST_SELECTED: Final = 16
MOST_DEVICES: Final = 16
LONGEST_ACCELERATOR: Final = 63

#: Resources that a shape has a field of its own for.
DEVICE_FIELDS: Final[Mapping[str, str]] = MappingProxyType(
    {"cpu": "cpu", "memory": "memory", GPU_RESOURCE: "gpus", EFA_RESOURCE: "efa"}
)
#: Labels that a move sets or removes, so no shape may select them.
MOVED_LABELS: Final = tuple(sorted({POOL, *CAPACITY_KEYS}))


def shape_problems(shapes: Sequence[Shape], at: str) -> Iterator[Problem]:
    """Validate shapes; `at` is the path of their list."""
    for index, shape in enumerate(shapes):
        if shape.accelerator is not None and not shape.requests.gpus:
            yield Problem(
                field=f"{at}[{index}].accelerator",
                value=f'"{shape.accelerator}" without GPUs',
                allowed="a kind of GPU beside gpus of 1 or more",
                fix="Add gpus, the number that each pod requests, such as 8; or remove accelerator.",
            )
        for name in sorted(shape.requests.devices.keys() & DEVICE_FIELDS.keys()):
            yield Problem(
                field=f"{at}[{index}].devices",
                value=f'"{name}"',
                allowed="resources that have no field of their own",
                fix=f"Write {DEVICE_FIELDS[name]} of the shape instead.",
            )
        for key in (each for each in MOVED_LABELS if each in shape.selector):
            yield Problem(
                field=f"{at}[{index}].selector",
                value=f'"{key}"',
                allowed="labels that every tier's nodes may have: a move selects the pool, and removes capacity types",
                fix=f"Remove {key}.",
            )
        if len({*shape.architectures}) < len(shape.architectures):
            yield Problem(
                field=f"{at}[{index}].architectures",
                value=", ".join(shape.architectures),
                allowed="each architecture once",
                fix="Remove one of the two.",
            )
        for number, toleration in enumerate(shape.tolerations):
            if not toleration.key and toleration.value is not None:
                yield Problem(
                    field=f"{at}[{index}].tolerations[{number}]",
                    value="no key with operator Equal",
                    allowed="a key, or operator Exists for any",
                    fix="Add key, or write operator: Exists.",
                )
