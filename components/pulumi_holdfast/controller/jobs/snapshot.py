"""A job and its surrounding objects at one moment, as the API server returns them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from pulumi_holdfast.ladder.json import Json


class JobKey(NamedTuple):
    """A job's identity: its kind (`JobSet`), namespace and name."""

    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """A job with all objects that its observation is made from.

    `pods`: those that `job_of_pod` attributes to it, including terminating and ended ones. `children`: the Jobs and
    RayClusters that `job_of_child` attributes to it. `nodes`: by name; at least those of the pods. `claims`: the
    NodeClaims by their node's name (`status.nodeName`), None if the cluster has none. `workloads`: Kueue's Workloads of
    its namespace. `now`: UTC.
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
    """Two writes in this order, both idempotent; nothing is deleted, so a crash between them loses no job.

    `manifest`: the successor to create; it may exist already. `patch`: the merge patch that records the successor in the
    ended job, so that it is not recreated again.
    """

    manifest: Json
    patch: Json
