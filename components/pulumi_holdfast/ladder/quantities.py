"""Kubernetes quantities, and amounts of CPU, memory and time as users write them: `500m`, `512Gi`, `1h30m`.

The effective requests of a pod are those by which the scheduler, Karpenter and the cluster autoscalers place it
(k8s.io/component-helpers, resource.PodRequests). The fallback controller, the policies and the simulated autoscalers count with
this one function.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from fractions import Fraction
from functools import lru_cache
from typing import Final, TypeAlias

from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence

_SUFFIXES: Final = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}
_QUANTITY: Final = re.compile(
    r"^(?P<number>[+-]?(\d+(\.\d*)?|\.\d+))((?P<suffix>[numkMGTPE]|[KMGTPE]i)|[eE](?P<exponent>[+-]?\d{1,3}))?$"
)
# Every amount of a resource is far shorter, and Python parses no number of thousands of digits.
_LONGEST_QUANTITY: Final = 64


def parse_quantity(value: object) -> Fraction:
    """Return the exact value of a quantity; 0 if it is not one, or longer than any real one."""
    text = str(value).strip()
    return _parsed(text) if len(text) <= _LONGEST_QUANTITY else Fraction(0)


@lru_cache(maxsize=4096)
def _parsed(text: str) -> Fraction:
    found = _QUANTITY.match(text)
    if found is None:
        return Fraction(0)
    number = Fraction(found["number"])
    if found["exponent"]:
        return number * Fraction(10) ** int(found["exponent"])
    return number * _SUFFIXES[found["suffix"] or ""]


def format_quantity(amount: Fraction) -> str:
    """Format an amount as a quantity: an integer, or thousandths, rounded up."""
    if amount.denominator == 1:
        return str(amount.numerator)
    return f"{-(-amount.numerator * 1000 // amount.denominator)}m"


#: The syntax of amounts, here and in the schema of the FallbackPolicy.
CPU_PATTERN: Final = r"^([0-9]{1,8}m|[0-9]{1,5}(\.[0-9]{1,3})?)$"
MEMORY_PATTERN: Final = r"^[0-9]{1,9}(\.[0-9]{1,3})?(Mi|Gi|Ti|M|G|T)$"

# Larger than any machine: a larger number is a wrong unit.
MOST_CPU_MILLIS: Final = 10_000_000
MOST_MEMORY_MIB: Final = 100 * 1024**2

CPU_ALLOWED: Final = "CPUs, 1m to 10000, such as 48, 1.5 or 500m"
MEMORY_ALLOWED: Final = "an amount with its unit, 1Mi to 100Ti, such as 512Gi"

_MIB: Final = 2**20
_GIB_IN_MIB: Final = 1024
_MILLIS: Final = 1000


class AmountError(ValueError):
    """A text that is not an amount; `fix` states what to write instead."""

    def __init__(self, text: str, allowed: str, fix: str) -> None:
        super().__init__(f'"{text}" is not an amount. Allowed: {allowed}. {fix}')
        self.fix = fix


def parse_cpu(text: str) -> int:
    """Parse `48`, `1.5` or `500m` as thousandths of a CPU.

    Raises AmountError for anything else, and for 0 and more than 10000 CPUs.
    """
    if re.fullmatch(CPU_PATTERN, text, re.ASCII) is None:
        raise AmountError(text, CPU_ALLOWED, "Write a number of CPUs, or of thousandths with an m.")
    millis = int(parse_quantity(text) * _MILLIS)
    if not 1 <= millis <= MOST_CPU_MILLIS:
        raise AmountError(text, CPU_ALLOWED, f"Write {'at least 1m' if millis < 1 else 'at most 10000'}.")
    return millis


def parse_memory(text: str) -> int:
    """Parse `512Gi`, `1.5Ti` or `500M` as MiB, rounded up, so that a request is never counted too low.

    Raises AmountError for anything else, and for 0 and more than 100Ti.
    """
    if re.fullmatch(r"[0-9.]+", text, re.ASCII):
        raise AmountError(text, MEMORY_ALLOWED, f"Write {text}Gi or {text}Mi: without a unit it is bytes.")
    if re.fullmatch(MEMORY_PATTERN, text, re.ASCII) is None:
        raise AmountError(text, MEMORY_ALLOWED, "Write a number and Mi, Gi or Ti.")
    mib = -(-parse_quantity(text) // _MIB)
    if not 1 <= mib <= MOST_MEMORY_MIB:
        raise AmountError(text, MEMORY_ALLOWED, f"Write {'at least 1Mi' if mib < 1 else 'at most 100Ti'}.")
    return mib


def format_cpu(millis: int) -> str:
    """Format thousandths of a CPU for `parse_cpu`: 48000 → `48`, 1500 → `1500m`."""
    return f"{millis}m" if millis % _MILLIS else str(millis // _MILLIS)


def format_memory(mib: int) -> str:
    """Format MiB for `parse_memory`: 524288 → `512Gi`, 1500 → `1500Mi`."""
    return f"{mib}Mi" if mib % _GIB_IN_MIB else f"{mib // _GIB_IN_MIB}Gi"


#: The syntax of durations, here and in the schema of the FallbackPolicy: the parts in this order, each at most once.
DURATION_PATTERN: Final = r"^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?$"

# A month: a longer duration is a wrong unit.
LONGEST_DURATION: Final = timedelta(hours=720)

DURATION_ALLOWED: Final = "a time with its units, 1s to 720h, such as 45s, 15m or 1h30m"

_PARTS: Final = re.compile(DURATION_PATTERN, re.ASCII)
_SECOND: Final = timedelta(seconds=1)


class DurationError(ValueError):
    """A text that is not a duration; `fix` states what to write instead."""

    def __init__(self, text: str, fix: str) -> None:
        super().__init__(f'"{text}" is not a duration. Allowed: {DURATION_ALLOWED}. {fix}')
        self.fix = fix


def parse_duration(text: str) -> timedelta:
    """Parse `1h30m`, `15m` or `45s`.

    Raises DurationError for anything else, and for 0 and more than 720h.
    """
    if re.fullmatch(r"[0-9]+", text, re.ASCII):
        raise DurationError(text, f"Write {text}m, {text}s or {text}h.")
    found = _PARTS.fullmatch(text)
    if found is None or not text:
        raise DurationError(text, "Write hours, minutes and seconds in that order, such as 1h30m.")
    hours, minutes, seconds = (int(part[:-1]) if part else 0 for part in found.groups())
    duration = timedelta(hours=hours, minutes=minutes, seconds=seconds)
    if duration < _SECOND:
        raise DurationError(text, "Write at least 1s.")
    if duration > LONGEST_DURATION:
        raise DurationError(text, "Write at most 720h.")
    return duration


def format_duration(duration: timedelta) -> str:
    """Format a duration for `parse_duration`, as short as possible: 5400 s → `1h30m`."""
    seconds = int(duration.total_seconds())
    parts = ((seconds // 3600, "h"), (seconds % 3600 // 60, "m"), (seconds % 60, "s"))
    return "".join(f"{count}{unit}" for count, unit in parts if count)


Amounts: TypeAlias = dict[str, Fraction]

_NOTHING: Final = Fraction(0)


def effective_requests(pod_spec: Json, defaults: Json | None = None) -> Mapping[str, Fraction]:
    """Return how much of each resource a pod requests, in base units, without resources of which it requests none.

    `defaults` are the requests that a LimitRange gives to containers without their own.

    Sidecars (init containers with restartPolicy Always) run beside the containers; each other init container runs alone,
    with the sidecars started before it. Requests of the pod itself replace those of its containers. A limit without a
    request counts as the request, as the API server fills it in.
    """
    filled = _amounts(defaults)
    running = _sum(_of_container(each, filled) for each in _objects(pod_spec.get("containers")))
    begun: Amounts = {}
    peak: Amounts = {}
    for each in _objects(pod_spec.get("initContainers")):
        # Only what this container requests can raise the peak: a walk over all resources begun would be quadratic.
        for name, amount in _of_container(each, filled).items():
            alone = begun.get(name, _NOTHING) + amount
            peak[name] = max(peak.get(name, _NOTHING), alone)
            if each.get("restartPolicy") == "Always":
                begun[name] = alone
    of_containers = _larger(_sum([running, begun]), peak)
    own = mapping(pod_spec.get("resources"))
    needed = {**_amounts(own.get("limits")), **of_containers, **_amounts(own.get("requests"))}
    total = _sum([needed, _amounts(pod_spec.get("overhead"))])
    return {name: amount for name, amount in sorted(total.items()) if amount}


# Each observation of a job reads the requests of its templates and pods, and the pods of a gang request the same. A longer text
# is computed each time: a user who writes many of them would fill the memory.
_MOST_REMEMBERED: Final = 1024
_LONGEST_REMEMBERED: Final = 4096
_READ: Final = ("containers", "initContainers", "resources", "overhead")


def remembered_requests(pod_spec: Json) -> Mapping[str, Fraction]:
    """Return the effective requests of a pod, which are computed once for all specifications that request the same."""
    read = json.dumps([pod_spec.get(name) for name in _READ])
    return _of_text(read) if len(read) <= _LONGEST_REMEMBERED else _of_text.__wrapped__(read)


@lru_cache(maxsize=_MOST_REMEMBERED)
def _of_text(read: str) -> Mapping[str, Fraction]:
    return effective_requests(dict(zip(_READ, json.loads(read), strict=True)))


def _objects(value: JsonValue) -> Iterable[Json]:
    return map(mapping, sequence(value))


def _of_container(container: Json, defaults: Amounts) -> Amounts:
    resources = mapping(container.get("resources"))
    return {**defaults, **_amounts(resources.get("limits")), **_amounts(resources.get("requests"))}


def _amounts(resources: JsonValue) -> Amounts:
    return {name: parse_quantity(value) for name, value in mapping(resources).items()}


def _sum(parts: Iterable[Amounts]) -> Amounts:
    total: Amounts = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, _NOTHING) + amount
    return total


def _larger(one: Amounts, other: Amounts) -> Amounts:
    return {name: max(one.get(name, _NOTHING), other.get(name, _NOTHING)) for name in {**one, **other}}
