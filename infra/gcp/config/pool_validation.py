"""The rules of a single pool on GCP."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

from holdfast.infra.config import validation
from holdfast.infra.config.errors import format_value
from holdfast.infra.config.validation import NAMESPACES, POOLS
from holdfast.infra.gcp.config.fields import REGION, is_zone_of
from holdfast.scheduling.errors import Problem
from holdfast.scheduling.labels import CapacityType
from holdfast.scheduling.machines import attachable_to, can_be_placed_compactly, machine_catalogue, zones_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.infra.gcp.config.pool import GcpAccelerator, GcpPool
    from holdfast.scheduling.json import Json, JsonValue
    from holdfast.scheduling.machines import Machine


#: GKE makes no node pool of a longer name.
_LONGEST_NAME: Final = 40

_CLASSES_OF_GKE: Final = ("gke", "autopilot")


def pool_problems(pool: GcpPool, region: str | None, at: str) -> Iterator[Problem]:
    """Everything that is wrong with a pool; `region` is None where it is not known."""
    yield from _name(pool.name, f"{at}.name")
    yield from machine_problems(pool, at)
    if region is not None:
        yield from zone_problems(pool.zones or (), region, f"{at}.zones")
    yield from _compact(pool, region, at)
    yield from _shutdown(pool, at)
    yield from _compute_class(pool, at)


def _name(name: str, field: str) -> Iterator[Problem]:
    if len(name) > _LONGEST_NAME or not re.match(r"[a-z]", name, re.ASCII):
        shorter = re.sub(r"^[^a-z]+", "", name)[:_LONGEST_NAME].strip("-")
        yield Problem(
            field=field,
            value=format_value(name),
            allowed=f"a name of up to {_LONGEST_NAME} characters that starts with a letter, as a node pool's",
            fix=f'Write "{shorter}".' if shorter else "Write a name such as a100-spot.",
        )


def _compact(pool: GcpPool, region: str | None, at: str) -> Iterator[Problem]:
    zones = pool.zones or ()
    if pool.compact_placement and len(zones) != 1:
        example = next(iter(zones), f"{region or 'us-central1'}-a")
        yield Problem(
            field=f"{at}.compactPlacement",
            value=f"true on a pool in {len(zones) or 'all'} zones",
            allowed="true on a pool in one zone, because placement is within a zone",
            fix=f"Write `zones: [{example}]` beside it, or leave it out. Another zone later is another node pool: the "
            "first one is replaced, and what runs there starts again.",
        )


def _shutdown(pool: GcpPool, at: str) -> Iterator[Problem]:
    if pool.graceful_shutdown_seconds is not None and pool.capacity is not CapacityType.SPOT:
        yield Problem(
            field=f"{at}.gracefulShutdownSeconds",
            value=f"{pool.graceful_shutdown_seconds} on a pool that is {pool.capacity.value}",
            allowed="nothing here: GKE takes it for Spot VMs alone, which are the ones taken back",
            fix="Leave it out.",
        )


def _compute_class(pool: GcpPool, at: str) -> Iterator[Problem]:
    name = pool.compute_class
    if name is None:
        return
    if name.startswith(_CLASSES_OF_GKE):
        yield Problem(
            field=f"{at}.computeClass",
            value=format_value(name),
            allowed=f"any name that does not start with {' or '.join(_CLASSES_OF_GKE)}: GKE's own do",
            fix=f'Write another name, such as "training-{name}".',
        )
    if pool.default:
        yield Problem(
            field=f"{at}.computeClass",
            value=f"{format_value(name)} on the pool with default: true",
            allowed="a class on pools that jobs name: a pod that asks for nothing selects none",
            fix="Leave it out here.",
        )


def machine_problems(pool: GcpPool, at: str) -> Iterator[Problem]:
    """Everything that is wrong with a pool's machine."""
    field = f"{at}.machineType"
    wrong = list(named_machine(pool.machine_type, field))
    yield from wrong
    if wrong:
        return
    machine = machine_catalogue("gcp")[pool.machine_type]
    if pool.accelerator is not None:
        yield from _attached(pool.accelerator, machine, f"{at}.accelerator")
    if pool.compact_placement and not can_be_placed_compactly(machine):
        yield Problem(
            field=f"{at}.compactPlacement",
            value=f"true for {machine.name}",
            allowed="true for machines that Compute Engine places close together, and this family it does not",
            fix="Leave it out, or write another machineType, such as c2-standard-8.",
        )
    yield from _sold(pool.capacity, machine, field)
    yield from _architecture(machine, field)


def named_machine(name: str, field: str) -> Iterator[Problem]:
    """A machine type that there is not."""
    known = machine_catalogue("gcp")
    if name not in known:
        close = get_close_matches(name, known, n=1)
        yield Problem(
            field=field,
            value=format_value(name),
            allowed=f"one of the {len(known)} machine types that are known",
            fix=f'Write "{close[0]}".'
            if close
            else "Write one that `gcloud compute machine-types list` shows.",
        )


def no_gpus(name: str, field: str) -> Iterator[Problem]:
    """A machine with GPUs where these would only cost."""
    machine = machine_catalogue("gcp").get(name)
    if machine is not None and machine.gpus:
        yield Problem(
            field=field,
            value=f"{format_value(name)}, which has {machine.gpus} GPUs",
            allowed="a machine without GPUs: GKE taints those of GPU machines only where others are there before",
            fix="Write, for example, e2-standard-4.",
        )


def _attached(accelerator: GcpAccelerator, machine: Machine, at: str) -> Iterator[Problem]:
    if machine.gpus:
        yield Problem(
            field=at,
            value=f"{accelerator.count} × {accelerator.type} beside the {machine.gpus} × {machine.accelerator} of "
            f"{machine.name}",
            allowed="nothing: the machine brings its GPUs",
            fix="Leave it out.",
        )
        return
    taken = attachable_to(machine)
    if not taken:
        yield Problem(
            field=at,
            value=f"GPUs for {machine.name}",
            allowed="GPUs for machines of the n1 series, which alone take them",
            fix="Write a machineType such as n1-standard-8, or one that brings its GPUs, such as g2-standard-8.",
        )
    elif accelerator.type not in taken:
        close = get_close_matches(accelerator.type, taken, n=1)
        yield Problem(
            field=f"{at}.type",
            value=format_value(accelerator.type),
            allowed=f"what {machine.name} takes: {', '.join(sorted(taken))}",
            fix=f'Write "{close[0]}".' if close else "Write one of them.",
        )
    elif accelerator.count not in taken[accelerator.type]:
        counts = taken[accelerator.type]
        yield Problem(
            field=f"{at}.count",
            value=str(accelerator.count),
            allowed=f"as many of this kind as {machine.name} takes: {' or '.join(map(str, counts))}",
            fix=f"Write `count: {counts[0]}`; a machine of fewer vCPUs may take fewer.",
        )


def _sold(capacity: CapacityType, machine: Machine, field: str) -> Iterator[Problem]:
    on_spot = capacity is CapacityType.SPOT
    if not (machine.on_spot if on_spot else machine.on_demand):
        yield Problem(
            field=field,
            value=f"{format_value(machine.name)} {'on spot' if on_spot else 'on demand'}",
            allowed=f"a machine that Compute Engine sells so, and this one only {'on demand' if on_spot else 'on spot'}"
            if machine.on_spot or machine.on_demand
            else "a machine that Compute Engine sells so, and this one only by reservation",
            fix="Write another machineType, or the other capacity.",
        )


def _architecture(machine: Machine, field: str) -> Iterator[Problem]:
    if machine.arch != "amd64":
        yield Problem(
            field=field,
            value=f"{format_value(machine.name)}, a machine of {machine.arch}",
            allowed="machines of amd64: GKE taints the nodes of others with kubernetes.io/arch, and no job's pods "
            "tolerate that of their own accord",
            fix="Write, for example, n2-standard-4.",
        )


def class_problems(document: Json, pools: Mapping[int, GcpPool]) -> Iterator[Problem]:
    """Everything that is wrong with the classes that the pools of a document name."""
    yield from _mixed_capacity(pools)
    first_of_name: dict[str, GcpPool] = {}
    for pool in pools.values():
        first_of_name.setdefault(pool.name, pool)
    namespaces = document.get("namespaces")
    for index, entry in enumerate(namespaces if isinstance(namespaces, list | tuple) else ()):
        tiers = [first_of_name[name] for name in _pools_of(entry) if name in first_of_name]
        at = f"{NAMESPACES}[{index}].ladder"
        yield from _mixed_ladder(tiers, at)
        yield from _repeated_class(tiers, at)


def _mixed_capacity(pools: Mapping[int, GcpPool]) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for index, pool in pools.items():
        if pool.compute_class is None:
            continue
        other = pools[first.setdefault(pool.compute_class, index)]
        if other.capacity is not pool.capacity:
            yield Problem(
                field=f"{POOLS}[{index}].computeClass",
                value=f"{format_value(pool.compute_class)} on a pool that is {pool.capacity.value}, while {other.name} of the "
                f"same class is {other.capacity.value}",
                allowed="pools of one capacity type in a class: GKE goes on to the next at once and for each node by "
                "itself, and a job's pods would be on both",
                fix="Write a class for each capacity type, and a tier for each.",
            )


def _mixed_ladder(tiers: list[GcpPool], field: str) -> Iterator[Problem]:
    classes = [pool.name for pool in tiers if pool.compute_class is not None]
    others = [pool.name for pool in tiers if pool.compute_class is None]
    if classes and others:
        yield Problem(
            field=field,
            value=f"{', '.join(classes)} with computeClass, and {', '.join(others)} without",
            allowed="pools that all have a class, or none: a class is selected by cloud.google.com/compute-class, "
            "which GKE refuses beside its labels for spot, and a job that moves on keeps the selectors it had",
            fix="Add computeClass to each of them, or to none.",
        )


def _repeated_class(tiers: list[GcpPool], field: str) -> Iterator[Problem]:
    by_class: dict[str, list[str]] = {}
    for pool in tiers:
        if pool.compute_class is not None:
            by_class.setdefault(pool.compute_class, []).append(pool.name)
    for name, members in by_class.items():
        if len(set(members)) > 1:
            yield Problem(
                field=field,
                value=f"{', '.join(members)}, which are all of the class {format_value(name)}",
                allowed="one pool of a class: whoever selects the class gets any of them, and no tier is left",
                fix="Keep the first of them, or give each a class of its own.",
            )


def _pools_of(namespace: JsonValue) -> Iterator[str]:
    ladder = namespace.get("ladder") if isinstance(namespace, Mapping) else None
    for tier in ladder if isinstance(ladder, list | tuple) else ():
        name = tier.get("pool") if isinstance(tier, Mapping) else None
        if isinstance(name, str):
            yield name


def zone_problem(zone: str, region: str, field: str) -> Problem | None:
    """What is wrong with a zone for a stack in a region."""
    if is_zone_of(zone, region):
        return None
    there = zones_of(region)
    same_letter = f"{region}-{zone[-1]}"
    return Problem(
        field=field,
        value=format_value(zone),
        allowed=f"zones of {region}, the stack's region: {', '.join(there)}",
        fix=f'Write "{same_letter if same_letter in there else there[0]}", or change {REGION}.',
    )


def zone_problems(zones: tuple[str, ...], region: str, at: str) -> Iterator[Problem]:
    """Zones of other regions, and such as stand there twice."""
    for index, zone in enumerate(zones):
        wrong = zone_problem(zone, region, f"{at}[{index}]")
        yield from (wrong,) if wrong else ()
    yield from validation.duplicate_problems(zones, at, "zone")
