"""Validates a local stack's configuration: rules that involve more than one field."""

from __future__ import annotations

from collections.abc import Iterator

from pulumi_holdfast.config import machine_validation, validation, versions
from pulumi_holdfast.config.loader import PLATFORM, read_parts, read_section
from pulumi_holdfast.config.reservation import reservation_problems
from pulumi_holdfast.config.validation import pool_and_ladder_problems
from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.machines import machine_catalogue
from pulumi_holdfast.local.config.stack import CATALOGUE, LocalPlatform, LocalPool


def local_problems(document: Json) -> Iterator[Problem]:
    """The problems of a local stack's document that involve more than one field."""
    yield from validation.kubernetes_version_problems(
        document.get("cluster"), versions.KUBERNETES, f"{PLATFORM}.cluster"
    )
    yield from pool_and_ladder_problems(
        document,
        read_parts(LocalPool, document.get("pools")),
        problems_of=_pool_problems,
        as_pool=LocalPool.as_pool,
    )


def _pool_problems(pool: LocalPool, at: str) -> Iterator[Problem]:
    catalogue = machine_catalogue("local")
    sold = machine_validation.MachineOffer(
        catalogue=catalogue,
        allowed=f"the instance types in {CATALOGUE}: {', '.join(catalogue)}",
        fix=f"Write one of them, or describe it in {CATALOGUE}.",
    )
    yield from machine_validation.machine_type_problems(pool.instance_types, sold, f"{at}.instanceTypes")
    yield from reservation_problems(
        pool.capacity, {"reservation": pool.reservation}, at, example="reservation: {}"
    )


def read_local_platform(document: Json) -> LocalPlatform:
    """Parse and validate a local stack's configuration.

    Raises ConfigError with every problem.
    """
    return read_section(LocalPlatform, document, local_problems)
