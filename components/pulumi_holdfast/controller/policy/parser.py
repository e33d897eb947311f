"""Parses a FallbackPolicy object.

The API server validates it against its schema, but the CRD may be older or newer than the controller, and tests and
replays use unvalidated objects. So the fields are validated again, by the same table; problems are texts.
"""

from __future__ import annotations

import math
from datetime import timedelta
from typing import Final

from pulumi_holdfast.controller.policy.policy import (
    DeclaredFacts,
    MachineResources,
    NoPolicy,
    Policy,
    PolicyTier,
    pool_in,
    pool_there,
)
from pulumi_holdfast.ladder.fallback_policy import spec_schema
from pulumi_holdfast.ladder.field_kinds import field_problems
from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.ladder import Failures, Tier, order_problems
from pulumi_holdfast.ladder.quantities import parse_duration, parse_quantity
from pulumi_holdfast.ladder.taints import Taint
from pulumi_holdfast.ladder.windows import CapacityWindow, parse_time

_SCHEMA: Final = spec_schema()
_MILLI: Final = 1000


def parse_policy(policy: Json | None) -> Policy | NoPolicy:
    """Parse the object; None for a namespace without one. The NoPolicy has its problems as texts.

    Unknown fields are ignored: they belong to a newer CRD.
    """
    if policy is None:
        return NoPolicy()
    spec = policy.get("spec")
    problems = [*field_problems({} if spec is None else spec, _SCHEMA, "spec")]
    if not problems:
        parsed = _policy(mapping(spec))
        tiers = [Tier(cluster=tier.cluster, pool=pool_there(tier.pool)) for tier in parsed.tiers]
        problems = [*order_problems(dict(enumerate(tiers)), len(tiers), "spec.tiers")]
        if not problems:
            return parsed
    return NoPolicy(problems=tuple(map(str, problems)))


# What follows reads valid fields only.
def _policy(spec: Json) -> Policy:
    default = Policy(tiers=())
    application_failures = _integer(spec, "applicationFailures")
    return Policy(
        tiers=tuple(_tier(mapping(tier)) for tier in sequence(spec.get("tiers"))),
        failures=Failures(spec.get("failures") or default.failures),
        outage_window=_duration(spec, "outageWindow") or default.outage_window,
        give_up_after=_duration(spec, "giveUpAfter"),
        application_failures=default.application_failures
        if application_failures is None
        else application_failures,
        failure_window=_duration(spec, "failureWindow"),
        return_after=None
        if spec.get("returnAfter") == "never"
        else _duration(spec, "returnAfter") or default.return_after,
        hold_timeout=_duration(spec, "holdTimeout") or default.hold_timeout,
        start_timeout=_duration(spec, "startTimeout") or default.start_timeout,
        deadline=_duration(spec, "deadline"),
        restart_cost=_duration(spec, "restartCost") or default.restart_cost,
    )


def _tier(tier: Json) -> PolicyTier:
    return PolicyTier(
        pool=pool_in(_text(tier, "cluster"), _text(tier, "pool")),
        max_failures=_integer(tier, "maxFailures"),
        procurement_timeout=_duration(tier, "procurementTimeout"),
        facts=_facts(mapping(tier.get("facts"))),
        price=_price(tier, "price"),
        max_price=_price(tier, "maxPrice"),
    )


def _facts(facts: Json) -> DeclaredFacts:
    """Return a tier's facts; missing ones are unknown."""
    window = mapping(facts.get("window"))
    machine = mapping(facts.get("machine"))
    capacity = _text(facts, "capacity")
    return DeclaredFacts(
        capacity=CapacityType(capacity) if capacity else None,
        labels=tuple((key, str(value)) for key, value in mapping(facts.get("labels")).items()),
        taints=tuple(_taint(mapping(taint)) for taint in sequence(facts.get("taints"))),
        machine=_machine(machine) if machine else None,
        max_nodes=_integer(facts, "maxNodes"),
        window=CapacityWindow(
            begins=parse_time(_text(window, "begins")), ends=parse_time(_text(window, "ends"))
        ),
    )


def _taint(taint: Json) -> Taint:
    return Taint(key=_text(taint, "key"), value=_text(taint, "value"), effect=_text(taint, "effect"))


def _machine(machine: Json) -> MachineResources:
    return MachineResources(
        cpu=math.ceil(parse_quantity(machine.get("cpu")) * _MILLI),
        memory=math.ceil(parse_quantity(machine.get("memory"))),
        gpus=_integer(machine, "gpus") or 0,
    )


def _text(fields: Json, name: str) -> str:
    return str(fields.get(name) or "")


def _integer(fields: Json, name: str) -> int | None:
    value = fields.get(name)
    return value if isinstance(value, int) else None


def _price(fields: Json, name: str) -> float | None:
    value = fields.get(name)
    return float(value) if isinstance(value, int | float) else None


def _duration(fields: Json, name: str) -> timedelta | None:
    value = fields.get(name)
    return parse_duration(value) if isinstance(value, str) else None
