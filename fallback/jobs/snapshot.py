"""What there is of one job and around it at one moment, as the API server has it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from holdfast.scheduling.json import Json


class JobKey(NamedTuple):
    """Which job: its kind (`JobSet`), namespace and name."""

    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A job with all that is looked at to judge it.

    `pods`: those that `job_of_pod` says are its own, terminating and ended ones included. `children`: the Jobs and
    RayClusters that `job_of_child` says are its own. `nodes`: by name; those of the pods at least. `claims`: the
    NodeClaims by their node's name (`status.nodeName`), None where the cluster has none. `workloads`: Kueue's
    Workloads of its namespace. `now`: UTC.
    """

    job: Json
    now: datetime
    pods: tuple[Json, ...] = ()
    children: tuple[Json, ...] = ()
    nodes: Mapping[str, Json] = field(default_factory=dict[str, "Json"])
    claims: Mapping[str, Json] | None = None
    workloads: tuple[Json, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Recreation:
    """Two writes in this order, both harmless when repeated; nothing is deleted, so no kill between them loses a job.

    `manifest`: the successor, to be created; that it is there already is as good. `patch`: the merge patch by which
    the ended job says so, and asks for none again.
    """

    manifest: Json
    patch: Json
