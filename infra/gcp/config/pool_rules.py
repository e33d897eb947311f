"""The rules of a single pool on GCP."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holdfast.infra.config.problems import shown
from holdfast.infra.gcp.config.cluster_rules import zones_outside
from holdfast.infra.gcp.config.machine_rules import machine_problems
from holdfast.scheduling.errors import Problem
from holdfast.scheduling.labels import CapacityType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from holdfast.infra.gcp.config.pool import GcpPool

#: GKE makes no node pool of a longer name.
_LONGEST_NAME: Final = 40

_CLASSES_OF_GKE: Final = ("gke", "autopilot")


def pool_problems(pool: GcpPool, region: str | None, at: str) -> Iterator[Problem]:
    """Everything that is wrong with a pool; `region` is None where it is not known."""
    yield from _name(pool.name, f"{at}.name")
    yield from machine_problems(pool, at)
    if region is not None:
        yield from zones_outside(pool.zones or (), region, f"{at}.zones")
    yield from _compact(pool, region, at)
    yield from _shutdown(pool, at)
    yield from _compute_class(pool, at)


def _name(name: str, field: str) -> Iterator[Problem]:
    if len(name) > _LONGEST_NAME or not re.match(r"[a-z]", name, re.ASCII):
        shorter = re.sub(r"^[^a-z]+", "", name)[:_LONGEST_NAME].strip("-")
        yield Problem(
            field=field,
            value=shown(name),
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
            allowed="true on a pool in one zone, because machines that are close together are in one",
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
            value=shown(name),
            allowed=f"any name that does not start with {' or '.join(_CLASSES_OF_GKE)}: GKE's own do",
            fix=f'Write another, such as "training-{name}".',
        )
    if pool.default:
        yield Problem(
            field=f"{at}.computeClass",
            value=f"{shown(name)} on the pool with default: true",
            allowed="a class on pools that jobs name: a pod that asks for nothing selects none",
            fix="Leave it out here.",
        )
