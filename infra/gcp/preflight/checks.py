"""What a project's answers mean for a stack: what cannot work, and what was not checked. Pure."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holdfast.components.cluster.gke.access import AUTH_PLUGIN
from holdfast.infra.config.errors import format_value
from holdfast.infra.config.loader import PLATFORM
from holdfast.scheduling.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from holdfast.infra.gcp.config.cluster import Channel
    from holdfast.infra.gcp.config.stack import GcpPlatform


@dataclass(frozen=True, kw_only=True)
class Project:
    """What was asked of a project.

    `number` is in the names of its identities; `storage_agent` is the address of the account that Cloud Storage uses
    keys as, which is there if the stack brings a key. `cluster_zones` are those of the cluster's system nodes, and of
    pools that name none. `zones` are those of the stack's region, in order; `sold` the machine types of the stack that
    each of them has; `newest` the newest version of each release channel. What the project did not answer is None, or
    missing in a mapping, and `failed_queries` says why.
    """

    number: str
    storage_agent: str
    cluster_zones: tuple[str, ...]
    zones: tuple[str, ...] | None = None
    sold: Mapping[str, frozenset[str]] = field(default_factory=dict[str, "frozenset[str]"])
    newest: Mapping[Channel, str] = field(default_factory=dict["Channel", str])
    failed_queries: tuple[str, ...] = ()


def preflight_problems(platform: GcpPlatform, project: Project) -> Iterator[Problem]:
    """What cannot work in this project: nothing should be made before it is mended."""
    cluster = f"{PLATFORM}.cluster"
    yield from _version(platform, project)
    yield from _zones(platform.cluster.zones or (), project, f"{cluster}.zones")
    if platform.location != platform.region:
        yield from _zone(platform.location, project, f"{cluster}.location")
    yield from _unsold(
        platform.cluster.system_nodes.machine_type,
        project.cluster_zones,
        project,
        machine_at=f"{cluster}.systemNodes.machineType",
        zones_at=f"{cluster}.zones",
    )
    for index, pool in enumerate(platform.pools):
        at = f"{PLATFORM}.pools[{index}]"
        yield from _zones(pool.zones or (), project, f"{at}.zones")
        yield from _unsold(
            pool.machine_type,
            pool.zones or project.cluster_zones,
            project,
            machine_at=f"{at}.machineType",
            zones_at=f"{at}.zones",
        )


def preflight_warnings(project: Project) -> Iterator[str]:
    """What was not checked: a line."""
    if project.failed_queries:
        yield f"the project did not say, so it was not checked: {'; '.join(project.failed_queries)}."


def _version(platform: GcpPlatform, project: Project) -> Iterator[Problem]:
    asked, channel = _minor(platform.cluster.version), platform.cluster.channel
    newest = project.newest.get(channel)
    if newest is None or _minor(newest) >= asked:
        return
    having = [one.value for one, version in project.newest.items() if _minor(version) >= asked]
    yield Problem(
        field=f"{PLATFORM}.cluster.channel",
        value=f"{channel.value}, whose newest version in {platform.location} is {newest}",
        allowed=f"a channel that has {platform.cluster.version}: {', '.join(having) or 'none has it yet'}",
        fix=f"Write `channel: {having[0]}`."
        if having
        else "Write another location, or wait for the version.",
    )


def _minor(version: str) -> tuple[int, int]:
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _zones(zones: Sequence[str], project: Project, at: str) -> Iterator[Problem]:
    for index, zone in enumerate(zones):
        yield from _zone(zone, project, f"{at}[{index}]")


def _zone(zone: str, project: Project, field: str) -> Iterator[Problem]:
    if project.zones is not None and zone not in project.zones:
        yield Problem(
            field=field,
            value=format_value(zone),
            allowed=f"the zones that this project has there: {', '.join(project.zones)}",
            fix="Write another of them.",
        )


def _unsold(
    machine_type: str, zones: Sequence[str], project: Project, *, machine_at: str, zones_at: str
) -> Iterator[Problem]:
    """A machine that some zone of a node pool does not have: GKE makes the pool in all of them, or not at all."""
    without = [zone for zone in zones if zone in project.sold and machine_type not in project.sold[zone]]
    if not without:
        return
    there = [zone for zone in zones if zone not in without]
    elsewhere = sorted(zone for zone, sold in project.sold.items() if machine_type in sold)
    yield Problem(
        field=zones_at if there else machine_at,
        value=f"{format_value(machine_type)}, which there is not in {', '.join(without)}",
        allowed=f"zones that have it: {', '.join(elsewhere) or 'none of those that were asked'}",
        fix=f"Write `zones: [{', '.join(there or elsewhere)}]` beside it."
        if there or elsewhere
        else f"`gcloud compute machine-types list --filter name={machine_type}` shows the zones that have it.",
    )


def credential_plugin_problem(find: Callable[[str], str | None] = shutil.which) -> Problem | None:
    """Why nobody here would get into the cluster; None where the plugin is there.

    `find` tells the path of a command. Without the plugin the cluster would be made, half an hour later nothing could be
    put into it, and nothing of it could be read or destroyed.
    """
    if find(AUTH_PLUGIN) is not None:
        return None
    return Problem(
        field=AUTH_PLUGIN,
        value="no such command on the PATH of whoever runs pulumi",
        allowed="Google's plugin, which gets the tokens that clients of the cluster show",
        fix=f"Install it with `gcloud components install {AUTH_PLUGIN}`, or as the package "
        f"google-cloud-cli-{AUTH_PLUGIN} of your distribution.",
    )
