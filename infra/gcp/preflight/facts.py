"""A project, as far as it answered."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.infra.gcp.config.cluster import Channel


@dataclass(frozen=True, kw_only=True)
class Project:
    """What was asked of a project.

    `number` is in the names of its identities; `storage_agent` is the address of the account that Cloud Storage uses
    keys as, which is there if the stack brings a key. `cluster_zones` are those of the cluster's system nodes, and of
    pools that name none. `zones` are those of the stack's region, in order; `sold` the machine types of the stack that
    each of them has; `newest` the newest version of each release channel. What the project did not answer is None, or
    missing in a mapping, and `unanswered` says why.
    """

    number: str
    storage_agent: str
    cluster_zones: tuple[str, ...]
    zones: tuple[str, ...] | None = None
    sold: Mapping[str, frozenset[str]] = field(default_factory=dict[str, "frozenset[str]"])
    newest: Mapping[Channel, str] = field(default_factory=dict["Channel", str])
    unanswered: tuple[str, ...] = ()
