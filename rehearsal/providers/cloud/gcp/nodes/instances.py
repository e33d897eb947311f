"""The virtual machines behind node pools: a cloud's own objects, made by no program.

Those a pool begins with are known without being written down; what became of one of them is, and so is every other.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from rehearsal.kube.summary import mapping
from rehearsal.providers.cloud.gcp.nodes.template import NodeTemplate
from rehearsal.providers.cloud.state import CloudObject, Inventory

if TYPE_CHECKING:
    from scheduling.json import Json

INSTANCE: Final = "rehearsal:gke/instance:Instance"
# A node's name may have 63 characters.
_LONGEST_PART: Final = 20
_LETTERS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
_STRIDE: Final = 1_000_003


class State(StrEnum):
    """As Compute Engine names it. A machine that is gone from its group for good is told only of those a pool begins with."""

    RUNNING = "RUNNING"
    TERMINATED = "TERMINATED"
    DELETED = "DELETED"


@dataclass(frozen=True, kw_only=True)
class Instance:
    """A virtual machine of a pool, in a zone; `generation` counts the machines there were of its name."""

    name: str
    zone: str
    state: State = State.RUNNING
    generation: int = 1


def instances_of(pool: CloudObject, template: NodeTemplate, inventory: Inventory) -> list[Instance]:
    """Return the machines of a pool that run or are to run again."""
    recorded = {one.name: one for one in _recorded(pool, inventory)}
    first = {one.name: one for one in _first(pool, template)}
    return [one for one in {**first, **recorded}.values() if one.state is not State.DELETED]


def new_instance(pool: CloudObject, template: NodeTemplate, zone: str, inventory: Inventory) -> Instance:
    """Return another machine for a pool; nothing is recorded."""
    # The machines it begins with have the first numbers.
    number = template.initial + inventory.next_generation(f"{INSTANCE}::{_key(pool)}") - 1
    return Instance(name=_name(pool, template, zone, number), zone=zone)


def record(pool: CloudObject, instance: Instance, inventory: Inventory) -> None:
    """Write down what a machine is now."""
    inputs: Json = {
        "pool": pool.id,
        "key": _key(pool),
        "zone": instance.zone,
        "state": instance.state.value,
        "generation": instance.generation,
    }
    inventory.put(CloudObject(type=INSTANCE, id=instance.name, urn="", inputs=inputs))


def drop(pool: CloudObject, template: NodeTemplate, instance: Instance, inventory: Inventory) -> None:
    """Take a machine off its pool for good."""
    if instance.name in {one.name for one in _first(pool, template)}:
        record(pool, replace(instance, state=State.DELETED), inventory)
    else:
        inventory.remove(INSTANCE, instance.name)


def forget_lost_pools(pools: Mapping[str, CloudObject], inventory: Inventory) -> None:
    """Drop what is written down of the machines of pools that are gone; `pools` are those there are, by id."""
    for one in inventory.of_type(INSTANCE):
        pool = pools.get(str(one.inputs.get("pool")))
        if pool is None or one.inputs.get("key") != _key(pool):
            inventory.remove(INSTANCE, one.id)


def _recorded(pool: CloudObject, inventory: Inventory) -> Iterator[Instance]:
    for one in inventory.of_type(INSTANCE):
        inputs = mapping(one.inputs)
        if inputs.get("pool") == pool.id and inputs.get("key") == _key(pool):
            generation = inputs.get("generation")
            yield Instance(
                name=one.id,
                zone=str(inputs.get("zone")),
                state=State(str(inputs.get("state"))),
                generation=generation if isinstance(generation, int) else 1,
            )


def _first(pool: CloudObject, template: NodeTemplate) -> Iterator[Instance]:
    for number in range(template.initial):
        zone = template.zones[number % len(template.zones)]
        yield Instance(name=_name(pool, template, zone, number), zone=zone)


def _name(pool: CloudObject, template: NodeTemplate, zone: str, number: int) -> str:
    """Return a name as GKE makes it: of the cluster, the pool, the pool's group in the zone, and a few letters."""
    group = hashlib.sha256(f"{_key(pool)}|{zone}".encode()).hexdigest()[:8]
    # A stride that shares no factor with how many there are: no two numbers make the same letters.
    place = (int(group, 16) + number * _STRIDE) % len(_LETTERS) ** 4
    letters = "".join(_LETTERS[place // len(_LETTERS) ** digit % len(_LETTERS)] for digit in range(4))
    return "-".join(("gke", _part(template.cluster), _part(template.name), group, letters))


def _part(name: str) -> str:
    return name[:_LONGEST_PART].strip("-")


def _key(pool: CloudObject) -> str:
    """Return what tells a pool from a later one of its name."""
    return pool.digest or pool.id
