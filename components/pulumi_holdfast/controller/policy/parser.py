"""Parses a FallbackPolicy object.

The API server validates it against its schema, but the CRD may be older or newer than the controller, and tests and
replays use unvalidated objects. So every field is validated again; problems are texts.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from pulumi_holdfast.controller.policy.policy import (
    DeclaredFacts,
    MachineResources,
    NoPolicy,
    Policy,
    PolicyTier,
    is_dns_label,
    pool_in,
    pool_there,
)
from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.frozen import replace
from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.ladder import (
    ELSEWHERE_BETWEEN,
    HIGHEST_PRICE,
    MOST_FAILURES,
    MOVE_BETWEEN,
    UNLIMITED,
    Failures,
)
from pulumi_holdfast.ladder.quantities import DURATION_ALLOWED, DurationError, parse_duration, parse_quantity
from pulumi_holdfast.ladder.taints import Taint
from pulumi_holdfast.ladder.windows import TIME_ALLOWED, CapacityWindow, parse_time

# Longer values are cut when a problem quotes them.
_QUOTED: Final = 60


class Problems:
    """The problems found so far."""

    def __init__(self) -> None:
        self._found: list[Problem] = []

    @property
    def texts(self) -> tuple[str, ...]:
        """Each problem as a line: field, value, what is allowed, the fix."""
        return tuple(str(problem) for problem in self._found)

    def add(self, field: str, value: str, allowed: str, fix: str) -> None:
        """Add a problem."""
        self._found.append(Problem(field=field, value=value, allowed=allowed, fix=fix))


class SpecFields:
    """The fields of one object at a path; a missing field is None, one of a wrong type None and a problem."""

    def __init__(self, document: Json, path: str, problems: Problems) -> None:
        self._document = document
        self._path = path
        self._problems = problems

    def section(self, name: str) -> SpecFields:
        """The object in a field; one without fields if it is missing."""
        value = self._document.get(name)
        if value is not None and not isinstance(value, Mapping):
            self._wrong(name, value, "an object")
        return SpecFields(value if isinstance(value, Mapping) else {}, self._at(name), self._problems)

    def sections(self, name: str) -> tuple[SpecFields, ...]:
        """The objects of a list; none if it is missing."""
        items = self._items(name)
        return tuple(
            SpecFields(
                item if isinstance(item, Mapping) else {}, f"{self._at(name)}[{place}]", self._problems
            )
            for place, item in enumerate(items)
        )

    def entries(self, name: str) -> tuple[tuple[str, str], ...]:
        """The strings of an object, by key."""
        fields = self.section(name)
        read = ((key, fields.text(key)) for key in fields._document)  # noqa: SLF001  # of its own class
        return tuple((key, text) for key, text in read if text is not None)

    def text(self, name: str) -> str | None:
        """A string."""
        value = self._document.get(name)
        if value is None or isinstance(value, str):
            return value
        return self._wrong(name, value, "a string")

    def choice(self, name: str, allowed: Sequence[str]) -> str | None:
        """One of some strings."""
        value = self._document.get(name)
        if value is None or (isinstance(value, str) and value in allowed):
            return value
        return self._wrong(name, value, " or ".join(allowed))

    def integer(self, name: str, least: int, most: int) -> int | None:
        """An integer within limits."""
        value = self._document.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            return self._wrong(name, value, f"an integer from {least} to {most}")
        return value

    def dns_label(self, name: str) -> str:
        """The name of a pool or cluster, empty if it is missing."""
        text = self.text(name) or ""
        if text and not is_dns_label(text):
            self.refuse(name, "a name of lower-case letters, digits and hyphens")
        return text.replace("/", " ")

    def price(self, name: str) -> float | None:
        """A price per hour."""
        value = self._document.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= HIGHEST_PRICE:
            return self._wrong(name, value, f"a number above 0, up to {HIGHEST_PRICE}")
        return float(value)

    def duration(self, name: str) -> timedelta | None:
        """A duration such as `15m`."""
        value = self._document.get(name)
        if value is None:
            return None
        if not isinstance(value, str):
            return self._wrong(name, value, DURATION_ALLOWED)
        try:
            return parse_duration(value)
        except DurationError as error:
            self._problems.add(self._at(name), _quoted(value), DURATION_ALLOWED, error.fix)
            return None

    def time(self, name: str) -> datetime | None:
        """A time such as `2026-12-01T11:30:00Z`."""
        text = self.text(name)
        found = None if text is None else parse_time(text)
        if text is not None and found is None:
            self.refuse(name, TIME_ALLOWED)
        return found

    def duration_or_never(self, name: str, default: timedelta | None) -> timedelta | None:
        """A duration, or None for `never`; `default` if it is missing."""
        return None if self._document.get(name) == "never" else self.duration(name) or default

    def refuse(self, name: str, allowed: str) -> None:
        """Add a problem for a field whose value is not allowed."""
        self._wrong(name, self._document.get(name), allowed)

    def _items(self, name: str) -> Sequence[JsonValue]:
        value = self._document.get(name)
        if value is None:
            return ()
        if isinstance(value, str) or not isinstance(value, Sequence):
            self._wrong(name, value, "a list")
            return ()
        for place, item in enumerate(value):
            if not isinstance(item, Mapping):
                self._wrong(f"{name}[{place}]", item, "an object")
        return value

    def _at(self, name: str) -> str:
        return f"{self._path}.{name}" if self._path else name

    def _wrong(self, name: str, value: JsonValue, allowed: str) -> None:
        self._problems.add(
            self._at(name), _quoted(value), allowed, "Set an allowed value, or remove the field."
        )


def _quoted(value: JsonValue) -> str:
    text = f'"{value}"' if isinstance(value, str) else str(value)
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}…"


_MOST: Final = 2**31
_QUANTITY: Final = re.compile(r"[0-9]{1,18}(m|[kMGTP]|[KMGTP]i)?", re.ASCII)
_MILLI: Final = 1000


def read_facts(fields: SpecFields) -> DeclaredFacts:
    """Read a tier's facts; missing ones are unknown."""
    capacity = fields.choice("capacity", [each.value for each in CapacityType])
    return DeclaredFacts(
        capacity=CapacityType(capacity) if capacity else None,
        labels=fields.entries("labels"),
        taints=tuple(_taint(each) for each in fields.sections("taints")),
        machine=_machine(fields.section("machine")),
        max_nodes=fields.integer("maxNodes", 0, _MOST),
        window=_window(fields.section("window")),
    )


def _window(fields: SpecFields) -> CapacityWindow:
    return CapacityWindow(begins=fields.time("begins"), ends=fields.time("ends"))


def _taint(fields: SpecFields) -> Taint:
    key, value, effect = (fields.text(name) for name in ("key", "value", "effect"))
    return Taint(key=key or "", value=value or "", effect=effect or "NoSchedule")


def _machine(fields: SpecFields) -> MachineResources | None:
    cpu, memory = _amount(fields, "cpu", _MILLI), _amount(fields, "memory", 1)
    if cpu is None or memory is None:
        return None
    return MachineResources(cpu=cpu, memory=memory, gpus=fields.integer("gpus", 0, _MOST) or 0)


def _amount(fields: SpecFields, name: str, units: int) -> int | None:
    """An amount of a resource, in `1/units` of its base unit."""
    text = fields.text(name)
    if text is None:
        return None
    if not _QUANTITY.fullmatch(text):
        fields.refuse(name, "a quantity such as 96 or 1152Gi")
        return None
    return math.ceil(parse_quantity(text) * units)


def parse_policy(policy: Json | None) -> Policy | NoPolicy:
    """Parse the object; None for a namespace without one. The NoPolicy has its problems as texts.

    Unknown fields are ignored: they belong to a newer CRD.
    """
    if policy is None:
        return NoPolicy()
    problems = Problems()
    parsed = _policy(SpecFields(policy, "", problems).section("spec"), problems)
    return NoPolicy(problems=problems.texts) if problems.texts else parsed


def _policy(spec: SpecFields, problems: Problems) -> Policy:
    tiers = tuple(_tier(fields) for fields in spec.sections("tiers"))
    _check_tiers(tiers, problems)
    ladder = Policy(tiers=tiers)
    failures = spec.choice("failures", [each.value for each in Failures])
    return replace(
        ladder,
        failures=Failures(failures) if failures else ladder.failures,
        outage_window=spec.duration("outageWindow") or ladder.outage_window,
        give_up_after=spec.duration("giveUpAfter"),
        application_failures=_count(spec, "applicationFailures", ladder.application_failures),
        failure_window=spec.duration("failureWindow"),
        return_after=spec.duration_or_never("returnAfter", ladder.return_after),
        hold_timeout=spec.duration("holdTimeout") or ladder.hold_timeout,
        start_timeout=spec.duration("startTimeout") or ladder.start_timeout,
        deadline=spec.duration("deadline"),
        restart_cost=spec.duration("restartCost") or ladder.restart_cost,
    )


def _tier(fields: SpecFields) -> PolicyTier:
    return PolicyTier(
        pool=pool_in(fields.dns_label("cluster"), fields.dns_label("pool")),
        max_failures=fields.integer("maxFailures", UNLIMITED, MOST_FAILURES),
        procurement_timeout=fields.duration("procurementTimeout"),
        facts=read_facts(fields.section("facts")),
        price=fields.price("price"),
        max_price=fields.price("maxPrice"),
    )


def _count(spec: SpecFields, name: str, default: int) -> int:
    count = spec.integer(name, UNLIMITED, MOST_FAILURES)
    return default if count is None else count


def _check_tiers(tiers: tuple[PolicyTier, ...], problems: Problems) -> None:
    if not tiers:
        problems.add(
            "spec.tiers", "no tier", "one tier or more, the last on-demand", "Add the pool to run on."
        )
    first: Mapping[str, int] = {tier.pool: rank for rank, tier in reversed(list(enumerate(tiers)))}
    for rank, tier in enumerate(tiers):
        at = f"spec.tiers[{rank}]"
        if not pool_there(tier.pool):
            problems.add(f"{at}.pool", "no pool", "the name of a pool", "Name the pool of this tier.")
        elif first[tier.pool] != rank:
            problems.add(
                f"{at}.pool",
                f'"{tier.pool}" a second time',
                "each pool once in a ladder",
                f"Remove this tier, or raise maxFailures of tier [{first[tier.pool]}].",
            )
        elif tier.cluster and rank in {0, len(tiers) - 1}:
            problems.add(
                f"{at}.cluster",
                f'"{tier.cluster}" on the {"last" if rank else "first"} tier',
                ELSEWHERE_BETWEEN,
                MOVE_BETWEEN,
            )
