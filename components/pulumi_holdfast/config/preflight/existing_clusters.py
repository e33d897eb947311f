"""Checks what a stack needs of an existing cluster on any cloud: its Kubernetes version, and nodes for the operators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pulumi_holdfast.config.errors import format_value
from pulumi_holdfast.config.loader import PLATFORM
from pulumi_holdfast.config.versions import ALLOWED_VERSIONS, OLDEST_VERSION
from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.labels import SYSTEM, SYSTEM_VALUE
from pulumi_holdfast.ladder.taints import SYSTEM as SYSTEM_TAINT

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
