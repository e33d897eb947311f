"""Validates the pools, machine types, zones and ComputeClasses of a GCP stack."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from difflib import get_close_matches
from typing import Final

from pulumi_holdfast.config import validation
from pulumi_holdfast.config.errors import format_value
from pulumi_holdfast.config.reservation import reservation_problems
from pulumi_holdfast.config.validation import NAMESPACES, POOLS
from pulumi_holdfast.gcp.config.fields import REGION, is_zone_of
from pulumi_holdfast.gcp.config.pool import GcpAccelerator, GcpFlexStart, GcpPool, Upgrades
from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.machines import (
    Machine,
    attachable_to,
    can_be_placed_compactly,
    machine_catalogue,
    zones_of,
)
from pulumi_holdfast.ladder.quantities import format_duration

#: GKE's limit for the name of a node pool.
_LONGEST_NAME: Final = 40

_CLASSES_OF_GKE: Final = ("gke", "autopilot")


def pool_problems(pool: GcpPool, region: str | None, at: str) -> Iterator[Problem]:
    """The problems of a pool; `region` is None if it is unknown."""
    yield from _name(pool.name, f"{at}.name")
    yield from machine_problems(pool, at)
    if region is not None:
        yield from zone_problems(pool.zones or (), region, f"{at}.zones")
    yield from _compact(pool, region, at)
    yield from _shutdown(pool, at)
    yield from _reservation(pool, region, at)
    yield from _compute_class(pool, at)


def _name(name: str, field: str) -> Iterator[Problem]:
    if len(name) > _LONGEST_NAME or not re.match(r"[a-z]", name, re.ASCII):
        shorter = re.sub(r"^[^a-z]+", "", name)[:_LONGEST_NAME].strip("-")
        yield Problem(
            field=field,
            value=format_value(name),
            allowed=f"a name of up to {_LONGEST_NAME} characters that starts with a letter, GKE's rule for node pools",
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
            fix=f"Add `zones: [{example}]`, or leave it out. A later change of the zone replaces the node pool, and "
            "restarts its jobs.",
        )
    if pool.compact_placement and pool.upgrades is Upgrades.BLUE_GREEN:
        yield Problem(
            field=f"{at}.upgrades",
            value="blue-green with compactPlacement: true",
            allowed="surge: GKE does not support blue-green upgrades of node pools with compact placement",
            fix="Write `upgrades: surge`, or leave it out.",
        )


def _shutdown(pool: GcpPool, at: str) -> Iterator[Problem]:
    if pool.graceful_shutdown_seconds is not None and pool.capacity is not CapacityType.SPOT:
        yield Problem(
            field=f"{at}.gracefulShutdownSeconds",
            value=f"{pool.graceful_shutdown_seconds} on a pool that is {pool.capacity.value}",
            allowed="nothing: GKE supports it for Spot VMs only",
            fix="Leave it out.",
        )


#: The limits of Compute Engine for a machine that runs for a limited time.
_SHORTEST_RUN: Final = timedelta(minutes=10)
_LONGEST_RUN: Final = timedelta(days=7)


def _reservation(pool: GcpPool, region: str | None, at: str) -> Iterator[Problem]:
    yield from reservation_problems(
        pool.capacity,
        {"reservation": pool.reservation, "flexStart": pool.flex_start},
        at,
        example="reservation: {name: h100}",
    )
    if pool.capacity is not CapacityType.RESERVED:
        return
    if pool.reservation is not None and len(pool.zones or ()) != 1:
        yield Problem(
            field=f"{at}.zones",
            value=f"{len(pool.zones or ()) or 'all'} zones on a pool with a reservation",
            allowed="one zone, because a reservation is in one",
            fix=f"Write the zone of the reservation, such as `zones: [{region or 'us-central1'}-a]`.",
        )
    if pool.compact_placement:
        yield Problem(
            field=f"{at}.compactPlacement",
            value="true on a reserved pool",
            allowed="nothing: reserved machines are placed as the reservation says",
            fix="Leave it out.",
        )
    if pool.upgrades is Upgrades.BLUE_GREEN:
        yield Problem(
            field=f"{at}.upgrades",
            value="blue-green on a reserved pool",
            allowed="surge: the reservation has no machines for a second set of nodes",
            fix="Write `upgrades: surge`, or leave it out.",
        )
    if pool.flex_start is not None:
        yield from _flex_start(pool, pool.flex_start, f"{at}.flexStart")


def _flex_start(pool: GcpPool, flex_start: GcpFlexStart, at: str) -> Iterator[Problem]:
    run, machine = flex_start.max_run_duration, machine_catalogue("gcp").get(pool.machine_type)
    if not _SHORTEST_RUN <= run <= _LONGEST_RUN:
        yield Problem(
            field=f"{at}.maxRunDuration",
            value=format_duration(run),
            allowed=f"{format_duration(_SHORTEST_RUN)} to {format_duration(_LONGEST_RUN)}",
            fix=f"Write {format_duration(_LONGEST_RUN)}, or a shorter time.",
        )
    if machine is not None and not machine.gpus and pool.accelerator is None:
        yield Problem(
            field=at,
            value=f"a value for {machine.name}, which has no GPUs",
            allowed="a value for machines with GPUs, the only ones that the Dynamic Workload Scheduler sells",
            fix="Write a machineType with GPUs, such as a3-highgpu-8g, or another capacity.",
        )


def _compute_class(pool: GcpPool, at: str) -> Iterator[Problem]:
    name = pool.compute_class
    if name is None:
        return
    if name.startswith(_CLASSES_OF_GKE):
        yield Problem(
            field=f"{at}.computeClass",
            value=format_value(name),
            allowed=f"a name that does not start with {' or '.join(_CLASSES_OF_GKE)}, which GKE uses for its own",
            fix=f'Write another name, such as "training-{name}".',
        )
    if pool.default:
        yield Problem(
            field=f"{at}.computeClass",
            value=f"{format_value(name)} on the pool with default: true",
            allowed="a class on other pools: a pod that names no pool selects no class",
            fix="Leave it out on this pool.",
        )


def machine_problems(pool: GcpPool, at: str) -> Iterator[Problem]:
    """The problems of a pool's machine type."""
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
            allowed="true for a machine family that supports compact placement; this one does not",
            fix="Leave it out, or write another machineType, such as c2-standard-8.",
        )
    yield from _sold(pool.capacity, machine, field)
    yield from _architecture(machine, field)


def named_machine(name: str, field: str) -> Iterator[Problem]:
    """A machine type that does not exist."""
    known = machine_catalogue("gcp")
    if name not in known:
        close = get_close_matches(name, known, n=1)
        yield Problem(
            field=field,
            value=format_value(name),
            allowed=f"one of the {len(known)} known machine types",
            fix=f'Write "{close[0]}".' if close else "Write one from `gcloud compute machine-types list`.",
        )


def no_gpus(name: str, field: str) -> Iterator[Problem]:
    """A machine with GPUs for system nodes, which use none."""
    machine = machine_catalogue("gcp").get(name)
    if machine is not None and machine.gpus:
        yield Problem(
            field=field,
            value=f"{format_value(name)}, which has {machine.gpus} GPUs",
            allowed="a machine without GPUs: GKE taints GPU nodes only if other nodes exist first",
            fix="Write, for example, e2-standard-4.",
        )


def _attached(accelerator: GcpAccelerator, machine: Machine, at: str) -> Iterator[Problem]:
    if machine.gpus:
        yield Problem(
            field=at,
            value=f"{accelerator.count} × {accelerator.type} in addition to the {machine.gpus} × {machine.accelerator} of "
            f"{machine.name}",
            allowed="nothing: the machine type includes its GPUs",
            fix="Leave it out.",
        )
        return
    taken = attachable_to(machine)
    if not taken:
        yield Problem(
            field=at,
            value=f"GPUs for {machine.name}",
            allowed="GPUs for machines of the n1 series, the only ones that support them",
            fix="Write a machineType such as n1-standard-8, or one that includes GPUs, such as g2-standard-8.",
        )
    elif accelerator.type not in taken:
        close = get_close_matches(accelerator.type, taken, n=1)
        yield Problem(
            field=f"{at}.type",
            value=format_value(accelerator.type),
            allowed=f"one of the kinds that {machine.name} supports: {', '.join(sorted(taken))}",
            fix=f'Write "{close[0]}".' if close else "Write one of them.",
        )
    elif accelerator.count not in taken[accelerator.type]:
        counts = taken[accelerator.type]
        yield Problem(
            field=f"{at}.count",
            value=str(accelerator.count),
            allowed=f"a number of this kind that {machine.name} supports: {' or '.join(map(str, counts))}",
            fix=f"Write `count: {counts[0]}`; a machine with fewer vCPUs may support fewer.",
        )


def _sold(capacity: CapacityType, machine: Machine, field: str) -> Iterator[Problem]:
    if capacity is CapacityType.RESERVED:
        return
    on_spot = capacity is CapacityType.SPOT
    if not (machine.on_spot if on_spot else machine.on_demand):
        yield Problem(
            field=field,
            value=f"{format_value(machine.name)} {'on spot' if on_spot else 'on demand'}",
            allowed=f"another machine type; Compute Engine offers this one only {'on demand' if on_spot else 'on spot'}"
            if machine.on_spot or machine.on_demand
            else "another machine type; Compute Engine offers this one only by reservation",
            fix="Write another machineType, or the other capacity.",
        )


def _architecture(machine: Machine, field: str) -> Iterator[Problem]:
    if machine.arch != "amd64":
        yield Problem(
            field=field,
            value=f"{format_value(machine.name)}, a machine of {machine.arch}",
            allowed="machines of amd64: GKE taints nodes of other architectures with kubernetes.io/arch, which the pods "
            "of jobs do not tolerate",
            fix="Write, for example, n2-standard-4.",
        )


def class_problems(document: Json, pools: Mapping[int, GcpPool]) -> Iterator[Problem]:
    """The problems of the ComputeClasses that a document's pools name."""
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
                value=f"{format_value(pool.compute_class)} on a pool that is {pool.capacity.value}, but {other.name} of the "
                f"same class is {other.capacity.value}",
                allowed="pools of one capacity type in a class: GKE tries the next pool immediately and for each node, so "
                "a job's pods would run on both capacity types",
                fix="Write a class and a tier for each capacity type.",
            )


def _mixed_ladder(tiers: list[GcpPool], field: str) -> Iterator[Problem]:
    classes = [pool.name for pool in tiers if pool.compute_class is not None]
    others = [pool.name for pool in tiers if pool.compute_class is None]
    if classes and others:
        yield Problem(
            field=field,
            value=f"{', '.join(classes)} with computeClass, and {', '.join(others)} without",
            allowed="pools that all have a class, or none: jobs select a class by cloud.google.com/compute-class, which "
            "GKE rejects together with its spot labels, and a job that moves keeps its node selectors",
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
                value=f"{', '.join(members)}, all of the class {format_value(name)}",
                allowed="one pool of a class: a job that selects the class gets any of them, so they are one tier",
                fix="Keep the first of them, or write a class for each.",
            )


def _pools_of(namespace: JsonValue) -> Iterator[str]:
    ladder = namespace.get("ladder") if isinstance(namespace, Mapping) else None
    for tier in ladder if isinstance(ladder, list | tuple) else ():
        name = tier.get("pool") if isinstance(tier, Mapping) else None
        if isinstance(name, str):
            yield name


def zone_problems(zones: tuple[str, ...], region: str, at: str) -> Iterator[Problem]:
    """Zones of other regions, and duplicates."""
    there = zones_of(region)
    for index, zone in enumerate(zones):
        same_letter = f"{region}-{zone[-1]}"
        if not is_zone_of(zone, region):
            yield Problem(
                field=f"{at}[{index}]",
                value=format_value(zone),
                allowed=f"zones of {region}, the stack's region: {', '.join(there)}",
                fix=f'Write "{same_letter if same_letter in there else there[0]}", or change {REGION}.',
            )
    yield from validation.duplicate_problems(zones, at, "zone")
