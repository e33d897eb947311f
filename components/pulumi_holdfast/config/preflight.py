"""What the preflights of the clouds share: read-only queries, demands on quotas, and what an existing cluster must have."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Final, TypeAlias, TypeVar

import pulumi

from pulumi_holdfast.config.errors import format_value
from pulumi_holdfast.config.loader import PLATFORM
from pulumi_holdfast.config.versions import ALLOWED_VERSIONS, OLDEST_VERSION
from pulumi_holdfast.ladder.errors import ConfigError, Problem
from pulumi_holdfast.ladder.labels import SYSTEM, SYSTEM_VALUE
from pulumi_holdfast.ladder.taints import SYSTEM as SYSTEM_TAINT

Words: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class CommandResult:
    """The result of a command: its exit code, its output without the last line break, and its errors."""

    code: int
    output: str
    errors: str


Runner: TypeAlias = Callable[[Words], CommandResult]


def run_command(words: Words) -> CommandResult:
    """Run a command of a cloud's command line. Raises ConfigError if it is not installed."""
    if shutil.which(words[0]) is None:
        raise ConfigError.of(
            field=words[0],
            value="no such command",
            allowed="the command line of the cloud, which the guides use, too",
            fix=f"Install `{words[0]}` and log in.",
        )
    ended = subprocess.run(words, capture_output=True, text=True, check=False)
    return CommandResult(code=ended.returncode, output=ended.stdout.strip(), errors=ended.stderr.strip())


T = TypeVar("T")

_MAX_REASON_LENGTH: Final = 300


class CloudQueries:
    """Queries against one cloud.

    `credentials` names the credentials in a problem, and `fix` says how to get better ones. `options` are for the invokes: with
    the provider that the component `parent` has for the cloud.
    """

    def __init__(self, *, credentials: str, fix: str, parent: pulumi.Resource) -> None:
        self.options: Final = pulumi.InvokeOptions(parent=parent)
        self._credentials = credentials
        self._fix = fix
        self._failed: list[str] = []

    @property
    def failed(self) -> tuple[str, ...]:
        """The optional queries that failed, each with the reason."""
        return tuple(self._failed)

    def optional(self, query: str, ask: Callable[[], T]) -> T | None:
        """The result of a query, or None if it fails."""
        try:
            return ask()
        except Exception as error:  # noqa: BLE001 - the SDKs raise nothing narrower
            self.record_failure(query, error)
            return None

    def required(self, query: str, ask: Callable[[], T]) -> T:
        """The result of a query that the stack needs. Raises ConfigError if it fails."""
        try:
            return ask()
        except Exception as error:  # noqa: BLE001 - the SDKs raise nothing narrower
            raise ConfigError.of(
                field=self._credentials,
                value=f"{query} failed ({_reason(error)})",
                allowed="credentials with permission for it, and for creating the stack's resources",
                fix=self._fix,
            ) from None

    def record_failure(self, query: str, error: Exception) -> None:
        """Record a query that failed."""
        self._failed.append(f"{query}: {_reason(error)}")


def refuse_or_warn(problems: Iterable[Problem], warnings: Iterable[str]) -> None:
    """Raise ConfigError with every problem; without one, log the warnings to the engine."""
    found = list(problems)
    if found:
        raise ConfigError(found)
    for warning in warnings:
        pulumi.log.warn(warning)


def _reason(error: Exception) -> str:
    """The cloud's message, without the prefixes of the SDK and the engine."""
    text = " ".join(str(error).split())
    for marker in (" failed: ", " returned an error: "):
        text = text.partition(marker)[2] or text
    return text[:_MAX_REASON_LENGTH]


#: The field with the cluster's name.
EXISTING: Final = f"{PLATFORM}.cluster.existing"


@dataclass(frozen=True, kw_only=True)
class NodeGroup:
    """Nodes with the same labels and taints: a node group, a node pool or an agent pool.

    `taints` are the keys of those that keep pods away. `count` is the smallest number of its nodes, None if it is unknown.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    taints: Sequence[str] = ()
    count: int | None = None

    @property
    def runs_operators(self) -> bool:
        """Whether pods with the operators' selector and toleration run here."""
        return self.labels.get(SYSTEM) == SYSTEM_VALUE and set(self.taints) <= {SYSTEM_TAINT.key}


def missing_cluster(name: str, where: str, command: str) -> Problem:
    """The problem of a name that no cluster has; `command` lists those that exist."""
    return Problem(
        field=EXISTING,
        value=f"{format_value(name)}, which does not exist in {where}",
        allowed="the name of a cluster that exists there",
        fix=f"Write one that `{command}` prints.",
    )


def unmet(value: str, allowed: str, fix: str) -> Problem:
    """The problem of a cluster that lacks something that the stack needs."""
    return Problem(field=EXISTING, value=value, allowed=allowed, fix=fix)


def version_problems(name: str, version: str) -> Iterator[Problem]:
    """A Kubernetes version without the admission policies that training namespaces need."""
    major, _, rest = version.removeprefix("v").partition(".")
    minor = rest.partition(".")[0]
    if not (major.isdecimal() and minor.isdecimal()) or (int(major), int(minor)) < OLDEST_VERSION:
        yield unmet(
            f"{format_value(name)}, a cluster with Kubernetes {version or 'of an unknown version'}",
            ALLOWED_VERSIONS,
            "Upgrade the cluster, or write another one.",
        )


def system_node_problems(
    name: str, groups: Iterable[NodeGroup], *, fewest: int, fix: str
) -> Iterator[Problem]:
    """A cluster without `fewest` nodes on which the operators run; `fix` says how to add some."""
    suitable = [group for group in groups if group.runs_operators]
    # An autoscaled group of unknown size adds the nodes that the operators wait for.
    if any(group.count is None for group in suitable) or sum(g.count or 0 for g in suitable) >= fewest:
        return
    named = ", ".join(f"{group.name} ({group.count})" for group in suitable)
    yield unmet(
        f"{format_value(name)}, a cluster with {f'too few nodes for the operators: {named}' if named else 'no nodes for the operators'}",
        f"{fewest} nodes or more with the label {SYSTEM}={SYSTEM_VALUE}, and no taint except {SYSTEM_TAINT.key}",
        fix,
    )


@dataclass(frozen=True, kw_only=True)
class Demand:
    """What the machines of one field take of one quota: `asked` with all of them, `least` what they need to start."""

    field: str
    asked: int
    least: int


@dataclass(frozen=True, kw_only=True)
class QuotaUse:
    """One quota: `asked` is what the stack uses with full pools, `least` what its largest single demand needs to start.

    `granted` and `used` are None if the caller may not query them; `granted` is infinite without a limit. `used` is
    without the stack's own machines. `fields` are those of the configuration that count against it, `increase` is the
    command that requests more.
    """

    name: str
    unit: str
    asked: int
    least: int
    fields: tuple[str, ...]
    increase: str
    granted: float | None = None
    used: float | None = None
    reason: str = ""

    @property
    def available(self) -> float | None:
        """What the stack may use; None if that is unknown. Unknown use by others counts as none."""
        return None if self.granted is None else self.granted - (self.used or 0)

    @property
    def blocks(self) -> bool:
        """Whether a part of the stack cannot run at all."""
        return self.available is not None and self.available < self.least

    @property
    def is_short(self) -> bool:
        """Whether full pools do not fit."""
        return self.available is not None and self.available < self.asked

    @property
    def shortage(self) -> str | None:
        """What is too small, and the command that requests more; None if full pools fit, or if that is unknown."""
        where = ", ".join(self.fields)
        if self.blocks:
            return f'"{self.name}" is too small for {where}: {self.least} {self.unit} are needed. Run `{self.increase}`.'
        if self.is_short:
            return f'"{self.name}" is too small for full pools of {where}. Run `{self.increase}`.'
        return None


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What a cloud grants of a quota and what others use of it, as in QuotaUse."""

    granted: float | None = None
    used: float | None = None
    reason: str = ""


def quota_use(name: str, unit: str, demands: Sequence[Demand], usage: Usage, *, increase: str) -> QuotaUse:
    """The use of one quota by the fields in `demands`; `increase` has a placeholder {} for the number."""
    asked = sum(demand.asked for demand in demands)
    return QuotaUse(
        name=name,
        unit=unit,
        asked=asked,
        least=max(demand.least for demand in demands),
        fields=tuple(dict.fromkeys(demand.field.removeprefix(f"{PLATFORM}.") for demand in demands)),
        increase=increase.format(asked),
        granted=usage.granted,
        used=usage.used,
        reason=usage.reason,
    )


def advice(uses: Iterable[QuotaUse]) -> Iterator[str]:
    """A line for each quota that is known to be too small, for an update, which continues."""
    return (f"quota {use.shortage}" for use in uses if use.shortage is not None)


def report(uses: Sequence[QuotaUse]) -> Iterator[str]:
    """The table of quotas, and below it a line for each that is too small or unknown."""
    rows = [("quota", "unit", "asked", "granted", "used by others")]
    rows += [(use.name, use.unit, str(use.asked), _amount(use.granted), _amount(use.used)) for use in uses]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
    for use in uses:
        if use.granted is None:
            yield f'warning: "{use.name}" for {", ".join(use.fields)} is not checked: {use.reason}'
        elif use.shortage is not None:
            yield f"{'error' if use.blocks else 'warning'}: {use.shortage}"


def _amount(value: float | None) -> str:
    return "unknown" if value is None else "unlimited" if value == inf else f"{value:g}"
